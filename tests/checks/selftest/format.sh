# SPDX-License-Identifier: Apache-2.0
printf 'int plant( void );\n' | plant timer/plant.h
red format 'timer/plant.h:1: not as clang-format writes it'
