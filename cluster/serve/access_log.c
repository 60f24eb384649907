/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the access log, with two pages: one is filled while the pool writes the other one. The
 * thread of the pool touches only the bytes of the page that it writes, and the result.
 */
#include "cluster/serve/access_log.h"
#include "core/base/env.h"
#include "core/base/log.h"
#include "core/base/status.h"

#include "cluster/config/settings.h"
#include "cluster/filter/filter.h"
#include "cluster/serve/parts.h"
#include "core/engine/engine.h"
#include "transport/conn/conn.h"
#include "transport/trust/caller.h"
#include "transport/wire/message.h"

#include <spoke/provider.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define PERIOD_NS UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define NS_PER_US UINT64_C(1000)
#define DAY_S UINT64_C(86400)
#define NAME_TEXT 256u /* bytes of a service or method, escaped, with the NUL */
#define SHORT_TEXT 64u /* of a version or group */
#define PAGE_TEXT 65536u
#define PAGE_HEAD 64u /* bytes before a page's lines, for the number of missing lines */
#define PEER_TEXT 160u
#define SHOWN 100u /* bytes of a path that an event shows */

struct page {
	char *text;       /* PAGE_HEAD + PAGE_TEXT bytes */
	size_t len;       /* bytes of its lines */
	uint64_t lines;   /* number of its lines */
	uint64_t missing; /* number of lines left out before them */
};

struct spokei_access_log {
	struct spoke_engine *engine;
	struct spoke_filter filter;
	char *path; /* NULL: the engine's log */
	size_t path_size;
	char *texts; /* of the pages */
	struct page pages[2];
	struct page *filling; /* the page that new lines go to */
	struct spoke_alarm alarm;
	bool armed;   /* the alarm is set */
	bool writing; /* the pool writes the other page */
	bool failing; /* the last write failed, and an event has reported it */
	bool ended;
	struct spoke_work work;
	const char *out; /* the bytes being written */
	size_t out_len;
	uint64_t out_lines; /* lines lost if the write fails */
	int error;          /* result of the write */
	uint64_t time_ms;   /* the time printed in `time`; 0: none */
	char time[SPOKEI_ACCESS_TIME];
};

/* --- the format of a line */

/* Converts days since 1970 to a date. Years begin in March here, so that the leap day is the last
 * one; 400 years have 146,097 days. */
static void civil(uint64_t days, unsigned *year, unsigned *month, unsigned *day)
{
	uint64_t since = days + 719468; /* from the 1st of March of the year 0 */
	uint64_t era = since / 146097;
	uint64_t of_era = since % 146097;
	uint64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	uint64_t of_year = of_era - (365 * years + years / 4 - years / 100);
	uint64_t months = (5 * of_year + 2) / 153; /* since March */

	*day = (unsigned)(of_year - (153 * months + 2) / 5 + 1);
	*month = (unsigned)(months < 10 ? months + 3 : months - 9);
	*year = (unsigned)(years + era * 400 + (*month <= 2));
}

void spokei_access_print_time(uint64_t wall_ns, char text[SPOKEI_ACCESS_TIME])
{
	uint64_t ms = wall_ns / NS_PER_MS;
	uint64_t second = ms / 1000;
	unsigned of_day = (unsigned)(second % DAY_S);
	unsigned year;
	unsigned month;
	unsigned day;

	civil(second / DAY_S, &year, &month, &day);
	(void)snprintf(text, SPOKEI_ACCESS_TIME, "%04u-%02u-%02uT%02u:%02u:%02u.%03uZ", year, month,
		       day, of_day / 3600, of_day / 60 % 60, of_day % 60, (unsigned)(ms % 1000));
}

