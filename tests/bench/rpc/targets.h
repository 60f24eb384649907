/* SPDX-License-Identifier: Apache-2.0 */
/* What spoke has set itself to reach against the raw echo. */
#ifndef BENCH_TARGETS_H
#define BENCH_TARGETS_H

#define TARGETS_SPOKE "spoke"
#define TARGETS_RAW "raw-libev"
#define TARGETS_TWIN "raw-epoll"
#define TARGETS_SPOKE_SPIN "spoke-spin"
#define TARGETS_RAW_SPIN "raw-epoll-spin"

/* Prints to stderr, for each target, what was measured and whether it was reached. */
void targets_print(void);

/* The same of the peers that spin, which are compared with each other only. */
void targets_print_spin(void);

/* Says on stdout, as a comment, when the raw echo of a pattern is too slow to be compared with. */
void targets_check_raw(const char *pattern);

#endif
