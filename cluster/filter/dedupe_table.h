/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a provider for requests that bear an id: reads the id from the attachments of a
 * request, and decides whether its handler runs. A request with a known id gets the answer of the
 * first one. The memory is bounded by time, count and bytes; each method knows since when nothing
 * was forgotten, and so whether the first request of a repeat may have been forgotten, or never
 * came. Pure, except for its memory: the caller passes the time. Owned by
 * one provider, on its engine's thread.
 */
#ifndef SPOKEI_CLUSTER_FILTER_DEDUPE_TABLE_H
#define SPOKEI_CLUSTER_FILTER_DEDUPE_TABLE_H

#include "core/memory/map.h"
#include "core/memory/slab.h"

#include <spoke/value.h>

/* The class of exceptions about requests that may have run; with the code SPOKE_REPEAT_UNKNOWN it
 * is not known whether one has. */
#define SPOKEI_DEDUPE_STATE "java.lang.IllegalStateException"
#define SPOKEI_DEDUPE_ID SPOKEI_MESSAGE_ID  /* key of the attachment with the id: message.h */
#define SPOKEI_DEDUPE_REPEAT "spoke.repeat" /* ... and of that which marks a repeat */
#define SPOKEI_DEDUPE_ID_MAX 64u            /* bytes of an id */

struct spokei_dedupe_entry;
struct spokei_kept;
struct spokei_limit;
struct spokei_message;
struct spokei_route;

/* The kinds of attachments that requests come with. */
enum spokei_dedupe_mark {
	SPOKEI_DEDUPE_MARKED,
	SPOKEI_DEDUPE_UNMARKED,
	SPOKEI_DEDUPE_BAD_ID,     /* not a text of 1 to 64 bytes, or missing */
	SPOKEI_DEDUPE_BAD_REPEAT, /* not a text of the form below */
};

/* The marks of a request. */
struct spokei_dedupe_asked {
	struct spoke_span id; /* points into the attachments */
	bool repeat;          /* an earlier attempt was written */
	uint32_t instance;    /* ... to this instance of a provider; 0: not known, or to several */
	uint64_t since_ns;    /* ... not before this time of the instance's clock */
	uint64_t args;        /* hash of the arguments */
	uint64_t caller;      /* hash of the names that the caller has proven */
};

/* Reads id and mark; the hashes are the caller's part. The mark is empty, or the instance in 8
 * hexadecimal digits, a dot, and the time in ms in 1 to 12 such digits. Any thread. */
enum spokei_dedupe_mark spokei_dedupe_read(struct spoke_value attachments,
					   struct spokei_dedupe_asked *ret_asked);

struct spokei_dedupe_table {
	const struct spoke_env *env;
	struct spokei_map ids;     /* of entries, by method and id */
	struct spokei_slab cells;  /* memory of the entries */
	struct spoke_list order;   /* of entries whose request has ended, in that order */
	struct spoke_list methods; /* that are turned on, or were */
	uint64_t key[2];           /* of the hashes of a request */
	uint32_t instance;         /* a random number, another one after each start; 0: not on */
	bool named;                /* ... but this is that of a memory which outlives the process */
	uint64_t clock_ns;         /* the instance's clock is so far ahead of the engine's */
	uint32_t count_max;
	size_t bytes_max;
	size_t bytes;
	bool on;        /* at least one method was turned on */
	uint64_t early; /* entries that were forgotten before their time */
	void (*forgotten)(struct spokei_dedupe_entry *entry); /* of one that has `kept` */
};

/* Zero-initialised: turned off. */
struct spokei_dedupe_method {
	struct spokei_dedupe_table *table; /* NULL: no method of the table was ever turned on */
	struct spoke_list node;            /* of the table's methods */
	struct spoke_list ended;           /* of entries, as in the table's order */
	uint64_t keep_ns;                  /* 0: turned off */
	uint64_t horizon_ns; /* requests that came later than this are not forgotten */
	bool runs_unknown;   /* a repeat runs if its first request may have been forgotten */
	const struct spokei_route *route; /* of the table's owner */
};

/* An answer, with its value, attachments, text and class one after the other. */
struct spokei_dedupe_answer {
	int32_t error;
	int32_t error_code;
	uint32_t lens[4];
	uint8_t status;
	unsigned char bytes[];
};

#define SPOKEI_DEDUPE_SHORT 80u /* bytes of an answer that an entry has room for */

