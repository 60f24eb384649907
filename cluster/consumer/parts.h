/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The struct of a consumer, for the files of this folder. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONSUMER_PARTS_H
#define SPOKEI_CLUSTER_CONSUMER_PARTS_H

#include "core/engine/members.h"
#include "core/engine/task.h"

#include <spoke/url.h>

#include <stdatomic.h>

struct spokei_balancer_state;
struct spokei_caller;
struct spokei_consumer_journal;
struct spokei_consumer_settings;
struct spokei_weak;
struct spokei_directory;
struct spokei_filters;
struct spokei_link;
struct spokei_route;
struct spokei_credential_set;
struct spokei_credentials;
struct spokei_subscription;
struct spokei_tls;

struct spoke_consumer {
	struct spoke_engine *engine;
	struct spokei_member member; /* of the engine's members */
	struct spokei_link *link;    /* these lie in one block of memory with the consumer */
	struct spokei_consumer_settings *settings;
	struct spokei_tls *tls;       /* NULL: plain connections */
	struct spokei_caller *caller; /* closed: no more calls */
	struct spokei_directory *directory;
	struct spokei_balancer_state *balancer_state; /* of methods without their own balancer */
	struct spokei_filters *filters;
	struct spokei_route *pushed; /* the handler of pushes */
	struct spokei_credential_set *credentials;
	/* ... those in force: of options, else of the service, else of all consumers */
	const struct spokei_credentials *shown;
	struct spokei_consumer_journal *journal;  /* NULL: tickets end with the process */
	struct spokei_subscription *subscription; /* NULL: at no registry */
	_Atomic(struct spokei_weak *) weak;       /* for futures; NULL: none was made yet */
	bool peers_of_file; /* providers bear the names that the file expects */
	bool ended;         /* takes no calls, and has no connections */
	bool freed;         /* its memory is freed with the last connection */
	struct spokei_task finalise;
};

/* Begins to read the journal of a consumer that has one. Returns 0, or an error that the engine's
 * newest event explains. */
SPOKE_MUST_USE int spokei_consumer_journal_begin(struct spoke_consumer *consumer);

/* Ends the journal, after the last call. Returns whether it is closed; else `finalise` runs again
 * when it is. */
bool spokei_consumer_journal_end(struct spoke_consumer *consumer);

/* Frees a journal that is closed; NULL is fine. */
void spokei_consumer_journal_free(struct spoke_consumer *consumer);

/* Returns the consumer that a caller belongs to. On any thread. */
struct spoke_consumer *spokei_consumer_calling(struct spokei_caller *caller);

/* Has methods and balancer use the settings of the consumer, which have changed. */
void spokei_consumer_inherit(struct spoke_consumer *consumer);

/* Sets the limits of its calls to those of the settings. */
void spokei_consumer_limit(struct spoke_consumer *consumer);

#endif
