/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An entry of the registry in ZooKeeper, and the functions that its files share. Private to the
 * registry.
 */
#ifndef SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_ENTRY_H
#define SPOKEI_CLUSTER_REGISTRY_ZOOKEEPER_ENTRY_H

#include "cluster/registry/zookeeper/session.h"
#include "core/memory/buffer.h"

#include <spoke/registry.h>

#include <string.h>

#define SPOKEI_ZOO_ROUNDS_MAX 8u /* others change the same node */

struct spokei_zoo_registry {
	struct spoke_engine *engine;
	const struct spoke_registry_up *up;
	void *up_arg;
	struct spokei_zoo_session *session;
	struct spoke_list entries;
};

/* The request of an entry that is in flight. */
enum spokei_zoo_step {
	SPOKEI_ZOO_STEP_NONE,
	/* of a publication */
	SPOKEI_ZOO_STEP_CREATE,
	SPOKEI_ZOO_STEP_PARENTS, /* creates the parents of the node, or of a subscription's folder
				  */
	SPOKEI_ZOO_STEP_OWNER,   /* asks for the owner of the existing node */
	SPOKEI_ZOO_STEP_CLEAR,   /* deletes a node of another session */
	SPOKEI_ZOO_STEP_WATCH,   /* begins to watch the node */
	SPOKEI_ZOO_STEP_SEEK,    /* looks for older nodes */
	SPOKEI_ZOO_STEP_FORMER,  /* asks for the owner of an older node */
	SPOKEI_ZOO_STEP_PURGE,   /* ... deletes that node */
	/* ... of an instance */
	SPOKEI_ZOO_STEP_METADATA, /* creates the node of the metadata */
	SPOKEI_ZOO_STEP_MAPPING,  /* asks for the mapping of a service */
	SPOKEI_ZOO_STEP_ADD,      /* sets it, with the application */
	SPOKEI_ZOO_STEP_FIRST,    /* creates it */
	SPOKEI_ZOO_STEP_SET,      /* changes the node of the instance */
	SPOKEI_ZOO_STEP_CHECK,    /* asks whether the node still exists */
	/* of a removal */
	SPOKEI_ZOO_STEP_FIND,
	SPOKEI_ZOO_STEP_DELETE,
	/* of a subscription */
	SPOKEI_ZOO_STEP_LIST,
	SPOKEI_ZOO_STEP_MISSING, /* asks whether the node of a rule exists now, and watches that */
	SPOKEI_ZOO_STEP_CHILD,   /* asks for the next instance of a list */
};

/* An entry. Its struct is zero before it is wanted. */
struct spokei_zoo_entry {
	struct spoke_registry_entry of;
	struct spoke_list node; /* next == NULL: not in the list */
	struct spokei_zoo_registry *registry;
	struct spokei_zoo_asker asker;
	struct spoke_alarm alarm; /* timeout, or pause before a list is requested again */
	enum spokei_zoo_step step;
	enum spokei_zoo_step
		goal;     /* the step before the parents are made, which comes again after them */
	bool wanted;      /* false: to be removed */
	bool asked;       /* its state is to be reported */
	bool held;        /* it was reported as true, and is watched */
	bool begun;       /* a request was sent in this session */
	bool changed;     /* its node or folder has changed since the request */
	uint64_t connect; /* number of the connection at which it has begun; 0: none */
	char *path;       /* of the node or the folder, in a block of its own */
	size_t path_size;
	size_t folder_len; /* length of the folder's path */
	size_t made;       /* length of the path whose parents exist */
	unsigned rounds;
	/* Paths of older nodes, each with its NUL; of an instance: services; of a list of
	 * instances: their names. */
	struct spokei_buffer formers;
	size_t former;             /* where the next one begins */
	struct spokei_buffer urls; /* of a list of instances: those that were read ... */
	size_t count;              /* ... and their number */
	uint64_t listed_ns;        /* ... and the time of the request */
};

static inline bool spokei_zoo_is_consumer(const struct spokei_zoo_entry *entry)
{
	return strcmp(entry->of.category, SPOKE_REGISTRY_CONSUMERS) == 0;
}

static inline bool spokei_zoo_is_instance(const struct spokei_zoo_entry *entry)
{
	return strcmp(entry->of.category, SPOKE_REGISTRY_INSTANCES) == 0;
}

/* --- outcomes and requests */

/* Reports that the entry is there, or is no longer there. */
void spokei_zoo_done(struct spokei_zoo_entry *entry);

/* Reports a failure or a loss. */
void spokei_zoo_fail(struct spokei_zoo_entry *entry, int error);

/* Sends a request; if that is impossible, the entry fails. */
void spokei_zoo_request(struct spokei_zoo_entry *entry, enum spokei_zoo_step step,
			enum spokei_zoo_ask what, const char *path, const char *text);

/* Creates the next parent of the node, or part of the folder. Returns false if all exist. */
bool spokei_zoo_make_parent(struct spokei_zoo_entry *entry);

/* Sets the path to a folder, in place of an older one. Returns 0 or ENOMEM. */
int spokei_zoo_set_folder(struct spokei_zoo_entry *entry, const char *service,
			  const char *category);

/* Sets the path to the node of an instance. Returns as above. */
int spokei_zoo_name_instance(struct spokei_zoo_entry *entry);

/* The timeout of a request, or the end of a pause, after which the entry begins again. */
void spokei_zoo_entry_due(struct spoke_alarm *alarm);

/* --- publications */

/* Begins to publish, or checks a publication that was there. */
void spokei_zoo_publish(struct spokei_zoo_entry *entry);
void spokei_zoo_check(struct spokei_zoo_entry *entry);

/* Take the answers to requests. */
void spokei_zoo_publication_answered(struct spokei_zoo_entry *entry,
				     const struct spokei_zoo_answer *answer);
void spokei_zoo_removal_answered(struct spokei_zoo_entry *entry,
				 const struct spokei_zoo_answer *answer);

/* --- subscriptions */

/* Requests the list. */
void spokei_zoo_list(struct spokei_zoo_entry *entry);

/* The list has changed. */
void spokei_zoo_list_touched(struct spokei_zoo_entry *entry);

void spokei_zoo_subscription_answered(struct spokei_zoo_entry *entry,
				      const struct spokei_zoo_answer *answer);

#endif
