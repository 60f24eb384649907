/* SPDX-License-Identifier: Apache-2.0 */
/* One client in ten stops reading: the memory that each costs the gateway and the system. */
#include "comet.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONNS 2000u
#define MUTE_EVERY 10u
#define PAYLOAD 1000u
#define BROADCASTS 200u /* more than a connection's buffers and the ring of spoke hold together */
#define TOGETHER 10u

/* Returns the memory of all TCP sockets of the system in bytes. */
static double tcp_memory(void)
{
	FILE *file = fopen("/proc/net/sockstat", "re");
	char line[256];
	unsigned long pages = 0;

	if (file == NULL)
		die("cannot read /proc/net/sockstat");
	while (fgets(line, sizeof(line), file)) {
		const char *memory = strstr(line, " mem ");

		if (strncmp(line, "TCP:", 4) == 0 && memory)
			pages = strtoul(memory + 5, NULL, 10);
	}
	(void)fclose(file);
	return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

/* Sends broadcasts, a few at a time, and waits until those that read have them. */
static uint64_t broadcast(struct stage *stage, unsigned readers)
{
	uint64_t wanted = stage_sums(stage).broadcasts;
	uint64_t begun_ns = now_ns();

	for (unsigned i = 0; i < BROADCASTS; i += TOGETHER) {
		wanted += (uint64_t)readers * TOGETHER;
		stage_cast(stage, TOGETHER, PAYLOAD);
		stage_hear(stage, wanted);
		stage_wait(&stage->caster);
	}
	return now_ns() - begun_ns;
}

void measure_mute(const struct bench *bench)
{
	const struct stage_options options = {
		.kind = SPOKE,
		.gateways = 1,
		.conns = CONNS,
		.mute_every = MUTE_EVERY,
	};
	unsigned mute = CONNS / MUTE_EVERY;
	struct figure bytes = { "mute_bytes", "bytes each", .bar = 40000, .goal = 20000 };
	struct figure kernel = { "mute_kernel_bytes", "bytes each", .bar = 0 };
	struct figure slower = { "mute_delays_others", "ratio of times", .bar = 0 };
	struct stage stage;
	double resident;
	double memory;
	uint64_t before_ns;
	uint64_t after_ns;

	if (!bench->has[SPOKE])
		return;
	stage_open(&stage, &options);
	(void)stage_storm(&stage);
	before_ns = broadcast(&stage, CONNS);
	resident = (double)stage_resident(&stage);
	memory = tcp_memory();
	stage_mute(&stage);
	after_ns = broadcast(&stage, CONNS - mute);
	figure_add(&bytes, SPOKE, ((double)stage_resident(&stage) - resident) / mute);
	figure_add(&kernel, SPOKE, (tcp_memory() - memory) / mute);
	figure_add(&slower, SPOKE, (double)after_ns / (double)before_ns);
	stage_close(&stage, false);
	figure_print(&bytes);
	figure_print(&kernel);
	figure_print(&slower);
}
