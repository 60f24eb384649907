/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes changed files into use: all of them or none. A thread of the pool looks at their content
 * each minute and makes a new context; a reload of other things may hold it and do the same.
 * Connections that are made later use the context. Those that live are then verified against the
 * new authorities and revocations, a few a turn.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "core/engine/reread.h"
#include "transport/stream/tls/parts.h"

#include <spoke/engine.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include <stdio.h>
#include <string.h>

#define CHECKS 8u /* connections in a turn */

static const char *const keys[] = { "tls.cert", "tls.key", "tls.ca", "tls.crl" };

/* One reading of the files, on any thread. */
struct reading {
	struct spokei_tls_reload *of;
	struct spoke_list node;         /* in the list of the reload that holds it */
	struct spokei_tls_prints known; /* of the files in use when it began */
	struct spokei_tls_prints seen;
	SSL_CTX *context; /* of the changed files; NULL: none has changed, or there is an error */
	int error;
	char why[SPOKEI_TLS_WHY];
};

struct spokei_tls_reload {
	const struct spoke_env *env; /* a reading that is held may outlive the engine */
	struct spoke_engine *engine;
	struct spokei_tls *tls; /* not used after its end, which a reading may outlive */
	struct spokei_reread reread;
	struct spokei_task check;
	struct spoke_list unchecked; /* open links that the new context has not verified yet */
	uint32_t drained;            /* of those that it has */
	bool again;                  /* the context has changed since the check began */
	struct spokei_tls_options options;
	char *texts; /* copies of its paths */
	size_t size;
	struct spokei_tls_prints prints;  /* of the files in use */
	struct spokei_tls_prints refused; /* ... of those that were refused last */
	unsigned failures;                /* in a row; 0: nothing was refused */
	struct reading look;
	struct reading part; /* of a reload of other things */
	bool held;           /* `part` is in use */
	bool missed;         /* a look was not used because `part` may have read older files */
	bool dead;           /* its owner was freed meanwhile */
};

/* --- reading */

static void begin_reading(struct spokei_tls_reload *reload, struct reading *ret)
{
	*ret = (struct reading){ .of = reload, .known = reload->prints };
}

