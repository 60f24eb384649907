/* SPDX-License-Identifier: Apache-2.0 */
/* A consumer that calls a Neovim and serves the requests that Neovim sends back. */
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
	char text[256];  /* text of the error */
	unsigned char bytes[64];
	size_t len; /* length of the value; `bytes` contains as much of it as fits */
};

struct calling {
	bool is_unix;
	struct nvim nvim;
	struct spoke_engine *engine;
	struct spoke_consumer *consumer;
	char at[NVIM_PATH_MAX]; /* address at which Neovim listens */
	struct spoke_builder args;
	struct ending endings[ENDINGS];
	size_t waiting; /* number of endings for which calling_wait() waits, from the first on */
	struct spoke_request *held; /* a request from Neovim */
	unsigned notes;
};

/* Starts a Neovim that listens, and creates the consumer; may be repeated for another Neovim. */
void calling_start_nvim(struct calling *calling);
void calling_open(struct calling *calling, bool is_unix);
void calling_close(struct calling *calling);

/* Calls with the arguments in calling->args. `ending` is one of calling->endings. */
void calling_begin_packed(struct calling *calling, const char *name, uint64_t timeout_ns,
			  bool one_way, struct ending *ending);

/* Calls with one text, or without arguments (NULL). */
void calling_begin(struct calling *calling, const char *name, const char *text,
		   struct ending *ending);

/* Waits for the first `count` endings. */
void calling_wait(struct calling *calling, size_t count);

/* Waits for the first ending, which must occur once; the second function begins the call, too. */
struct ending *calling_finish(struct calling *calling);
struct ending *calling_do(struct calling *calling, const char *name, const char *text);

/* Returns Neovim's number of the consumer's connection. */
long calling_channel(struct calling *calling);

/* Begins a call that Neovim answers only after its request "hold" was answered; answers that one.
 */
void calling_begin_held(struct calling *calling, uint64_t timeout_ns, struct ending *ending);
void calling_release_held(struct calling *calling, unsigned char number);

#endif
