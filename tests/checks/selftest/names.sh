# SPDX-License-Identifier: Apache-2.0
cat <<'C' | plant tests/timer/plant.c
static void what_comes_first_goes_first(void **state)
void who_asks_is_told(void **state)
static void what_is_no_test(int number)
static void nothing_of_a_name_that_has_sixty_characters_is_long_for_this(void **state)
static void nothing_of_a_name_that_has_sixty_one_characters_is_so_at_all_(void **state)
C
red names 'tests/timer/plant.c: 3 names' 'plant.c:what_comes_first_goes_first' 'plant.c:nothing_of_a_name_that_has_sixty_one'
quiet what_is_no_test nothing_of_a_name_that_has_sixty_characters
