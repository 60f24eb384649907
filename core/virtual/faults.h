/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An environment around another one that lets calls fail: the N-th of a kind, once or from then on.
 * It counts calls, descriptors and memory, so that leaks are seen, and is strict about memory: a
 * block moves whenever its size changes, new bytes are not zero, and a wrong old size, a foreign or
 * a freed block stops the program. One thread, but for memory.
 */
#ifndef SPOKEI_CORE_VIRTUAL_FAULTS_H
#define SPOKEI_CORE_VIRTUAL_FAULTS_H

#include <spoke/env.h>

#include <stdatomic.h>

/* Kinds of calls that can fail. */
enum spokei_faults_kind {
	SPOKEI_FAULTS_MEMORY, /* the error is not used: the result is NULL */
	SPOKEI_FAULTS_CONNECT,
	SPOKEI_FAULTS_FINISH,
	SPOKEI_FAULTS_LISTEN,
	SPOKEI_FAULTS_ACCEPT,
	SPOKEI_FAULTS_READ,
	SPOKEI_FAULTS_WRITE,
	SPOKEI_FAULTS_SHUT,
	SPOKEI_FAULTS_SPARE,
	SPOKEI_FAULTS_LOCAL,
	SPOKEI_FAULTS_PEER,
	SPOKEI_FAULTS_PARSE,
	SPOKEI_FAULTS_RESOLVE,
	SPOKEI_FAULTS_FILE_READ,
	SPOKEI_FAULTS_FILE_REPLACE,
	SPOKEI_FAULTS_FILE_APPEND,
	SPOKEI_FAULTS_FILE_WATCH,
	SPOKEI_FAULTS_FILE_LOCK,
	SPOKEI_FAULTS_LOOP_OPEN,
	SPOKEI_FAULTS_THREAD_START,
	SPOKEI_FAULTS_PARKER_OPEN,
	SPOKEI_FAULTS_GUARD,
	SPOKEI_FAULTS_SIGNAL_OPEN,
	SPOKEI_FAULTS_KINDS,
};

struct spokei_faults_rule {
	uint64_t skip; /* calls that still go well */
	int error;     /* 0: no rule */
	bool for_ever; /* after them all fail, else one */
};

struct spokei_faults {
	struct spoke_env env; /* to be used in place of the inner one */
	const struct spoke_env *inner;
	struct spoke_loop loop;
	struct spoke_threads threads;
	struct spokei_faults_rule rules[SPOKEI_FAULTS_KINDS];
	uint64_t calls[SPOKEI_FAULTS_KINDS]; /* the failed ones included */
	uint64_t failed[SPOKEI_FAULTS_KINDS];
	atomic_flag busy; /* with what is below */
	size_t blocks;    /* memory out now */
	size_t bytes;
	size_t bytes_peak;
	size_t largest; /* demand since the last reset of this field */
	size_t fds;     /* descriptors open now */
	/* Another one may close what is opened here, so only the sum of `fds` of all tells how many
	 * are open; one alone may be below 0. */
	bool trades;
};

/* Wraps `inner`, borrowed while `faulty` is used; without rules it behaves as the inner one. */
void spokei_faults_init(struct spokei_faults *faulty, const struct spoke_env *inner);

/* Lets the `nth` call of this kind from now on (1: the next) fail with `error`, a negative errno.
 * Reading and growing fail before anything happened. Replaces the rule of this kind. */
void spokei_faults_fail(struct spokei_faults *faulty, enum spokei_faults_kind kind, uint64_t nth,
			int error, bool for_ever);

/* Takes all rules back; what was counted stays. */
void spokei_faults_heal(struct spokei_faults *faulty);

/* For the calls themselves: 0, or the error that this one shall have. */
int spokei_faults_judge(struct spokei_faults *faulty, enum spokei_faults_kind kind);

/* What the environment has for files, if the inner one has any. */
extern const struct spoke_files spokei_faults_files;

const char *spokei_faults_kind_name(enum spokei_faults_kind kind);

#endif