size_t spokei_access_print_line(const struct spokei_access_line *line,
				char text[SPOKEI_ACCESS_LINE])
{
	char peer[PEER_TEXT];
	char service[NAME_TEXT];
	char version[SHORT_TEXT];
	char group[SHORT_TEXT];
	char method[NAME_TEXT];
	char identity[PEER_TEXT] = "";
	uint64_t took_us = line->took_ns / NS_PER_US;
	int len;

	(void)spokei_log_escape_end(peer, sizeof(peer), line->peer, strlen(line->peer));
	(void)spokei_log_escape_end(service, sizeof(service), line->service.data,
				    line->service.len);
	(void)spokei_log_escape(version, sizeof(version), line->version.data, line->version.len);
	(void)spokei_log_escape(group, sizeof(group), line->group.data, line->group.len);
	(void)spokei_log_escape(method, sizeof(method), line->method.data, line->method.len);
	if (line->identity)
		(void)spokei_log_escape_end(identity, sizeof(identity), line->identity,
					    strlen(line->identity));
	len = snprintf(text, SPOKEI_ACCESS_LINE,
		       "%s \"%s\" \"%s\" \"%s\" \"%s\" \"%s\" %zu %s %llu.%03u%s%s%s%s", line->time,
		       peer, service, version, group, method, line->arg_len,
		       spoke_errname(line->error), (unsigned long long)(took_us / 1000),
		       (unsigned)(took_us % 1000), line->abandoned ? " abandoned" : "",
		       line->identity ? " as \"" : "", identity, line->identity ? "\"" : "");
	SPOKE_ASSERT(len > 0 && (unsigned)len < SPOKEI_ACCESS_LINE - 1);
	return (size_t)len;
}

static void flush(struct spokei_access_log *log);

/* --- writing */

static struct page *other(struct spokei_access_log *log)
{
	return log->filling == &log->pages[0] ? &log->pages[1] : &log->pages[0];
}

static void page_due(struct spoke_alarm *alarm)
{
	struct spokei_access_log *log = spoke_container_of(alarm, struct spokei_access_log, alarm);

	log->armed = false;
	flush(log);
}

/* Sets the alarm that writes the page within a second. Returns false when the engine has no timer.
 */
static bool arm(struct spokei_access_log *log)
{
	if (!log->armed && !log->ended)
		log->armed = spoke_alarm_after(log->engine, &log->alarm, PERIOD_NS, page_due) ==
			     SPOKE_OK;
	return log->armed;
}

static void prepare(struct spokei_access_log *log)
{
	struct page *page = log->filling;
	char head[PAGE_HEAD];
	size_t len = 0;

	if (page->missing > 0)
		len = (size_t)snprintf(head, sizeof(head), "... %llu lines left out\n",
				       (unsigned long long)page->missing);
	log->out = page->text + PAGE_HEAD - len;
	log->out_len = len + page->len;
	log->out_lines = page->lines + page->missing;
	memcpy(page->text + PAGE_HEAD - len, head, len);
}

static void turn_page(struct spokei_access_log *log)
{
	struct page *page = log->filling;

	log->filling = other(log);
	page->len = 0;
	page->lines = 0;
	page->missing = 0;
}

/* On a thread of the pool, or on the loop's when the pool is gone. */
static void write_page(struct spoke_work *work)
{
	struct spokei_access_log *log = spoke_container_of(work, struct spokei_access_log, work);
	const struct spoke_env *env = log->engine->env;

	log->error = env->files->append(env->ctx, log->path, log->out, log->out_len);
}

/* The end of a path, because paths differ there. */
static const char *shown(const char *path)
{
	size_t len = strlen(path);

	return len > SHOWN ? path + len - SHOWN : path;
}

static void report(struct spokei_access_log *log)
{
	char why[SPOKEI_STATUS_TEXT];

	if (log->error && !log->failing) {
		spokei_event(log->engine, SPOKE_ESYSTEM,
			     "access log %s cannot be written: %s; lines are left out until it "
			     "can",
			     shown(log->path), spokei_status_text(log->error, why));
	}
	if (!log->error && log->failing)
		spokei_event(log->engine, SPOKE_OK, "access log %s can be written again",
			     shown(log->path));
	log->failing = log->error != 0;
}

static void note_written(struct spokei_access_log *log)
{
	report(log);
	if (log->error)
		log->filling->missing += log->out_lines;
}

