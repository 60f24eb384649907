/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, random numbers and memory of a virtual process; see world.h. */
#include "core/virtual/world.h"

#include <errno.h>
#include <stdlib.h>

#include "core/virtual/files.h"

uint64_t spokei_world_dice(struct spokei_world *world)
{
	world->dice ^= world->dice << 13;
	world->dice ^= world->dice >> 7;
	world->dice ^= world->dice << 17;
	return world->dice * UINT64_C(0x2545f4914f6cdd1d);
}

/* --- the environment */

static uint64_t process_now(void *ctx)
{
	const struct spokei_world_process *process = ctx;
	uint64_t now_ns = process->world->now_ns;

	return now_ns > process->held_until_ns ? now_ns : process->held_until_ns;
}

/* As far behind as it is allowed to be. */
static uint64_t process_coarse(void *ctx)
{
	return process_now(ctx) - SPOKE_COARSE_NS;
}

static uint64_t process_boot_now(void *ctx)
{
	const struct spokei_world_process *process = ctx;

	return process_now(ctx) + process->world->slept_ns + process->boot_ahead_ns;
}

/* The year 2026. */
static uint64_t process_wall(void *ctx)
{
	return UINT64_C(1767225600000000000) + process_boot_now(ctx);
}

/* Fills numbers of 64 bits, or one of 32, with the same values on machines of either byte order. */
static void process_dice(void *ctx, void *bytes, size_t len)
{
	struct spokei_world_process *process = ctx;
	const uint16_t one = 1;
	bool little = *(const unsigned char *)&one == 1;
	size_t turned = little ? 0 : len % 8 == 0 ? 7 : len == 4 ? 3 : 0;

	for (size_t i = 0; i < len; i++)
		((unsigned char *)bytes)[i ^ turned] =
			(unsigned char)(spokei_world_dice(process->world) >> 56);
}

static void *process_resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	struct spokei_world_process *process = ctx;
	void *grown;

	if (len == 0) {
		process->blocks -= memory != NULL;
		process->bytes -= old_len;
		free(memory);
		return NULL;
	}
	if (++process->demands == process->fail_at)
		return NULL;
	grown = realloc(memory, len);
	process->blocks += grown && !memory;
	process->bytes += grown ? len - old_len : 0;
	return grown;
}

static int process_host_id(void *ctx, uint64_t *ret_id)
{
	const struct spokei_world_process *process = ctx;

	if (process->host_id == 0)
		return -ENOENT;
	*ret_id = process->host_id;
	return 0;
}

const struct spoke_env spokei_world_env = {
	.now = process_now,
	.coarse = process_coarse,
	.boot_now = process_boot_now,
	.wall = process_wall,
	.dice = process_dice,
	.resize = process_resize,
	.net = &spokei_vnet_table,
	.files = &spokei_vfiles_table,
	.signals = &spokei_world_signals,
	.host_id = process_host_id,
};
