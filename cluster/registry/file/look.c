/* SPDX-License-Identifier: Apache-2.0 */
/* Watches and reads the file, and reports its contents to the requests. */
#include "cluster/registry/file/parts.h"
#include "core/base/env.h"

#include "cluster/registry/file/roster.h"
#include "cluster/registry/services.h"
#include "core/base/status.h"
#include "core/engine/engine.h"

#include <errno.h>
#include <stdio.h>

#define BAD_LINES_TOLD 8u

/* --- the file */

static const char *advice(int status)
{
	switch (status) {
	case -EFBIG:
		return "; at most 1048576 bytes";
	case -ENOENT:
	case -ENOTDIR:
		return "; create its directory";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "; allow this process to read and write it, and to write to its directory";
	default:
		return "";
	}
}

int spokei_file_complain(struct spokei_file *file, const char *what, int status)
{
	int error = status == -ENOMEM  ? SPOKE_ENOMEM
		    : status == -EFBIG ? SPOKE_ETOOLARGE
				       : SPOKE_ESYSTEM;
	char text[SPOKEI_STATUS_TEXT];

	if (file->complained == status)
		return error;
	file->complained = status;
	spokei_event(file->engine, error, "registry file %s cannot be %s: %s%s", file->shown, what,
		     spokei_status_text(status, text), advice(status));
	return error;
}

int spokei_file_read(struct spokei_file *file, struct spokei_buffer *out)
{
	const struct spoke_env *env = file->engine->env;
	/* One block of the maximum size; only the pages in use are touched. */
	char *bytes = spokei_alloc_unset(env, SPOKEI_ROSTER_MAX);
	ssize_t got;
	int error;

	if (bytes == NULL)
		return spokei_file_complain(file, "read", -ENOMEM);
	got = env->files->read(env->ctx, file->path, bytes, SPOKEI_ROSTER_MAX);
	file->found = got != -ENOENT;
	if (got == -ENOENT)
		got = 0;
	if (got >= 0)
		error = spokei_buffer_append(out, bytes, (size_t)got);
	else
		error = spokei_file_complain(file, "read", (int)got);
	spokei_free(env, bytes, SPOKEI_ROSTER_MAX, 1);
	if (!error)
		file->complained = 0;
	return error;
}

static void watch_ready(struct spoke_watch *watch, unsigned io)
{
	struct spokei_file *file = spoke_container_of(watch, struct spokei_file, watch);
	const struct spoke_env *env = file->engine->env;

	(void)io;
	if (!env->files->changed(env->ctx, watch->fd))
		return;
	/* A process that writes it piece by piece gets time to continue. */
	if (file->settle_ns == UINT64_MAX)
		file->settle_ns = env->now(env->ctx) + SPOKEI_FILE_SETTLE_NS;
	spokei_engine_soon(file->engine, &file->work);
}

void spokei_file_unwatch(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;

	if (!file->watching)
		return;
	env->loop->watch(file->engine->loop, &file->watch, 0);
	env->files->unwatch(env->ctx, file->watch.fd);
	file->watching = false;
}

void spokei_file_watch(struct spokei_file *file)
{
	const struct spoke_env *env = file->engine->env;
	int fd;

	spokei_file_unwatch(file);
	if (env->files->watch(env->ctx, file->path, &fd) != 0)
		return;
	file->watch = (struct spoke_watch){ .ready = watch_ready, .fd = fd };
	file->watching = true;
	env->loop->watch(file->engine->loop, &file->watch, SPOKE_IO_READ);
}

/* --- contents */

static void complain_of_line(struct spokei_file *file, const struct spokei_roster_line *line,
			     int error, const struct spoke_url_error *why, unsigned bad)
{
	if (bad > BAD_LINES_TOLD + 1)
		return;
	spokei_event(file->engine, error, "registry file %s, line %u, byte %zu: %s; %s",
		     file->shown, line->number, why->at, why->text,
		     bad <= BAD_LINES_TOLD ? "ignored"
					   : "ignored, like all invalid lines after it");
}

/* Adds a provider's service to the list of services. */
static int note_service(struct spokei_errand *errand, const char *service)
{
	size_t len = spokei_services_print(service, NULL, 0);
	unsigned char *room = spokei_buffer_reserve(&errand->found, len + 1);

	if (room == NULL)
		return SPOKE_ENOMEM;
	(void)spokei_services_print(service, (char *)room, len + 1);
	spokei_buffer_commit(&errand->found, len + 1);
	errand->found_count++;
	return SPOKE_OK;
}