static bool is_same(const struct spokei_tls_prints *a, const struct spokei_tls_prints *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

/* Also reads files that were refused before: their mode may have changed. */
static void read_files(struct reading *reading)
{
	const struct spokei_tls_reload *reload = reading->of;
	const struct spoke_env *env = reload->env;

	reading->seen = spokei_tls_context_prints(env, &reload->options);
	if (!is_same(&reading->seen, &reading->known))
		reading->error = spokei_tls_context_new(env, &reload->options, reading->why,
							&reading->context);
}

static void drop_reading(struct reading *reading)
{
	SSL_CTX_free(reading->context);
	reading->context = NULL;
}

static struct spokei_tls_reload *reload_of(struct spokei_reread *reread)
{
	return spoke_container_of(reread, struct spokei_tls_reload, reread);
}

/* --- afterwards */

/* Has all open links verified. Those that still wait since the last change go first. */
static void check_all(struct spokei_tls_reload *reload)
{
	reload->again = !spokei_list_empty(&reload->unchecked);
	if (!reload->again)
		spokei_list_move(&reload->tls->open, &reload->unchecked);
	spokei_run_soon(reload->engine, &reload->check);
}

static void check_links(struct spokei_task *task)
{
	struct spokei_tls_reload *reload = spoke_container_of(task, struct spokei_tls_reload,
							      check);
	struct spokei_tls *tls = reload->tls;

	for (unsigned i = 0; i < CHECKS && !spokei_list_empty(&reload->unchecked); i++) {
		struct spokei_tls_link *link = spoke_container_of(reload->unchecked.next,
								  struct spokei_tls_link, node);

		spokei_list_remove(&link->node);
		spokei_list_append(&tls->open, &link->node);
		if (tls->refuse && !link->refused && !spokei_tls_trusts(link)) {
			link->refused = true;
			tls->refuse(link->stream);
			reload->drained++;
			if (tls->accepts)
				spokei_count(tls->engine, SPOKE_STAT_DRAINED_CALLER);
		}
	}
	if (!spokei_list_empty(&reload->unchecked)) {
		spokei_run_soon(tls->engine, task);
		return;
	}
	if (reload->again) {
		check_all(reload);
		return;
	}
	if (reload->drained > 0) {
		spokei_event(tls->engine, SPOKE_EHANDSHAKE,
			     "tls: %u connections are drained, because their certificates are not "
			     "accepted any more",
			     reload->drained);
	}
	reload->drained = 0;
}

/* Names a file that has changed. */
static void tell_taken(const struct spokei_tls_reload *reload,
		       const struct spokei_tls_prints *before)
{
	const char *const paths[] = { reload->options.cert, reload->options.key, reload->options.ca,
				      reload->options.crl };
	unsigned changed = 0;
	unsigned first = 0;

	for (unsigned i = SPOKEI_TLS_FILES; i-- > 0;) {
		if (reload->prints.of[i] == before->of[i])
			continue;
		first = i;
		changed++;
	}
	spokei_event(reload->engine, SPOKE_OK, "tls: new connections use the changed %s = %.180s%s",
		     keys[first], paths[first] ? paths[first] : "",
		     changed > 1 ? ", and others" : "");
}

static void take(struct spokei_tls_reload *reload, struct reading *reading)
{
	struct spokei_tls *tls = reload->tls;
	const struct spokei_tls_prints before = reload->prints;

	reload->failures = 0;
	if (reading->context == NULL || is_same(&reading->seen, &before)) {
		drop_reading(reading);
		return;
	}
	SSL_CTX_free(tls->context);
	tls->context = reading->context;
	reading->context = NULL;
	reload->prints = reading->seen;
	spokei_count(tls->engine, SPOKE_STAT_TLS_RELOADS);
	tell_taken(reload, &before);
	check_all(reload);
}

/* A look tells each content once; `tells` has it told in any case. */
static void refuse(struct spokei_tls_reload *reload, const struct reading *reading, bool tells)
{
	if (!is_same(&reading->seen, &reload->refused))
		reload->failures = 0;
	reload->refused = reading->seen;
	if (reload->failures++ > 0 && !tells)
		return;
	spokei_count(reload->engine, SPOKE_STAT_TLS_RELOADS_FAILED);
	spokei_event(reload->engine, reading->error, "the changed files are not used: %s",
		     reading->why);
}

static void destroy(struct spokei_tls_reload *reload)
{
	const struct spoke_env *env = reload->env;

	drop_reading(&reload->look);
	drop_reading(&reload->part);
	spokei_free(env, reload->texts, 1, reload->size);
	spokei_free(env, reload, 1, sizeof(*reload));
}

/* Frees it after its owner, when no thread uses it. */
static void destroy_if_dead(struct spokei_tls_reload *reload)
{
	if (reload->dead && !reload->reread.busy && !reload->held)
		destroy(reload);
}

/* --- looks */

static bool begin_look(struct spokei_reread *reread)
{
	begin_reading(reload_of(reread), &reload_of(reread)->look);
	return true;
}

static void read_look(struct spokei_reread *reread)
{
	read_files(&reload_of(reread)->look);
}

/* Certificate and key are not replaced in one step, so a refusal is soon followed by another look.
 */
static uint64_t end_look(struct spokei_reread *reread, bool is_good)
{
	static const uint64_t soon_ns[] = { SPOKEI_REREAD_NS, UINT64_C(1000000000),
					    UINT64_C(5000000000) };
	struct spokei_tls_reload *reload = reload_of(reread);

	if (!is_good || reload->held) {
		drop_reading(&reload->look);
		reload->missed = reload->held;
	} else if (reload->look.error) {
		refuse(reload, &reload->look, false);
	} else {
		take(reload, &reload->look);
	}
	return reload->failures < 3 ? soon_ns[reload->failures] : SPOKEI_REREAD_NS;
}

static void free_reread(struct spokei_reread *reread)
{
	destroy_if_dead(reload_of(reread));
}

static const struct spokei_reread_up reread_up = {
	.key = "tls",
	.begin = begin_look,
	.read = read_look,
	.end = end_look,
	.free = free_reread,
};

void spokei_tls_reload(struct spokei_tls *tls)
{
	if (tls && tls->reload)
		spokei_reread_now(&tls->reload->reread);
}

/* --- as a part of a reload of other things */

void spokei_tls_hold(struct spokei_tls *tls, struct spoke_list *held)
{
	struct spokei_tls_reload *reload = tls ? tls->reload : NULL;

	if (reload == NULL || reload->held)
		return;
	reload->held = true;
	begin_reading(reload, &reload->part);
	spokei_list_append(held, &reload->part.node);
}

static struct reading *reading_at(struct spoke_list *node)
{
	return spoke_container_of(node, struct reading, node);
}

void spokei_tls_read_held(struct spoke_list *held)
{
	for (struct spoke_list *node = held->next; node != held; node = node->next)
		read_files(reading_at(node));
}

int spokei_tls_verdict(const struct spoke_list *held)
{
	int error = 0;

	for (struct spoke_list *node = held->next; node != held; node = node->next) {
		const struct reading *reading = reading_at(node);

		if (reading->error == 0 || reading->of->dead)
			continue;
		refuse(reading->of, reading, true);
		error = reading->error;
	}
	return error;
}

void spokei_tls_let_go(struct spoke_list *held, bool takes)
{
	while (!spokei_list_empty(held)) {
		struct reading *reading = reading_at(spokei_list_first(held));
		struct spokei_tls_reload *reload = reading->of;

		spokei_list_remove(&reading->node);
		reload->held = false;
		if (takes && !reload->dead) {
			take(reload, reading);
			spokei_reread_overtake(&reload->reread);
		}
		drop_reading(reading);
		if (reload->missed && !reload->dead)
			spokei_tls_reload(reload->tls);
		reload->missed = false;
		destroy_if_dead(reload);
	}
}

/* --- the owner */

/* Copies the paths, whose memory belongs to the caller. */
static bool copy_paths(const struct spoke_env *env, struct spokei_tls_reload *reload)
{
	const char **paths[] = { &reload->options.cert, &reload->options.key, &reload->options.ca,
				 &reload->options.crl };
	char *to;

	for (size_t i = 0; i < 4; i++)
		reload->size += *paths[i] ? strlen(*paths[i]) + 1 : 0;
	reload->options.peers = NULL;
	reload->texts = to = spokei_alloc(env, 1, reload->size + 1);
	if (to == NULL)
		return false;
	reload->size++;
	for (size_t i = 0; i < 4; i++) {
		size_t len = *paths[i] ? strlen(*paths[i]) + 1 : 0;

		if (len > 0)
			*paths[i] = memcpy(to, *paths[i], len);
		to += len;
	}
	return true;
}

int spokei_tls_reload_new(struct spokei_tls *tls, const struct spokei_tls_options *options,
			  const struct spokei_tls_prints *prints)
{
	const struct spoke_env *env = tls->engine->env;
	struct spokei_tls_reload *reload = spokei_alloc(env, 1, sizeof(*reload));

	if (reload == NULL)
		return SPOKE_ENOMEM;
	reload->env = env;
	reload->engine = tls->engine;
	reload->tls = tls;
	reload->options = *options;
	reload->check.run = check_links;
	spokei_list_init(&reload->unchecked);
	if (!copy_paths(env, reload)) {
		spokei_free(env, reload, 1, sizeof(*reload));
		return SPOKE_ENOMEM;
	}
	reload->prints = *prints;
	tls->reload = reload;
	reload->reread = (struct spokei_reread){ .up = &reread_up, .engine = tls->engine };
	spokei_reread_later(&reload->reread, SPOKEI_REREAD_NS);
	return spoke_timer_armed(&reload->reread.alarm.timer) ? SPOKE_OK : SPOKE_ELIMIT;
}

void spokei_tls_reload_free(struct spokei_tls_reload *reload)
{
	if (reload == NULL)
		return;
	(void)spokei_reread_end(&reload->reread);
	spokei_task_drop(&reload->check);
	reload->dead = true;
	destroy_if_dead(reload);
}
