/* SPDX-License-Identifier: Apache-2.0 */
/* Finds out whether another program than a provider listens at a place. */
#include "examples/spoke/stranger.h"

#include "examples/spoke/ending.h"
#include "examples/spoke/target.h"

#include <spoke/consumer.h>
#include <spoke/stats.h>

#include <stdio.h>
#include <string.h>

#define WAIT_NS UINT64_C(1000000000)
#define URL_MAX 512u

struct question {
	const char *verb;
	struct spoke_engine *engine;
	struct spoke_alarm late;
	bool told;
};

static void changed(void *arg, const struct spoke_link_event *event)
{
	struct question *question = arg;

	if (event->change != SPOKE_LINK_CLOSED || event->error != SPOKE_EPROTOCOL)
		return;
	if (!question->told && event->reason && *event->reason)
		(void)ending_say(VERB_UNREACHABLE, question->verb, "%s: %s", event->name,
				 event->reason);
	question->told = true;
	spoke_engine_stop(question->engine);
}

static void late_due(struct spoke_alarm *alarm)
{
	spoke_engine_stop(spoke_container_of(alarm, struct question, late)->engine);
}

static void written(void *arg, const struct spoke_result *result)
{
	(void)arg;
	(void)result;
}

/* A short text with line ends, in a message without a zero byte: servers of lines take it for
 * commands that they do not know. */
static int ask(struct question *question, const char *url)
{
	static const unsigned char text[] = { 0xac, '\r', '\n', 'P',  'I',  'N', 'G',
					      '\r', '\n', '\r', '\n', '\r', '\n' };
	const struct spoke_consumer_options options = {
		.url = url,
		.policy = &spoke_policy_failfast,
		.timeout_ns = WAIT_NS,
		.changed = changed,
		.changed_arg = question,
	};
	const struct spoke_call_options notification = { .one_way = true };
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	int error = spoke_alarm_after(question->engine, &question->late, WAIT_NS, late_due);

	if (!error)
		error = spoke_consumer_new(question->engine, &options, &consumer);
	if (!error)
		error = spoke_consumer_method(consumer, "ping", NULL, &method);
	if (!error)
		error = spoke_call(method, (struct spoke_span){ text, sizeof(text) }, &notification,
				   written, NULL, NULL);
	return error ? error : spoke_engine_run(question->engine);
}

void stranger_print(const struct spoke_engine *engine, const char *verb,
		    const struct target *target)
{
	const struct spoke_engine_options quiet = { .log = "off" };
	struct question question = { .verb = verb };
	char url[URL_MAX];
	const char *rest;

	if (spoke_stat_get(engine, SPOKE_STAT_MESSAGES_READ) > 0 || target->listed ||
	    strstr(target->url, "+shm:"))
		return;
	rest = target->url + strcspn(target->url, "+:");
	if (snprintf(url, sizeof(url), "msgpack-rpc%.*s", (int)strcspn(rest, "?"), rest) >=
	    (int)sizeof(url))
		return;
	if (spoke_engine_new(&quiet, &question.engine) == 0)
		(void)!ask(&question, url);
	spoke_engine_free(question.engine);
}
