/* SPDX-License-Identifier: Apache-2.0 */
/* What spoke has set itself to reach against the raw echo. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#define TARGETS_SPOKE "spoke"
#define TARGETS_RAW "raw-libev"
#define TARGETS_TWIN "raw-epoll"

/* Prints to stderr, for each target, what was measured and whether it was reached. */
void targets_print(void);

/* Says on stdout, as a comment, when the raw echo of a pattern is too slow to be compared with. */
void targets_check_raw(const char *pattern);

#endif