/* A request that runs or has run. */
struct spokei_dedupe_entry {
	struct spokei_dedupe_method *method;
	union {
		struct { /* while it runs, of the table's owner */
			struct spokei_limit *limit;
			struct spoke_list waiters;
		};
		struct {                         /* once it has ended */
			struct spoke_list node;  /* of the method's list */
			struct spoke_list order; /* of the table's list */
		};
	};
	uint64_t begun_ns;
	uint64_t ended_ns;
	uint64_t args;
	uint64_t caller;
	/* In `room`, or of its own memory; NULL: it runs, or its answer was too large to be kept.
	 */
	struct spokei_dedupe_answer *answer;
	struct spokei_kept *kept; /* of the table's owner; NULL: none */
	uint32_t answer_size;     /* bytes of its own memory */
	bool ended;
	uint8_t id_len;
	unsigned char key[sizeof(void *) + SPOKEI_DEDUPE_ID_MAX]; /* the method's address, the id */
	_Alignas(struct spokei_dedupe_answer) unsigned char room[SPOKEI_DEDUPE_SHORT];
};

/* `env` is borrowed for the table's life. */
void spokei_dedupe_init(struct spokei_dedupe_table *table, const struct spoke_env *env);

/* Frees all entries; none has waiters any more. The owners of methods are freed first, or later. */
void spokei_dedupe_fini(struct spokei_dedupe_table *table);

/* Makes the name of the instance invalid, e.g. because its clock has stood still. */
void spokei_dedupe_renew(struct spokei_dedupe_table *table);

/* Gives the table the name and the hashes of a memory that outlives the process, whose clock is so
 * far ahead of the engine's. */
void spokei_dedupe_name(struct spokei_dedupe_table *table, const unsigned char number[16],
			uint64_t clock_ns);

/* Changes the bounds; the oldest entries give way with the next request. */
void spokei_dedupe_bound(struct spokei_dedupe_table *table, uint32_t count_max, size_t bytes_max);

/* Turns a method on, off or otherwise. `keep_ns` 0: off, which forgets its entries. */
void spokei_dedupe_set(struct spokei_dedupe_table *table, struct spokei_dedupe_method *method,
		       uint64_t keep_ns, bool runs_unknown, uint64_t now_ns);

enum spokei_dedupe_step {
	SPOKEI_DEDUPE_RUN,          /* the entry is new; end it, or drop it */
	SPOKEI_DEDUPE_REPLAY,       /* the entry has the answer */
	SPOKEI_DEDUPE_WAIT,         /* the entry's request runs */
	SPOKEI_DEDUPE_NOT_KEPT,     /* the entry's request ran; its answer was too large */
	SPOKEI_DEDUPE_OTHER_ARGS,   /* the id belongs to a request with other arguments */
	SPOKEI_DEDUPE_OTHER_CALLER, /* ... of another caller */
	SPOKEI_DEDUPE_ELSEWHERE,    /* the first request was written to another instance */
	SPOKEI_DEDUPE_FORGOTTEN,    /* ... to this one, which may have forgotten it */
	SPOKEI_DEDUPE_FULL,         /* too many requests run */
	SPOKEI_DEDUPE_NO_MEMORY,
};

/* Decides on a request; *ret_entry is NULL without an entry. */
enum spokei_dedupe_step spokei_dedupe_ask(struct spokei_dedupe_method *method,
					  const struct spokei_dedupe_asked *asked, uint64_t now_ns,
					  struct spokei_dedupe_entry **ret_entry);

/* The request of a new entry was answered, and has no waiters any more. Keeps the answer, if there
 * is memory for it. The entry is the table's until it is forgotten. */
void spokei_dedupe_end(struct spokei_dedupe_entry *entry, const struct spokei_message *answer,
		       uint64_t now_ns);

/* Adds the entry of a request that was answered so long ago, in an earlier process; `answer` NULL:
 * it was too large. Of two with the same id the last one counts. Returns NULL if it is forgotten
 * already, or there is no memory. */
struct spokei_dedupe_entry *spokei_dedupe_restore(struct spokei_dedupe_method *method,
						  const struct spokei_dedupe_asked *asked,
						  const struct spokei_message *answer,
						  uint64_t age_ns, uint64_t now_ns);

/* Makes a message of the answer of an entry that has one; it points into the entry. */
struct spokei_message spokei_dedupe_answer_of(const struct spokei_dedupe_entry *entry);

/* The request of a new entry did not run: forgets it. */
void spokei_dedupe_drop(struct spokei_dedupe_entry *entry);

/* Forgets the entries whose time is over. Returns when the next one's is; UINT64_MAX: none. */
uint64_t spokei_dedupe_expire(struct spokei_dedupe_table *table, uint64_t now_ns);

#endif
