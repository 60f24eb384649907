/* SPDX-License-Identifier: Apache-2.0 */
/* Finds, makes and frees the figures of methods, and keeps the lists of slow calls and requests. */
#include "core/engine/figures.h"
#include "core/base/env.h"
#include "core/base/log.h"

#include <inttypes.h>
#include <stdio.h>

/* --- counting */

const char *spokei_figures_side_name(enum spokei_figures_side side)
{
	return side == SPOKEI_FIGURES_CALLS ? "calls" : "requests";
}

uint64_t spokei_figures_in_flight(const struct spokei_figures *figures)
{
	if (figures->side == SPOKEI_FIGURES_REQUESTS)
		return spokei_figures_get(figures, SPOKE_STAT_REQUESTS) -
		       spokei_figures_get(figures, SPOKE_STAT_REQUESTS_OK) -
		       spokei_figures_failed(figures);
	return spokei_figures_get(figures, SPOKE_STAT_CALLS) -
	       spokei_figures_get(figures, SPOKE_STAT_CALLS_OK) -
	       spokei_figures_get(figures, SPOKE_STAT_CALLS_DEFERRED) -
	       spokei_figures_failed(figures);
}

uint64_t spokei_figures_failed(const struct spokei_figures *figures)
{
	bool calls = figures->side == SPOKEI_FIGURES_CALLS;
	unsigned stat = calls ? SPOKE_STAT_CALLS_REMOTE : SPOKE_STAT_REQUESTS_ERROR;
	unsigned last = calls ? SPOKE_STAT_CALLS_FAILED : SPOKE_STAT_REQUESTS_ABANDONED;
	uint64_t sum = 0;

	for (; stat <= last; stat++)
		sum += spokei_figures_get(figures, (enum spoke_stat)stat);
	return sum;
}

/* The first requests are timed more often, so that a few of them have figures, too. */
void spokei_figures_timed(struct spokei_figures *figures, uint64_t took_ns)
{
	if (figures->timed_for == 0)
		figures->timed_for = 1;
	spoke_histogram_add_many(&figures->took, took_ns, figures->timed_for);
	if (figures->timed_for < SPOKEI_FIGURES_TIMED && figures->took.count > 2)
		figures->timed_for *= 2;
	figures->until_timed = figures->timed_for - 1;
}

void spokei_figures_queued(struct spokei_figures *figures, uint64_t queued_ns)
{
	if (figures->queued == NULL)
		figures->queued = spokei_alloc(figures->engine->env, 1, sizeof(*figures->queued));
	if (figures->queued)
		spokei_histogram_add(figures->queued, queued_ns);
}

void spokei_figures_took(const struct spoke_engine *engine, enum spokei_figures_side side,
			 struct spoke_histogram *ret)
{
	const struct spokei_figures *figures = NULL;

	*ret = (struct spoke_histogram){ 0 };
	while ((figures = spokei_figures_next(engine, figures)) != NULL)
		if (figures->side == side && figures->took.count > 0)
			spoke_histogram_merge(ret, &figures->took);
}

/* --- the sets */

static bool is_text(const char *text, struct spoke_span span)
{
	return strlen(text) == span.len && memcmp(text, span.data, span.len) == 0;
}

/* Counts the sets on the way. */
static struct spokei_figures *find(const struct spoke_engine *engine, enum spokei_figures_side side,
				   struct spoke_span service, struct spoke_span method,
				   size_t *ret_count)
{
	const struct spoke_list *all = &engine->figures;

	*ret_count = 0;
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		struct spokei_figures *figures = spoke_container_of(node, struct spokei_figures,
								    node);

		if (figures->side == side && is_text(figures->method, method) &&
		    is_text(figures->service, service))
			return figures;
		++*ret_count;
	}
	return NULL;
}

static struct spokei_figures *make(struct spoke_engine *engine, enum spokei_figures_side side,
				   struct spoke_span service, struct spoke_span method)
{
	size_t size = sizeof(struct spokei_figures) + service.len + method.len + 2;
	struct spokei_figures *figures = spokei_alloc(engine->env, 1, size);
	char *behind;

	if (figures == NULL)
		return NULL;
	figures->engine = engine;
	figures->side = side;
	figures->slow_ns = SPOKEI_FIGURES_SLOW_NS;
	figures->size = size;
	behind = figures->service + service.len + 1;
	if (service.len)
		memcpy(figures->service, service.data, service.len);
	if (method.len)
		memcpy(behind, method.data, method.len);
	figures->method = behind;
	spokei_list_append(&engine->figures, &figures->node);
	return figures;
}

