/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Requests of a provider that are not answered yet: a line of the log names each whose handler has
 * taken the method's slow.after. One timer for all of them, armed while there are any. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_UNANSWERED_H
#define SPOKEI_CLUSTER_SERVE_UNANSWERED_H

#include <spoke/wheel.h>

struct spoke_request;
struct spokei_link;

struct spokei_unanswered {
	struct spoke_timer timer;
	struct spokei_link *link;
	unsigned timer_class;
};

/* Watches the requests of a link. Returns 0 or SPOKE_ELIMIT. */
SPOKE_MUST_USE int spokei_unanswered_init(struct spokei_unanswered *unanswered,
					  struct spokei_link *link);
void spokei_unanswered_fini(struct spokei_unanswered *unanswered);

/* A request is registered at its connection, to be answered later. */
void spokei_unanswered_add(struct spokei_unanswered *unanswered,
			   const struct spoke_request *request);

#endif
