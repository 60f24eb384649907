/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Disturbances of the processes of a virtual world: lost time, and signals, which are spare
 * descriptors that become readable.
 */
#include "core/virtual/world.h"

#include <errno.h>

#include "timer/base.h"

static int signals_open(void *ctx, int number, int *ret_fd)
{
	struct spokei_world_process *process = ctx;
	int at = 0;
	int error;

	if (number <= 0)
		return -EINVAL;
	while (process->signals[at].number != 0) {
		at++;
		SPOKE_ASSERT(at < SPOKEI_WORLD_SIGNALS);
	}
	error = spokei_vnet_table.spare(ctx, ret_fd);
	if (!error) {
		process->signals[at].number = number;
		process->signals[at].fd = *ret_fd;
	}
	return error;
}

static bool signals_take(void *ctx, int fd)
{
	return spokei_vnet_ring(((struct spokei_world_process *)ctx)->world->net, fd, false);
}

static void signals_close(void *ctx, int fd)
{
	struct spokei_world_process *process = ctx;

	for (int i = 0; i < SPOKEI_WORLD_SIGNALS; i++)
		if (process->signals[i].number != 0 && process->signals[i].fd == fd)
			process->signals[i].number = 0;
	spokei_vnet_table.close(ctx, fd);
}

const struct spoke_signals spokei_world_signals = {
	.open = signals_open,
	.take = signals_take,
	.close = signals_close,
};

bool spokei_world_signal(struct spokei_world_process *process, int number)
{
	bool watched = false;

	for (int i = 0; i < SPOKEI_WORLD_SIGNALS; i++) {
		if (process->signals[i].number != number)
			continue;
		(void)spokei_vnet_ring(process->world->net, process->signals[i].fd, true);
		watched = true;
	}
	return watched;
}

void spokei_world_hold(struct spokei_world_process *process, uint64_t ns)
{
	process->held_until_ns = process->env.now(process) + ns;
	process->user.leaves_ns = process->held_until_ns;
}

void spokei_world_stall(struct spokei_world *world, uint64_t ns)
{
	world->now_ns += ns;
}

void spokei_world_sleep(struct spokei_world *world, uint64_t ns)
{
	world->slept_ns += ns;
}