struct spokei_figures *spokei_figures_or_other(struct spoke_engine *engine,
					       enum spokei_figures_side side,
					       struct spoke_span service, struct spoke_span method)
{
	static const struct spoke_span other = {
		(const unsigned char *)SPOKEI_FIGURES_OTHER,
		sizeof(SPOKEI_FIGURES_OTHER) - 1,
	};
	struct spokei_figures *figures;
	size_t count;

	figures = find(engine, side, service, method, &count);
	/* The last places are for the two sets of all other methods. */
	if (figures == NULL && count + 2 >= SPOKEI_FIGURES_MAX) {
		service = other;
		method = other;
		figures = find(engine, side, service, method, &count);
	}
	return figures ? figures : make(engine, side, service, method);
}

const struct spokei_figures *spokei_figures_next(const struct spoke_engine *engine,
						 const struct spokei_figures *before)
{
	struct spoke_list *node = before ? before->node.next : engine->figures.next;

	return node == &engine->figures ? NULL
					: spoke_container_of(node, struct spokei_figures, node);
}

#define NAME_SHOWN 64u /* bytes of a name */

void spokei_figures_print(const struct spokei_figures *figures, char text[SPOKEI_FIGURES_TEXT])
{
	char service[NAME_SHOWN];
	char method[NAME_SHOWN];

	(void)spokei_log_escape_end(service, sizeof(service), figures->service,
				    strlen(figures->service));
	(void)spokei_log_escape(method, sizeof(method), figures->method, strlen(figures->method));
	(void)snprintf(text, SPOKEI_FIGURES_TEXT, "\"%s\", method \"%s\"", service, method);
}

/* --- handlers that hold the loop */

#define NS_PER_MS UINT64_C(1000000)

void spokei_figures_held(struct spoke_engine *engine, uint64_t now_ns)
{
	uint64_t held_ms = (now_ns - engine->handler_ns) / NS_PER_MS;
	char names[SPOKEI_FIGURES_TEXT];

	spokei_count(engine, SPOKE_STAT_TURNS_HELD);
	spokei_figures_print(engine->handler, names);
	spokei_log(engine->log, SPOKE_LOG_WARN, "engine", SPOKEI_LOG_CALL, now_ns,
		   "the handler of %s, held the loop for %" PRIu64
		   " ms: reply later, or let it run on the pool (SPOKE_HANDLER_POOL)",
		   names, held_ms);
}

/* --- slow calls and requests */

static uint64_t length_of(const struct spokei_slow_row *row)
{
	return row->queued_ns + row->took_ns;
}

/* Keeps the end of a name, which has the port. */
static void name_peer(struct spokei_slow_row *row, const char *peer)
{
	size_t len = strlen(peer);

	if (len >= sizeof(row->peer))
		peer += len - (sizeof(row->peer) - 1);
	memcpy(row->peer, peer, strlen(peer) + 1);
}

/* Inserts a row in its order; the least slow one may have to go. */
static void rank(struct spokei_slow *slow, const struct spokei_slow_row *row)
{
	size_t at = slow->slowest_count;

	if (at == SPOKEI_SLOW_ROWS && length_of(row) <= length_of(&slow->slowest[at - 1]))
		return;
	if (at < SPOKEI_SLOW_ROWS)
		slow->slowest_count++;
	else
		at--;
	for (; at > 0 && length_of(&slow->slowest[at - 1]) < length_of(row); at--)
		slow->slowest[at] = slow->slowest[at - 1];
	slow->slowest[at] = *row;
}

void spokei_slow_note(const struct spokei_slow_row *row, const char *peer)
{
	struct spoke_engine *engine = row->figures->engine;
	struct spokei_slow_row noted = *row;

	if (engine->slow == NULL)
		engine->slow = spokei_alloc(engine->env, 1, sizeof(*engine->slow));
	if (engine->slow == NULL)
		return;
	noted.number = ++engine->slow->count;
	noted.at_ns = engine->begin_ns;
	name_peer(&noted, peer);
	engine->slow->last[noted.number % SPOKEI_SLOW_ROWS] = noted;
	rank(engine->slow, &noted);
}

/* --- end */

void spokei_figures_free_all(struct spoke_engine *engine)
{
	while (!spokei_list_empty(&engine->figures)) {
		struct spokei_figures *figures = spoke_container_of(engine->figures.next,
								    struct spokei_figures, node);

		spokei_list_remove(&figures->node);
		spokei_free(engine->env, figures->queued, 1, sizeof(*figures->queued));
		spokei_free(engine->env, figures, 1, figures->size);
	}
	spokei_free(engine->env, engine->slow, 1, sizeof(*engine->slow));
}
