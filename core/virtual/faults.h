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
enum faulty_kind {
	FAULTY_MEMORY, /* the error is not used: the result is NULL */
	FAULTY_CONNECT,
	FAULTY_FINISH,
	FAULTY_LISTEN,
	FAULTY_ACCEPT,
	FAULTY_READ,
	FAULTY_WRITE,
	FAULTY_SHUT,
	FAULTY_SPARE,
	FAULTY_LOCAL,
	FAULTY_PEER,
	FAULTY_PARSE,
	FAULTY_RESOLVE,
	FAULTY_FILE_READ,
	FAULTY_FILE_REPLACE,
	FAULTY_FILE_APPEND,
	FAULTY_FILE_WATCH,
	FAULTY_FILE_LOCK,
	FAULTY_LOOP_OPEN,
	FAULTY_THREAD_START,
	FAULTY_PARKER_OPEN,
	FAULTY_GUARD,
	FAULTY_SIGNAL_OPEN,
	FAULTY_KINDS,
};

struct faulty_rule {
	uint64_t skip; /* calls that still go well */
	int error;     /* 0: no rule */
	bool for_ever; /* after them all fail, else one */
};

struct faulty {
	struct spoke_env env; /* to be used in place of the inner one */
	const struct spoke_env *inner;
	struct spoke_loop loop;
	struct spoke_threads threads;
	struct faulty_rule rules[FAULTY_KINDS];
	uint64_t calls[FAULTY_KINDS]; /* the failed ones included */
	uint64_t failed[FAULTY_KINDS];
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
void faulty_init(struct faulty *faulty, const struct spoke_env *inner);

/* Lets the `nth` call of this kind from now on (1: the next) fail with `error`, a negative errno.
 * Reading and growing fail before anything happened. Replaces the rule of this kind. */
void faulty_fail(struct faulty *faulty, enum faulty_kind kind, uint64_t nth, int error,
		 bool for_ever);

/* Takes all rules back; what was counted stays. */
void faulty_heal(struct faulty *faulty);

/* For the calls themselves: 0, or the error that this one shall have. */
int faulty_judge(struct faulty *faulty, enum faulty_kind kind);

/* What the environment has for files, if the inner one has any. */
extern const struct spoke_files faulty_files;

const char *faulty_kind_name(enum faulty_kind kind);

#endif
