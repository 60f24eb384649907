/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment whose loop reports another number of ready descriptors than it served. A turn
 * writes early only after a round with one of them (transport/conn/read.c). So a benchmark can
 * compare an engine that always writes early, or never, with the library as shipped, which needs
 * no option for that.
 */
#ifndef BENCH_CROWD_H
#define BENCH_CROWD_H

#include <spoke/env.h>

/* Returns the host's environment, whose loop reports at least `least` and at most `most`
 * descriptors for each round with one or more. For one engine in a process; never freed. */
const struct spoke_env *crowd_env(unsigned least, unsigned most);

#endif
