/* SPDX-License-Identifier: Apache-2.0 */
/* Included before every other header: calls have no timers. */
#include <spoke/wheel.h>

#include "tests/bench/cost/without/stands_for.h"

STANDS_FOR(spoke_wheel_schedule);
STANDS_FOR(spoke_wheel_disarm);

#define spoke_wheel_schedule(wheel, timer, timer_class, deadline_ns)                               \
	((void)(wheel), (void)(timer), (void)(timer_class), (void)(deadline_ns), SPOKE_WHEEL_OK)
#define spoke_wheel_disarm(wheel, timer) ((void)(wheel), (void)(timer), true)
