/* SPDX-License-Identifier: Apache-2.0 */
/* spoke's wheel as a peer that cancels with cancel. */
#define CANCEL spoke_wheel_cancel
#include "peer_spoke.h"

const struct bench_kit bench_spoke_cancel = BENCH_SPOKE_KIT;
