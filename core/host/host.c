/* SPDX-License-Identifier: Apache-2.0 */
/* Assembles the real environment from the rooms of this folder. Memory is the C library's. */
#define _GNU_SOURCE
#include <spoke/host.h>

#include "core/host/clock.h"
#include "core/host/dice.h"
#include "core/host/files.h"
#include "core/host/forks.h"
#include "core/host/hostid.h"
#include "core/host/loop.h"
#include "core/host/manager.h"
#include "core/host/net.h"
#include "core/host/signals.h"
#include "core/host/stderr.h"
#include "core/host/threads.h"

#include <pthread.h>
#include <stdlib.h>

static void *resize(void *ctx, void *memory, size_t old_len, size_t len)
{
	(void)ctx;
	(void)old_len;
	if (len == 0) {
		free(memory);
		return NULL;
	}
	return realloc(memory, len);
}

static struct spoke_env host_env;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void assemble(void)
{
	spokei_forks_watch();
	host_env = (struct spoke_env){
		.now = spokei_clock_now,
		.coarse = spokei_clock_coarse,
		.boot_now = spokei_clock_boot_now,
		.wall = spokei_clock_wall,
		.dice = spokei_dice,
		.resize = resize,
		.net = &spokei_host_net,
		.loop = &spokei_host_loop,
		.files = &spokei_host_files,
		.threads = &spokei_host_threads,
		.forks = &spokei_forks,
		.signals = &spokei_host_signals,
		.print = spokei_stderr_print,
		.variable = spokei_stderr_variable,
		.manager = &spokei_host_manager,
		.host_id = spokei_hostid,
	};
}

const struct spoke_env *spoke_host_env(void)
{
	(void)pthread_once(&once, assemble);
	return &host_env;
}
