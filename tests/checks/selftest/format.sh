# SPDX-License-Identifier: Apache-2.0
# Of the others one is enough.
find "$copy" -name '*.[ch]' ! -name base.h -delete
printf 'int plant( void );\n' | plant timer/plant.h
red format 'timer/plant.h:1: not as clang-format writes it'
