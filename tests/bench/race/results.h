/* SPDX-License-Identifier: Apache-2.0 */
/* All that was measured as a chapter in Markdown, which is readable on a terminal too. */
#ifndef BENCH_RESULTS_H
#define BENCH_RESULTS_H

#include <stdio.h>

void results_print(FILE *out);

#endif
