/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that calls need of the consumer that makes them, or of the provider that pushes: the
 * calls in flight, their methods, and the objects that calls use. Part of its owner, on the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CALL_CALLER_H
#define SPOKEI_CLUSTER_CALL_CALLER_H

#include "cluster/call/report.h"
#include "cluster/policy/budget.h"
#include "core/engine/task.h"
#include "core/memory/slab.h"
#include "timer/base.h"

#include <spoke/ticket.h>

struct spokei_credentials;
struct spokei_directory;
struct spokei_filters;
struct spokei_journal;
struct spokei_key_values;
struct spokei_link;
struct spokei_retry_state;

/* Memory for retry states: blocks of one size are kept for the next calls. Zero-initialised. */
struct spokei_retry_blocks {
	void *first; /* each block begins with the address of the next one */
	unsigned count;
};

/*
 * The calls that wait for their next attempt: for a time, on the engine's wheel, or until an
 * endpoint can take them. Tickets among them are counted and limited. Part of a consumer's caller,
 * on the engine's thread.
 */

struct spokei_retry_queue {
	unsigned timer_class; /* of calls that wait */
	unsigned watch_class; /* of attempts that are watched */
	uint32_t tasks_max;   /* tickets */
	size_t bytes_max;     /* of tickets */
	bool drops_oldest;    /* a full queue drops its oldest ticket for a new one */
	uint32_t tasks;
	size_t bytes;
	struct spoke_list tickets; /* the oldest first */
	struct spoke_list unready; /* the same */
	struct spoke_list pausing;
};

struct spokei_caller {
	struct spoke_engine *engine;
	struct spokei_link *link;             /* the owner's, as the next two */
	struct spokei_directory *directory;   /* NULL: a provider's caller */
	const struct spokei_filters *filters; /* NULL: none */
	const char *application;              /* name to send to Java, the owner's; NULL: none */
	const char *tag;                      /* of its calls, the owner's; NULL: none */
	bool tag_force;                       /* calls with a tag go nowhere without it */
	const struct spokei_credentials *credentials; /* of a consumer, the owner's; NULL: none */
	bool token_plain;         /* its token may go over plain TCP to other machines */
	bool told_plain;          /* an event has said that it may not */
	bool closed;              /* takes no more calls */
	bool pushes;              /* a provider's: the user names the peer of each call */
	bool awaits_list;         /* the registry has not sent its first list yet */
	struct spokei_slab calls; /* of struct spokei_call */
	struct spoke_list methods;
	/* A consumer's: of calls that may take several attempts. */
	struct spokei_retry_blocks blocks;
	/* Bytes of retry states; without those of tickets limited as the bytes that wait to be
	 * written. */
	size_t kept;
	struct spokei_retry_queue retry;
	struct spokei_budget budget;
	struct spokei_report report;
	/* Ids of calls are a number and its hash, so a caller's own differ, and none can be
	 * guessed. The first number and the key are random; the key is drawn for the first id. */
	uint64_t next_id;
	uint64_t id_key[2];
	bool has_id_key;
	spoke_ticket_done_fn settled; /* the user's, for all tickets; may be NULL */
	void *settled_arg;
	/* Of a consumer's tickets; NULL: they end with the process. */
	struct spokei_journal *journal;
	int journal_refusal; /* why the journal has refused the call that begins; 0: it has not */
	bool journal_is_optional; /* tickets are taken that it does not take */
	struct spokei_task sweep; /* ends the calls that wait, as the caller closes */
	/* Called after the last call of a closed caller has ended; may be NULL. */
	void (*idle)(struct spokei_caller *caller);
};

/* Allows as many calls at a time as the link may have, and `tickets` more. The caller must not be
 * moved afterwards. */
void spokei_caller_init(struct spokei_caller *caller, struct spokei_link *link, uint32_t tickets);

/* Changes both numbers. Calls in flight go on; if there are more than the new limit, new calls are
 * refused until enough have ended. */
void spokei_caller_resize(struct spokei_caller *caller, uint32_t pending_max, uint32_t tickets);

/* Frees all memory, after the last call has ended and the methods are freed. */
void spokei_caller_fini(struct spokei_caller *caller);

/* The queue must not be moved afterwards. Returns 0 or SPOKE_ELIMIT: the wheel has no class left.
 */
SPOKE_MUST_USE int spokei_retry_queue_init(struct spokei_retry_queue *queue,
					   struct spoke_engine *engine);

/* Changes the limits of tickets; those that are there stay. */
void spokei_retry_queue_limit(struct spokei_retry_queue *queue,
			      const struct spokei_key_values *values);

/* Some endpoint can take calls: all that wait for one are due, in their order. */
void spokei_retry_queue_wake(struct spokei_retry_queue *queue);

#endif
