# SPDX-License-Identifier: Apache-2.0
cat <<'C' | plant tests/timer/plant.c
TEST(what_comes_first_goes_first)
ROW(who_asks_is_told, "a row")
static void what_is_no_test(int number)
TEST(nothing_of_a_name_that_has_sixty_characters_is_long_for_this)
TEST(nothing_of_a_name_that_has_sixty_one_characters_is_so_at_all_)
C
red names 'tests/timer/plant.c: 3 names' 'plant.c:what_comes_first_goes_first' 'plant.c:nothing_of_a_name_that_has_sixty_one'
quiet what_is_no_test nothing_of_a_name_that_has_sixty_characters
