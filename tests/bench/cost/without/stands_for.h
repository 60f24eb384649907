/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stand-ins for features. A stand-in does nothing, so the difference shows the cost of the feature.
 * If a feature has files of its own, another file defines their functions. If functions in headers
 * are inlined, the files that use them are compiled again, after a header with macros of the same
 * names. Stand-ins are linked before the library. They exist only in the benchmark.
 */
#ifndef TESTS_BENCH_COST_WITHOUT_STANDS_FOR_H
#define TESTS_BENCH_COST_WITHOUT_STANDS_FOR_H

/* Fails the build if the replaced function does not exist. After a renaming the stand-in would have
 * no effect, and the feature would seem to cost nothing. */
#define STANDS_FOR(function) _Static_assert(sizeof(&(function)) > 0, #function)

#endif
