/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins do nothing, so that it shows what doing it costs. They exist in the benchmark only.
 * Where a room can be left out as a whole, a file has its functions again. Where functions of a
 * header are inlined, the files that call them are compiled once more, and include first a header
 * that has macros by their names. Either is linked before the library, which then has nothing to
 * add.
 */
#ifndef TESTS_BENCH_COST_WITHOUT_STANDS_FOR_H
#define TESTS_BENCH_COST_WITHOUT_STANDS_FOR_H

/* A function that is replaced has to be there: one that is called something else now would only
 * seem to cost nothing. */
#define STANDS_FOR(function) _Static_assert(sizeof(&(function)) > 0, #function)

#endif
