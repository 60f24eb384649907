/* SPDX-License-Identifier: Apache-2.0 */
/* spoke's wheel as a peer that cancels with disarm, the way of the engine, whose timers outlive
 * their calls. */
#define CANCEL spoke_wheel_disarm
#include "peer_spoke.h"

const struct bench_kit bench_spoke_disarm = BENCH_SPOKE_KIT;
