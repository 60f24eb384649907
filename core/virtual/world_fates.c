/* SPDX-License-Identifier: Apache-2.0 */
/* What befalls the processes of a virtual world: time that is lost, and signals, which are spare
 * descriptors that ring. */
#include "core/virtual/world.h"

#include <errno.h>

#include "timer/base.h"

static int signals_open(void *ctx, int number, int *ret_fd)
{
	struct virtual_process *process = ctx;
	int at = 0;
	int error;

	if (number <= 0)
		return -EINVAL;
	while (process->signals[at].number != 0) {
		at++;
		SPOKE_ASSERT(at < VIRTUAL_SIGNALS);
	}
	error = memnet_table.spare(ctx, ret_fd);
	if (!error) {
		process->signals[at].number = number;
		process->signals[at].fd = *ret_fd;
	}
	return error;
}

static bool signals_take(void *ctx, int fd)
{
	return memnet_ring(((struct virtual_process *)ctx)->world->net, fd, false);
}

static void signals_close(void *ctx, int fd)
{
	struct virtual_process *process = ctx;

	for (int i = 0; i < VIRTUAL_SIGNALS; i++)
		if (process->signals[i].number != 0 && process->signals[i].fd == fd)
			process->signals[i].number = 0;
	memnet_table.close(ctx, fd);
}

const struct spoke_signals virtual_signals = {
	.open = signals_open,
	.take = signals_take,
	.close = signals_close,
};

bool virtual_signal(struct virtual_process *process, int number)
{
	bool watched = false;

	for (int i = 0; i < VIRTUAL_SIGNALS; i++) {
		if (process->signals[i].number != number)
			continue;
		(void)memnet_ring(process->world->net, process->signals[i].fd, true);
		watched = true;
	}
	return watched;
}

void virtual_hold(struct virtual_process *process, uint64_t ns)
{
	process->held_until_ns = process->env.now(process) + ns;
}

void virtual_stall(struct virtual_world *world, uint64_t ns)
{
	world->now_ns += ns;
}

void virtual_sleep(struct virtual_world *world, uint64_t ns)
{
	world->slept_ns += ns;
}
