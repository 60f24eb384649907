/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a Neovim for a test: with a directory of its own, killed by its process id, and gone when
 * the test program ends. Waiting runs an engine, with a timeout for busy machines.
 */
#ifndef TESTS_INTEROP_NVIM_H
#define TESTS_INTEROP_NVIM_H

#include "tests/support/test.h"

#include <spoke/engine.h>

#include <sys/types.h>

#define NVIM_PATIENCE_NS (60 * SECOND)
#define NVIM_PATH_MAX 96
#define NVIM_SKIPPED 77 /* exit status of a test program that was skipped */

struct nvim {
	char folder[32]; /* empty: not opened */
	pid_t pid;       /* 0: not running */
	int status;      /* of the last process, as from waitpid() */
};

/* Returns 0 if Neovim is installed. Otherwise returns the exit status of main() after printing the
 * reason: a failure where packages can be installed (root on Debian), else NVIM_SKIPPED. */
int nvim_absent(void);

/* Creates the directory; close removes it and ends a running Neovim. */
void nvim_open(struct nvim *nvim);
void nvim_close(struct nvim *nvim);

/* Writes the path of a file in the directory. */
void nvim_path(const struct nvim *nvim, const char *name, char path[NVIM_PATH_MAX]);

/* Starts Neovim with only these arguments (NULL at the end). Its environment consists of these
 * variables ("NAME=value", NULL at the end) and the indispensable ones. */
void nvim_start(struct nvim *nvim, const char *const *arguments, const char *const *environment);

/* Returns whether Neovim has ended, or was not running. Does not wait. */
bool nvim_ended(struct nvim *nvim);

void nvim_signal(const struct nvim *nvim, int signal);

/* Runs the engine until `is_so(arg)`; the test fails if that never happens. */
void nvim_until(struct spoke_engine *engine, bool (*is_so)(void *arg), void *arg);

/* Runs the engine until Neovim has ended by itself. */
void nvim_until_ended(struct spoke_engine *engine, struct nvim *nvim);

/* Reads a file of the directory as a text; the test fails if it is missing or too long. */
void nvim_read(const struct nvim *nvim, const char *name, char *text, size_t size);

/* Writes a file of the directory. */
void nvim_write(const struct nvim *nvim, const char *name, const char *text);

/* Defines a test for both kinds of sockets; the file defines set_up_tcp(), set_up_unix() and
 * tear_down(). */
#define NVIM_TEST(rule)                                                                            \
	static void rule(void **state);                                                            \
	TEST_AGAIN(rule, over_tcp, .set_up = set_up_tcp, .tear_down = tear_down);                  \
	TEST_AGAIN(rule, over_unix, .set_up = set_up_unix, .tear_down = tear_down);                \
	static void rule(__attribute__((unused)) void **state)

#endif
