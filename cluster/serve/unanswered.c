/* SPDX-License-Identifier: Apache-2.0 */
/* Looks for requests that are not answered in time. */
#include "cluster/serve/unanswered.h"

#include "cluster/serve/parts.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/engine/engine.h"
#include "core/engine/figures.h"
#include "transport/conn/conn.h"
#include "transport/conn/link.h"

#include <inttypes.h>

#define NS_PER_MS UINT64_C(1000000)
#define PAUSE_NS (100 * NS_PER_MS) /* after a request or a look, before the next look */
#define PEER_TEXT 128u             /* bytes of an address */

/* Without a timer, as the wheel is full, the page still lists the request when it ends. */
static void look_at(struct spokei_unanswered *unanswered, uint64_t due_ns)
{
	struct spoke_wheel *wheel = unanswered->link->engine->wheel;
	struct spoke_timer *timer = &unanswered->timer;

	if (!spoke_timer_armed(timer))
		(void)!spoke_wheel_schedule(wheel, timer, unanswered->timer_class, due_ns);
	else if (due_ns < spoke_wheel_deadline(wheel, timer))
		(void)!spoke_wheel_reschedule(wheel, timer, due_ns);
}

static uint64_t due_of(const struct spoke_request *request)
{
	return spokei_later(request->arrived_ns, request->figures->slow_ns);
}

static void report(const struct spoke_request *request)
{
	struct spoke_engine *engine = request->engine;
	uint64_t age_ms = (engine->begin_ns - request->arrived_ns) / NS_PER_MS;
	char names[SPOKEI_FIGURES_TEXT];
	char peer[PEER_TEXT];

	spokei_figures_print(request->figures, names);
	(void)spoke_request_peer(request, peer, sizeof(peer));
	spokei_log(engine->log, SPOKE_LOG_WARN, "provider", SPOKEI_LOG_CALL, engine->begin_ns,
		   "the handler of %s, has not answered %s after %" PRIu64 " ms (slow.after)",
		   names, peer, age_ms);
}

/* Returns when the next request of the connection is due. */
static uint64_t look_through(const struct spokei_conn *conn, uint64_t now_ns)
{
	const struct spoke_list *all = &conn->servings;
	uint64_t next_ns = UINT64_MAX;

	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		struct spokei_serving *serving = spoke_container_of(node, struct spokei_serving,
								    node);
		struct spoke_request *request = spoke_container_of(serving, struct spoke_request,
								   serving);
		uint64_t due_ns = due_of(request);

		if (request->slow_told)
			continue;
		if (due_ns <= now_ns) {
			request->slow_told = true;
			report(request);
		} else if (due_ns < next_ns) {
			next_ns = due_ns;
		}
	}
	return next_ns;
}

static void unanswered_due(struct spoke_timer *timer, void *arg)
{
	struct spokei_unanswered *unanswered = spoke_container_of(timer, struct spokei_unanswered,
								  timer);
	const struct spoke_engine *engine = arg;
	const struct spoke_list *conns = &unanswered->link->conns;
	uint64_t next_ns = UINT64_MAX;

	for (struct spoke_list *node = conns->next; node != conns; node = node->next) {
		uint64_t due_ns = look_through(spoke_container_of(node, struct spokei_conn, node),
					       engine->begin_ns);

		next_ns = due_ns < next_ns ? due_ns : next_ns;
	}
	if (next_ns < engine->begin_ns + PAUSE_NS)
		next_ns = engine->begin_ns + PAUSE_NS;
	if (next_ns < UINT64_MAX)
		look_at(unanswered, next_ns);
}

void spokei_unanswered_add(struct spokei_unanswered *unanswered,
			   const struct spoke_request *request)
{
	uint64_t first_ns = request->arrived_ns + PAUSE_NS;
	uint64_t due_ns = due_of(request);

	if (due_ns < UINT64_MAX)
		look_at(unanswered, due_ns > first_ns ? due_ns : first_ns);
}

int spokei_unanswered_init(struct spokei_unanswered *unanswered, struct spokei_link *link)
{
	unanswered->link = link;
	link->unanswered = unanswered;
	return spokei_engine_class(link->engine, "unanswered", unanswered_due,
				   &unanswered->timer_class);
}

void spokei_unanswered_fini(struct spokei_unanswered *unanswered)
{
	(void)spoke_wheel_cancel(unanswered->link->engine->wheel, &unanswered->timer);
}
