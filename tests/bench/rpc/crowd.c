/* SPDX-License-Identifier: Apache-2.0 */
/* Wraps the loop of the host; see crowd.h. */
#include "crowd.h"

#include <spoke/host.h>

static struct {
	struct spoke_env env;
	struct spoke_loop loop;
	struct spoke_loop_up up;
	int (*open)(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		    void **ret_loop);
	void (*turn)(void *arg, unsigned ready);
	unsigned least;
	unsigned most;
} crowd;

static void turn(void *arg, unsigned ready)
{
	if (ready > 0 && ready < crowd.least)
		ready = crowd.least;
	crowd.turn(arg, ready < crowd.most ? ready : crowd.most);
}

static int open_loop(void *ctx, void *native, const struct spoke_loop_up *up, void *arg,
		     void **ret_loop)
{
	crowd.up = *up;
	crowd.up.turn = turn;
	crowd.turn = up->turn;
	return crowd.open(ctx, native, &crowd.up, arg, ret_loop);
}

const struct spoke_env *crowd_env(unsigned least, unsigned most)
{
	crowd.env = *spoke_host_env();
	crowd.loop = *crowd.env.loop;
	crowd.open = crowd.loop.open;
	crowd.loop.open = open_loop;
	crowd.env.loop = &crowd.loop;
	crowd.least = least;
	crowd.most = most;
	return &crowd.env;
}
