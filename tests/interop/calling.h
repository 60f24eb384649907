/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that calls a Neovim, and serves what that asks in return. */
#ifndef TESTS_INTEROP_CALLING_H
#define TESTS_INTEROP_CALLING_H

#include "tests/interop/nvim.h"

#include <spoke/consumer.h>

#define ENDINGS 1024u

struct ending {
	unsigned ends;
	int error;
	int32_t code;
	bool written;
	char value[256]; /* printed */
	char text[256];  /* of the error */
	unsigned char bytes[64];
	size_t len; /* of the value, of which `bytes` has what fits */
};

struct calling {
	bool is_unix;
	struct nvim nvim;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	char at[NVIM_PATH_MAX]; /* where Neovim listens */
	struct spoke_builder args;
	struct ending endings[ENDINGS];
	size_t waiting;             /* of them, from the first one on, for calling_wait() */
	struct spoke_request *held; /* a request of Neovim's */
	unsigned notes;
};

/* Starts a Neovim that listens, which may be the next one; and makes the consumer of it. */
void calling_start_nvim(struct calling *calling);
void calling_open(struct calling *calling, bool is_unix);
void calling_close(struct calling *calling);

/* Calls with what calling->args has. `ending` is one of calling->endings. */
void calling_begin_packed(struct calling *calling, const char *name, uint64_t timeout_ns,
			  bool one_way, struct ending *ending);

/* Calls with one text, or with nothing (NULL). */
void calling_begin(struct calling *calling, const char *name, const char *text,
		   struct ending *ending);

/* Waits for the first `count` endings. */
void calling_wait(struct calling *calling, size_t count);

/* Waits for the first ending, which is to come once; begins that and waits. */
struct ending *calling_finish(struct calling *calling);
struct ending *calling_do(struct calling *calling, const char *name, const char *text);

/* The number that Neovim gave the consumer's connection. */
long calling_channel(struct calling *calling);

/* Begins a call that Neovim does not answer before its request "hold" is; answers that one. */
void calling_begin_held(struct calling *calling, uint64_t timeout_ns, struct ending *ending);
void calling_release_held(struct calling *calling, unsigned char number);

#endif
