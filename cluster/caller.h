/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What calls need of whoever makes them, a consumer or a provider that pushes: the calls that are
 * under way, and the methods they are of. Which connection a call takes is not decided here. Part
 * of its owner, on the engine's thread.
 */
#ifndef SPOKEI_CALLER_H
#define SPOKEI_CALLER_H

#include "core/slab.h"
#include "core/task.h"
#include "transport/link.h"
#include "transport/pending.h"

#include <spoke/call.h>

struct spokei_caller {
	struct spoke_engine *engine;
	struct spokei_link *link; /* the owner's */
	bool closed;              /* no more calls */
	bool pushes;              /* a provider's: each call says whom it is for */
	struct spokei_slab calls; /* of struct spokei_call, by handle */
	struct spoke_list methods;
	/* It is closed, and its last call has ended. NULL: not wanted. */
	void (*idle)(struct spokei_caller *caller);
};

struct spokei_call {
	struct spokei_pending attempt;
	struct spokei_caller *caller;
	uint64_t handle;
	spoke_done done; /* may be NULL */
	void *arg;
	bool cancelled;            /* ends so, and soon */
	struct spokei_task cancel; /* on the engine's soon */
};

struct spoke_method {
	struct spokei_caller *caller;
	struct spoke_list node;        /* of the caller */
	struct spokei_message request; /* what every request says; points into `texts` */
	struct spokei_prefix {
		const struct spokei_wire *wire; /* the prefix is of this one; NULL: none yet */
		struct spokei_buffer bytes;
	} prefix;
	uint64_t timeout_ns;
	size_t type_count; /* of a generic call, if they are given: as many arguments */
	size_t size;       /* of this, with its texts */
	unsigned char texts[];
};

/* What a method is where its options do not say it. */
struct spokei_method_presets {
	const char *service; /* "": none */
	const char *version;
	const char *group;
	uint64_t timeout_ns;
	const char *advice; /* said when there is no service; NULL: it needs none */
};

/* Takes at most as many calls at a time as the link may have; it must not be moved afterwards. */
void spokei_caller_init(struct spokei_caller *caller, struct spokei_link *link);

/* No call is under way any more: gives all memory back, that of the methods too. */
void spokei_caller_fini(struct spokei_caller *caller);

/* As spoke_consumer_method(). */
SPOKE_MUST_USE int spokei_method_new(struct spokei_caller *caller, const char *name,
				     const struct spoke_method_options *options,
				     const struct spokei_method_presets *presets,
				     struct spoke_method **ret_method);

#endif