static void free_log(struct spokei_access_log *log)
{
	const struct spoke_env *env = log->engine->env;

	(void)spoke_alarm_cancel(&log->alarm);
	spokei_free(env, log->texts, 2, PAGE_HEAD + PAGE_TEXT);
	spokei_free(env, log->path, 1, log->path_size);
	spokei_free(env, log, 1, sizeof(*log));
}

static void page_written(struct spoke_work *work)
{
	struct spokei_access_log *log = spoke_container_of(work, struct spokei_access_log, work);

	log->writing = false;
	if (spokei_engine_forked(log->engine)) { /* the log is the parent's */
		if (log->ended)
			free_log(log);
		return;
	}
	if (work->status)
		write_page(work);
	note_written(log);
	if (log->ended && log->error)
		free_log(log); /* a retry would fail too */
	else if (log->ended)
		spokei_access_log_end(log);
	else if (log->filling->len > PAGE_TEXT / 2)
		flush(log);
	else if (log->filling->lines + log->filling->missing > 0)
		(void)arm(log);
}

/* Hands the page to the pool; while the pool is full the page waits. Writes it here when the engine
 * does not run any more. */
static void flush(struct spokei_access_log *log)
{
	struct spoke_engine *engine = log->engine;
	int error;

	if (log->writing || log->filling->lines + log->filling->missing == 0)
		return;
	if (log->armed)
		log->armed = !spoke_alarm_cancel(&log->alarm);
	prepare(log);
	log->work = (struct spoke_work){ .run = write_page, .done = page_written };
	error = engine->env->loop->offload(engine->loop, &log->work);
	if (error && error != -ECANCELED && !log->ended) {
		(void)arm(log);
		return;
	}
	turn_page(log);
	log->writing = error == 0;
	if (error) {
		write_page(&log->work);
		note_written(log);
	}
}

/* --- lines */

static void put(struct spokei_access_log *log, const char *line, size_t len)
{
	struct page *page = log->filling;

	/* Lines after those left out go to the next page, after the number of missing lines. */
	if (len > PAGE_TEXT - page->len || other(log)->missing > 0) {
		other(log)->missing++;
		return;
	}
	memcpy(page->text + PAGE_HEAD + page->len, line, len);
	page->len += len;
	page->lines++;
	if (page->len > PAGE_TEXT / 2 || !arm(log))
		flush(log);
}

/* Prints the time once per millisecond. */
static const char *time_now(struct spokei_access_log *log)
{
	const struct spoke_env *env = log->engine->env;
	uint64_t ns = env->wall(env->ctx);

	if (log->time[0] == '\0' || log->time_ms != ns / NS_PER_MS) {
		log->time_ms = ns / NS_PER_MS;
		spokei_access_print_time(ns, log->time);
	}
	return log->time;
}

/* Writes a line, whose time is now. */
static void put_line(struct spokei_access_log *log, struct spokei_access_line *line)
{
	struct spoke_engine *engine = log->engine;
	char text[SPOKEI_ACCESS_LINE];
	size_t len;

	line->time = time_now(log);
	len = spokei_access_print_line(line, text);
	if (log->path) {
		text[len] = '\n';
		put(log, text, len + 1);
	} else {
		spokei_log_wanted(engine->log, "access", text);
	}
}

static void after_request(void *arg, const struct spoke_request *request,
			  const struct spoke_filter_answer *answer)
{
	struct spokei_access_log *log = arg;
	char peer[PEER_TEXT];
	char identity[PEER_TEXT];
	struct spokei_access_line line = {
		.peer = peer,
		.service = spoke_request_service(request),
		.version = spoke_request_version(request),
		.group = spoke_request_group(request),
		.method = spoke_request_method(request),
		.arg_len = answer->arg_len,
		.error = answer->error,
		.abandoned = spokei_request_is_gone(request),
		.took_ns = answer->took_ns,
	};

	(void)spoke_request_peer(request, peer, sizeof(peer));
	if (spokei_request_is_known(request)) {
		(void)spoke_request_identity(request, 0, identity, sizeof(identity));
		line.identity = identity;
	}
	put_line(log, &line);
}