static int note_provider(struct spokei_errand *errand, const struct spoke_url *url,
			 const struct spokei_roster_line *line)
{
	int error = SPOKE_OK;

	if (errand->kind == SPOKEI_ERRAND_PUBLISH && errand->holds)
		errand->seen = errand->seen || spokei_roster_same(url, &errand->url);
	if (errand->kind != SPOKEI_ERRAND_SUBSCRIBE)
		return SPOKE_OK;
	if (spokei_services_wanted(errand->text)) {
		const char *service = spokei_roster_service(url);

		return *service ? note_service(errand, service) : SPOKE_OK;
	}
	if (spokei_roster_provides(url, errand->text)) {
		error = spokei_roster_unmark(line->text, line->len, &errand->found);
		if (!error)
			error = spokei_buffer_append(&errand->found, "", 1);
		errand->found_count++;
	}
	return error;
}

/* Reads all lines once, for all requests. */
static int read_lines(struct spokei_file *file, bool complain)
{
	const char *text = (const char *)spokei_buffer_data(&file->text);
	struct spokei_roster_line line = { 0 };
	struct spoke_list *all = &file->errands.all;
	unsigned bad = 0;
	int error = SPOKE_OK;

	while (!error && spokei_roster_next(text, spokei_buffer_len(&file->text), &line)) {
		struct spoke_url_error why;
		struct spoke_url url;

		if (line.len == 0)
			continue;
		if (spokei_file_is_dead(file, &line)) {
			file->left_out = true;
			continue;
		}
		error = spoke_url_parse(file->engine->env, line.text, line.len, &url, &why);
		if (error == SPOKE_ENOMEM)
			break;
		if (error) {
			if (complain)
				complain_of_line(file, &line, error, &why, ++bad);
			error = SPOKE_OK;
			continue;
		}
		for (struct spoke_list *at = all->next; !error && at != all; at = at->next)
			error = note_provider(spokei_errand_of(at), &url, &line);
		spoke_url_fini(&url);
	}
	return error;
}

/* Reports the findings for one request. */
static int conclude(struct spokei_file *file, struct spokei_errand *errand, int error)
{
	if (errand->kind == SPOKEI_ERRAND_SUBSCRIBE) {
		if (!error && errand->error == SPOKE_OK)
			error = spokei_errand_list(&file->errands, errand);
		if (!errand->answered)
			spokei_errand_done(&file->errands, errand, error);
	}
	if (!error && errand->kind == SPOKEI_ERRAND_PUBLISH && errand->holds && !errand->seen)
		spokei_errand_lost(&file->errands, errand);
	spokei_buffer_fini(&errand->found);
	errand->found_count = 0;
	errand->seen = false;
	return error;
}

static bool has_dead(struct spokei_file *file)
{
	const char *text = (const char *)spokei_buffer_data(&file->text);
	struct spokei_roster_line line = { 0 };
	bool dead = false;

	while (!dead && spokei_roster_next(text, spokei_buffer_len(&file->text), &line))
		dead = spokei_file_is_dead(file, &line);
	return dead;
}

void spokei_file_take(struct spokei_file *file, struct spokei_buffer *text)
{
	struct spoke_list *all = &file->errands.all;
	size_t len = spokei_buffer_len(text);
	bool same = file->known && len == spokei_buffer_len(&file->text) &&
		    (len == 0 ||
		     memcmp(spokei_buffer_data(text), spokei_buffer_data(&file->text), len) == 0);
	int lines;

	spokei_file_forget(file);
	if (same && !file->asked && !file->left_out && !has_dead(file)) {
		spokei_buffer_fini(text);
		return;
	}
	spokei_buffer_fini(&file->text);
	file->text = *text;
	spokei_buffer_init(text, file->engine->env, SPOKEI_ROSTER_MAX);
	file->left_out = false;
	lines = read_lines(file, !same);
	file->asked = false;
	file->known = true;
	for (struct spoke_list *at = all->next; at != all; at = at->next)
		if (conclude(file, spokei_errand_of(at), lines) != SPOKE_OK)
			file->known = false;
}

void spokei_file_look(struct spokei_file *file)
{
	struct spoke_list *all = &file->errands.all;
	struct spokei_buffer text;
	int error;

	spokei_buffer_init(&text, file->engine->env, SPOKEI_ROSTER_MAX);
	error = spokei_file_read(file, &text);
	if (!error) {
		spokei_file_take(file, &text);
		file->clear = file->left_out;
		return;
	}
	spokei_buffer_fini(&text);
	file->known = false;
	file->asked = false;
	for (struct spoke_list *at = all->next; at != all; at = at->next) {
		struct spokei_errand *errand = spokei_errand_of(at);

		if (errand->kind == SPOKEI_ERRAND_SUBSCRIBE && !errand->answered)
			spokei_errand_done(&file->errands, errand, error);
	}
}
