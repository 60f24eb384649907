/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A wrapper around an environment that lets calls fail: the N-th of a kind, once or from then on.
 * It counts calls, descriptors and memory, so that leaks show, and is strict about memory: a block
 * moves whenever its size changes, new bytes are not zero, and a wrong old size, a foreign or a
 * freed block stops the program. One thread, except for memory.
 */
#ifndef SPOKEI_CORE_VIRTUAL_FAULTS_H
#define SPOKEI_CORE_VIRTUAL_FAULTS_H

#include <spoke/env.h>

#include <stdatomic.h>

/* The kinds of calls that can fail. */
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
	SPOKEI_FAULTS_FILE_IS_LOCKED,
	SPOKEI_FAULTS_FILE_SWEEP,
	SPOKEI_FAULTS_FILE_OPEN_LOG,
	SPOKEI_FAULTS_FILE_WRITE_AT,
	SPOKEI_FAULTS_FILE_ALLOCATE,
	SPOKEI_FAULTS_FILE_SYNC,
	SPOKEI_FAULTS_FILE_SYNC_FOLDER,
	SPOKEI_FAULTS_FILE_LIST,
	SPOKEI_FAULTS_FILE_REMOVE,
	SPOKEI_FAULTS_LOOP_OPEN,
	SPOKEI_FAULTS_THREAD_START,
	SPOKEI_FAULTS_PARKER_OPEN,
	SPOKEI_FAULTS_GUARD,
	SPOKEI_FAULTS_SIGNAL_OPEN,
	SPOKEI_FAULTS_NOTIFY,
	SPOKEI_FAULTS_CREDENTIALS,
	SPOKEI_FAULTS_HOST_ID,
	SPOKEI_FAULTS_SHARE,
	SPOKEI_FAULTS_SHARED,
	SPOKEI_FAULTS_KINDS,
};

struct spokei_faults_rule {
	uint64_t skip; /* calls that still succeed */
	int error;     /* 0: no rule */
	bool for_ever; /* all later calls fail; else only one */
};

struct spokei_faults {
	struct spoke_env env; /* use this in place of the inner environment */
	const struct spoke_env *inner;
	struct spoke_loop loop;
	struct spoke_threads threads;
	struct spokei_faults_rule rules[SPOKEI_FAULTS_KINDS];
	uint64_t calls[SPOKEI_FAULTS_KINDS]; /* including the failed ones */
	uint64_t failed[SPOKEI_FAULTS_KINDS];
	atomic_flag busy; /* guards the fields below */
	size_t blocks;    /* blocks of memory in use */
	size_t bytes;
	size_t bytes_peak;
	size_t largest; /* largest request since this field was last reset */
	size_t fds;     /* open descriptors */
	size_t shares;  /* shared memory in use */
	/* Another environment may close a descriptor that was opened here. So only the sum of `fds`
	 * over all of them is exact; a single one may be below 0. */
	bool trades;
};

/* Wraps `inner`, borrowed while `faulty` is used. Without rules it behaves like the inner
 * environment. */
void spokei_faults_init(struct spokei_faults *faulty, const struct spoke_env *inner);

/* Lets the `nth` call of this kind from now on (1: the next) fail with `error`, a negative errno.
 * Reading and growing fail before anything happens. Replaces the rule of this kind. */
void spokei_faults_fail(struct spokei_faults *faulty, enum spokei_faults_kind kind, uint64_t nth,
			int error, bool for_ever);

/* Removes all rules; counters stay. */
void spokei_faults_heal(struct spokei_faults *faulty);

const char *spokei_faults_kind_name(enum spokei_faults_kind kind);

#endif
