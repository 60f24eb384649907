/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random bytes: each thread has a store that getrandom() fills when it is used up, and that a fork
 * empties. If the system refuses (an old kernel, a sandbox), a small generator seeded by the clock
 * takes over. Peers may guess its numbers, and with them the keys of hash tables, nonces and
 * tokens.
 */
#define _GNU_SOURCE
#include "core/host/dice.h"

#include "core/base/mix.h"
#include "core/host/clock.h"
#include "core/host/forks.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum {
	STORE_SIZE = 512
};

struct store {
	unsigned forks; /* forks counted when it was filled; 0: never filled */
	size_t left;
	unsigned char bytes[STORE_SIZE];
};

static _Thread_local struct store store;

static void fill_without_system(struct store *full)
{
	uint64_t state = spokei_clock_now(NULL) ^ (uint64_t)(uintptr_t)full ^
			 ((uint64_t)getpid() << 32);

	for (size_t at = 0; at < STORE_SIZE; at += sizeof(uint64_t)) {
		uint64_t word = spokei_mix_next(&state);

		memcpy(full->bytes + at, &word, sizeof(word));
	}
}

static void fill(struct store *full)
{
	ssize_t got;

	spokei_forks_watch();
	full->forks = spokei_forks;
	do
		got = getrandom(full->bytes, STORE_SIZE, 0);
	while (got < 0 && errno == EINTR);
	if (got != STORE_SIZE)
		fill_without_system(full);
	full->left = STORE_SIZE;
}

void spokei_dice(void *ctx, void *bytes, size_t len)
{
	struct store *mine = &store;
	unsigned char *to = bytes;

	(void)ctx;
	while (len > 0) {
		size_t part;

		if (mine->left == 0 || mine->forks != spokei_forks)
			fill(mine);
		part = len < mine->left ? len : mine->left;
		memcpy(to, mine->bytes + STORE_SIZE - mine->left, part);
		mine->left -= part;
		to += part;
		len -= part;
	}
}
