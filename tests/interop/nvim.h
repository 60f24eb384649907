/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A Neovim of one's own: in a folder of its own, ended by its number, gone when the test program
 * is. Waiting is done by turning an engine, with the patience of a busy machine.
 */
#ifndef TESTS_INTEROP_NVIM_H
#define TESTS_INTEROP_NVIM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <spoke/engine.h>

#include <sys/types.h>

#define MS UINT64_C(1000000)
#define SECOND (1000 * MS)

#define NVIM_PATIENCE_NS (60 * SECOND)
#define NVIM_PATH_MAX 96
#define NVIM_SKIPPED 77 /* what a test program returns that could not run */

struct nvim {
	char folder[32]; /* "": not opened */
	pid_t pid;       /* 0: none runs */
	int status;      /* of the last one, as waitpid() gives it */
};

/* 0: there is a Neovim. Else what main() returns, and it was said why: a failure where the packages
 * are ours to install (root on Debian), NVIM_SKIPPED elsewhere. */
int nvim_absent(void);

/* Makes the folder; undo with close, which also ends a Neovim that runs. */
void nvim_open(struct nvim *nvim);
void nvim_close(struct nvim *nvim);

/* The path of a file in the folder. */
void nvim_path(const struct nvim *nvim, const char *name, char path[NVIM_PATH_MAX]);

/*
 * Starts one, which runs nothing but these arguments (NULL at the end) and has of the environment
 * these ("NAME=value", NULL at the end) and what it cannot do without.
 */
void nvim_start(struct nvim *nvim, const char *const *arguments, const char *const *environment);

/* Has it ended? Looks without waiting; true when there was none. */
bool nvim_ended(struct nvim *nvim);

void nvim_signal(const struct nvim *nvim, int signal);

/* Turns the engine until `is_so(arg)`; the test fails when it never comes. */
void nvim_until(struct spoke_engine *engine, bool (*is_so)(void *arg), void *arg);

/* Turns the engine until Neovim has ended, which it has to do by itself. */
void nvim_until_ended(struct spoke_engine *engine, struct nvim *nvim);

/* Reads a file of the folder as a text; the test fails if there is none, or not enough room. */
void nvim_read(const struct nvim *nvim, const char *name, char *text, size_t size);

/* Writes one. */
void nvim_write(const struct nvim *nvim, const char *name, const char *text);

/* A test of both ways to connect; set_up_tcp(), set_up_unix() and tear_down() are the file's. */
#define NVIM_OVER(test, name, set_up)                                                              \
	{                                                                                          \
		name, test, set_up, tear_down, NULL                                                \
	}
#define NVIM_BOTH(test)                                                                            \
	NVIM_OVER(test, "" #test " over TCP", set_up_tcp),                                         \
		NVIM_OVER(test, "" #test " over a unix socket", set_up_unix)

#endif