void spokei_access_log_refused(struct spokei_access_log *log, const struct spokei_conn *conn,
			       const struct spokei_message *message, int error)
{
	const struct spoke_env *env = log->engine->env;
	char peer[PEER_TEXT];
	char identity[PEER_TEXT];
	struct spokei_access_line line = {
		.peer = peer,
		.service = message->service,
		.version = message->version,
		.group = message->group,
		.method = message->method,
		.arg_len = message->args.len,
		.error = error,
	};

	env->net->print(env->ctx, &conn->peer, peer, sizeof(peer));
	if (spokei_identity_is_known(conn->identity)) {
		(void)spokei_identity_print(env, conn->identity, &conn->peer, 0, identity,
					    sizeof(identity));
		line.identity = identity;
	}
	put_line(log, &line);
}

/* --- life */

/* Explains why the log cannot be made. Returns the error. */
static int refuse(const struct spokei_settings *settings, int error, const char *why)
{
	struct spokei_key_values values;

	spokei_settings_look(settings, &values);
	spokei_config_refuse(settings->file.engine, settings->file.config, &values,
			     SPOKEI_KEY_ACCESS_LOG, error, why);
	return error;
}

static int open_file(struct spokei_access_log *log, const struct spokei_settings *settings,
		     const char *path)
{
	const struct spoke_env *env = log->engine->env;
	char status[SPOKEI_STATUS_TEXT];
	char why[SPOKE_EVENT_TEXT];
	int error;

	if (env->files == NULL || env->files->append == NULL)
		return refuse(settings, SPOKE_EUNSUPPORTED,
			      "the environment cannot append to files; use true");
	error = env->files->append(env->ctx, path, NULL, 0);
	if (error) {
		(void)snprintf(
			why, sizeof(why),
			"cannot be written: %s; make its folder, and let this user write there",
			spokei_status_text(error, status));
		return refuse(settings, SPOKE_ESYSTEM, why);
	}
	log->path_size = strlen(path) + 1;
	log->path = spokei_alloc(env, 1, log->path_size);
	log->texts = spokei_alloc_unset(env, 2 * (size_t)(PAGE_HEAD + PAGE_TEXT));
	if (log->path == NULL || log->texts == NULL)
		return SPOKE_ENOMEM;
	memcpy(log->path, path, log->path_size);
	log->pages[0].text = log->texts;
	log->pages[1].text = log->texts + PAGE_HEAD + PAGE_TEXT;
	return SPOKE_OK;
}

int spokei_access_log_new(const struct spokei_settings *settings, struct spokei_filters *filters,
			  struct spokei_access_log **ret_log)
{
	const char *where = spokei_settings_text(settings, SPOKEI_KEY_ACCESS_LOG);
	struct spoke_engine *engine = settings->file.engine;
	struct spokei_access_log *log;
	int error = SPOKE_OK;

	*ret_log = NULL;
	if (where == NULL)
		return SPOKE_OK;
	if (where[0] == '\0')
		return refuse(settings, SPOKE_EINVAL, "write true or the path of a file");
	log = spokei_alloc(engine->env, 1, sizeof(*log));
	if (log == NULL)
		return SPOKE_ENOMEM;
	log->engine = engine;
	log->filling = &log->pages[0];
	log->filter = (struct spoke_filter){
		.name = "access_log",
		.arg = log,
		.after_request = after_request,
	};
	if (strcmp(where, "true") != 0)
		error = open_file(log, settings, where);
	if (error == SPOKE_OK)
		error = spokei_filters_put_first(filters, engine->env, &log->filter);
	if (error) {
		free_log(log);
		return error;
	}
	*ret_log = log;
	return SPOKE_OK;
}

void spokei_access_log_end(struct spokei_access_log *log)
{
	if (log == NULL)
		return;
	log->ended = true;
	if (!spokei_engine_forked(log->engine))
		flush(log);
	if (!log->writing)
		free_log(log);
}
