/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes changed files into use: all of them or none. A thread of the pool looks at their content
 * each minute, or when it is told to, and makes a new context; connections that are made later use
 * it. Those that live are then verified against the new authorities and revocations, a few a turn.
 */
#include "core/base/env.h"
#include "core/engine/engine.h"
#include "transport/stream/tls/parts.h"

#include <spoke/engine.h>

#include <openssl/err.h>
#include <openssl/x509.h>

#include <stdio.h>
#include <string.h>

#define LOOK_NS UINT64_C(60000000000)
#define CHECKS 8u /* connections in a turn */

struct spokei_tls_reload {
	struct spoke_engine *engine;
	struct spokei_tls *tls; /* not used after its end, which a look may outlive */
	struct spoke_work work;
	struct spoke_alarm alarm;
	struct spokei_task check;
	struct spoke_list unchecked; /* open links that the new context has not verified yet */
	uint32_t drained;            /* of those that it has */
	bool again;                  /* the context has changed since the check began */
	struct spokei_tls_options options;
	char *texts; /* copies of its paths */
	size_t size;
	uint64_t print;   /* of the files in use */
	uint64_t refused; /* ... of those that were refused last; 0: none */
	uint64_t seen;    /* ... of those that were read last */
	SSL_CTX *context; /* made by the thread; NULL: none */
	int error;
	unsigned failures; /* in a row */
	bool busy;         /* the work is at the pool */
	bool wanted;       /* another look is to follow */
	bool dead;         /* its owner was freed while it was busy */
	char why[SPOKEI_TLS_WHY];
};

/* --- a look, on a thread of the pool */

static void look_run(struct spoke_work *work)
{
	struct spokei_tls_reload *reload = spoke_container_of(work, struct spokei_tls_reload, work);
	const struct spoke_env *env = reload->engine->env;

	reload->error = 0;
	reload->seen = spokei_tls_context_print(env, &reload->options);
	if (reload->seen != reload->print) /* also if it was refused: its mode may have changed */
		reload->error = spokei_tls_context_new(env, &reload->options, reload->why,
						       &reload->context);
}

/* --- afterwards */

/* Has all open links verified. Those that still wait since the last change go first. */
static void check_all(struct spokei_tls_reload *reload)
{
	reload->again = !spokei_list_empty(&reload->unchecked);
	if (!reload->again)
		spokei_list_move(&reload->tls->open, &reload->unchecked);
	spokei_engine_soon(reload->engine, &reload->check);
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
		}
	}
	if (!spokei_list_empty(&reload->unchecked)) {
		spokei_engine_soon(tls->engine, task);
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

/* The next refusal is a new one. */
static void forget_refusal(struct spokei_tls_reload *reload)
{
	reload->refused = 0;
	reload->failures = 0;
}

static void take(struct spokei_tls_reload *reload)
{
	struct spokei_tls *tls = reload->tls;

	SSL_CTX_free(tls->context);
	tls->context = reload->context;
	reload->context = NULL;
	reload->print = reload->seen;
	forget_refusal(reload);
	spokei_count(tls->engine, SPOKE_STAT_TLS_RELOADS);
	spokei_event(tls->engine, SPOKE_OK, "tls: new connections use the changed files%s%s",
		     reload->options.cert ? ", e.g. " : "",
		     reload->options.cert ? reload->options.cert : "");
	check_all(reload);
}

static void refuse(struct spokei_tls_reload *reload)
{
	struct spokei_tls *tls = reload->tls;

	if (reload->seen != reload->refused) {
		reload->refused = reload->seen;
		reload->failures = 0;
	}
	if (reload->failures++ > 0)
		return;
	spokei_count(tls->engine, SPOKE_STAT_TLS_RELOADS_FAILED);
	spokei_event(tls->engine, reload->error, "the changed files are not used: %s", reload->why);
}

static void destroy(struct spokei_tls_reload *reload)
{
	const struct spoke_env *env = reload->engine->env;

	SSL_CTX_free(reload->context);
	spokei_free(env, reload->texts, 1, reload->size);
	spokei_free(env, reload, 1, sizeof(*reload));
}

static void look_due(struct spoke_alarm *alarm);

/* Certificate and key are not replaced in one step, so a refusal is soon followed by another look.
 */
static void look_later(struct spokei_tls_reload *reload)
{
	static const uint64_t soon_ns[] = { LOOK_NS, UINT64_C(1000000000), UINT64_C(5000000000) };
	uint64_t delay_ns = reload->failures < 3 ? soon_ns[reload->failures] : LOOK_NS;

	if (spoke_alarm_after(reload->engine, &reload->alarm, delay_ns, look_due))
		spokei_event(reload->engine, SPOKE_ELIMIT,
			     "tls: no timer is left; changes of the files are not noticed");
}

static void look_done(struct spoke_work *work)
{
	struct spokei_tls_reload *reload = spoke_container_of(work, struct spokei_tls_reload, work);

	reload->busy = false;
	if (reload->dead) {
		destroy(reload);
		return;
	}
	if (work->status != 0)
		return;
	if (reload->error)
		refuse(reload);
	else if (reload->context)
		take(reload);
	else
		forget_refusal(reload);
	look_later(reload);
	if (reload->wanted)
		spokei_tls_reload(reload->tls);
}

static void look_due(struct spoke_alarm *alarm)
{
	struct spokei_tls_reload *reload = spoke_container_of(alarm, struct spokei_tls_reload,
							      alarm);

	spokei_tls_reload(reload->tls);
}

void spokei_tls_reload(struct spokei_tls *tls)
{
	struct spokei_tls_reload *reload = tls ? tls->reload : NULL;
	const struct spoke_env *env;

	if (reload == NULL)
		return;
	env = reload->engine->env;
	reload->wanted = reload->busy;
	if (reload->busy)
		return;
	reload->work = (struct spoke_work){ .run = look_run, .done = look_done };
	reload->busy = env->loop->offload(tls->engine->loop, &reload->work) == 0;
	if (!reload->busy)
		look_later(reload); /* the queue of the pool is full */
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
			  uint64_t print)
{
	const struct spoke_env *env = tls->engine->env;
	struct spokei_tls_reload *reload = spokei_alloc(env, 1, sizeof(*reload));

	if (reload == NULL)
		return SPOKE_ENOMEM;
	reload->engine = tls->engine;
	reload->tls = tls;
	reload->options = *options;
	reload->check.run = check_links;
	spokei_list_init(&reload->unchecked);
	if (!copy_paths(env, reload)) {
		spokei_free(env, reload, 1, sizeof(*reload));
		return SPOKE_ENOMEM;
	}
	reload->print = print;
	tls->reload = reload;
	return spoke_alarm_after(tls->engine, &reload->alarm, LOOK_NS, look_due);
}

void spokei_tls_reload_free(struct spokei_tls_reload *reload)
{
	if (reload == NULL)
		return;
	(void)spoke_alarm_cancel(&reload->alarm);
	spokei_task_drop(&reload->check);
	reload->dead = true;
	if (!reload->busy)
		destroy(reload);
}
