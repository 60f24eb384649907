/* SPDX-License-Identifier: Apache-2.0 */
/* Journals as tools see them: reads one beside the process that uses it, and changes one that no
 * process uses. */
#include "cluster/journal/log.h"
#include "cluster/journal/replay.h"
#include "core/base/env.h"
#include "core/base/span.h"
#include "core/base/status.h"
#include "core/memory/buffer.h"
#include "core/text/encoding.h"

#include <spoke/env.h>
#include <spoke/host.h>
#include <spoke/journal.h>
#include <spoke/ticket.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define LOCK "/journal"
#define PATH_SIZE 4096u
#define READS 5u /* attempts beside a process that removes files meanwhile */
#define WRITE_AT_ONCE (UINT32_C(1) << 20) /* bytes of records */
#define RECORDS_MAX (SPOKEI_RECORD_MAX + WRITE_AT_ONCE)
#define SEGMENT_OF_CHANGES 65536u /* bytes, where the last one has no room for a change */

/* A journal that is read, or changed. */
struct inspection {
	const struct spoke_env *env;
	const char *folder;
	struct spoke_journal_report *report;
	struct spokei_log_report found;
	struct spokei_replay replay;
};

/* --- sentences */

static const char *reason_of(int error, int status, char text[SPOKEI_STATUS_TEXT])
{
	switch (error) {
	case SPOKE_ESYSTEM:
		return status == -ELOOP ? SPOKEI_LOG_IS_LINK : spokei_status_text(status, text);
	case SPOKE_EINVAL:
		return "a file of another journal, or none of a journal";
	case SPOKE_EUNSUPPORTED:
		return "written by a newer version; use that one";
	case SPOKE_ECORRUPT:
		return "damaged: records are lost that had been on the disk";
	case SPOKE_ESTATE:
		return "a process has the journal open; end it first";
	case SPOKE_ELIMIT:
		return "too many tickets";
	default:
		return spoke_strerror(error);
	}
}

/* Writes why an inspection failed. Returns the error. */
static int explain(struct inspection *inspection, int error)
{
	struct spoke_journal_report *report = inspection->report;
	char text[SPOKEI_STATUS_TEXT];
	const char *why;

	if (error == SPOKE_OK || *report->why)
		return error;
	why = reason_of(error, inspection->found.status, text);
	if (inspection->found.segment > 0 && error != SPOKE_ESTATE)
		(void)snprintf(report->why, sizeof(report->why), "%08u.spokej, byte %u: %s",
			       inspection->found.segment, inspection->found.offset, why);
	else
		(void)snprintf(report->why, sizeof(report->why), "%s", why);
	return error;
}

/* --- reading */

static int begin(struct inspection *inspection, const struct spoke_env *env, const char *folder,
		 struct spoke_journal_report *report)
{
	*report = (struct spoke_journal_report){ .tickets = 0 };
	*inspection = (struct inspection){
		.env = env ? env : spoke_host_env(),
		.folder = folder,
		.report = report,
	};
	env = inspection->env;
	spokei_replay_init(&inspection->replay, env, true);
	if (folder == NULL)
		return SPOKE_EINVAL;
	if (env->files == NULL || env->files->open_log == NULL) {
		(void)snprintf(report->why, sizeof(report->why),
			       "the environment has no files of this kind");
		return SPOKE_EUNSUPPORTED;
	}
	return SPOKE_OK;
}

static bool is_used(const struct inspection *inspection)
{
	const struct spoke_env *env = inspection->env;
	char path[PATH_SIZE];
	int len = snprintf(path, sizeof(path), "%s" LOCK, inspection->folder);

	return len > 0 && (size_t)len < sizeof(path) && env->files->is_locked &&
	       env->files->is_locked(env->ctx, path) == 1;
}

static struct spokei_log_options options_of(struct inspection *inspection, bool salvages)
{
	const struct spoke_env *env = inspection->env;
	struct spokei_log_options options = {
		.env = env,
		.folder = inspection->folder,
		.wall_ns = env->wall(env->ctx),
		.salvages = salvages,
		.take = spokei_replay_take,
		.arg = &inspection->replay,
	};

	env->dice(env->ctx, options.journal, sizeof(options.journal));
	return options;
}

/* Returns 0, or SPOKE_ENOENT: the folder has no segment. */
static int check_there(struct inspection *inspection)
{
	static const char suffix[] = ".spokej";
	const size_t size = (size_t)16 * SPOKEI_LOG_SEGMENTS_MAX;
	const struct spoke_env *env = inspection->env;
	char *names = spokei_alloc_unset(env, size);
	bool found = false;
	ssize_t len;

	if (names == NULL)
		return SPOKE_ENOMEM;
	len = env->files->list(env->ctx, inspection->folder, names, size);
	for (const char *name = names; len > 0 && name < names + len; name += strlen(name) + 1)
		found |= spokei_span_ends(spokei_span_of(name), suffix);
	spokei_free(env, names, size, 1);
	if (len < 0 && len != -EFBIG) {
		char text[SPOKEI_STATUS_TEXT];

		(void)snprintf(inspection->report->why, sizeof(inspection->report->why), "%s",
			       spokei_status_text((int)len, text));
		return len == -ENOENT || len == -ENOTDIR ? SPOKE_ENOENT : SPOKE_ESYSTEM;
	}
	if (found || len == -EFBIG)
		return SPOKE_OK;
	(void)snprintf(inspection->report->why, sizeof(inspection->report->why),
		       "no journal: there is no file of the kind 00000001.spokej");
	return SPOKE_ENOENT;
}

static void note(struct inspection *inspection)
{
	struct spoke_journal_report *report = inspection->report;
	const struct spoke_list *all = &inspection->replay.tickets;

	report->torn = inspection->found.torn > 0;
	report->damaged = inspection->found.damaged;
	report->skipped = inspection->replay.skipped;
	report->segment = inspection->found.segment;
	report->offset = inspection->found.offset;
	for (struct spoke_list *node = all->next; node != all; node = node->next) {
		report->tickets++;
		report->bytes +=
			spoke_container_of(node, struct spokei_replay_ticket, node)->record;
	}
}

/* The process that uses the journal may remove a file between the list and its reading. */
static int read_journal(struct inspection *inspection)
{
	const struct spokei_log_options options = options_of(inspection, true);
	int error = SPOKE_OK;

	for (unsigned i = 0; i < READS; i++) {
		spokei_replay_fini(&inspection->replay);
		spokei_replay_init(&inspection->replay, inspection->env, true);
		error = spokei_log_read(&options, &inspection->found);
		if (error != SPOKE_ECORRUPT && inspection->found.status != -ENOENT)
			break;
	}
	return error;
}

static struct spoke_journal_ticket answer_of(const struct spokei_replay_ticket *of)
{
	const struct spokei_record_answer *answer = &of->answer;
	struct spoke_journal_ticket ticket = {
		.number = of->number,
		.service = answer->service,
		.version = answer->version,
		.group = answer->group,
		.method = answer->method,
		.attachments = { answer->attachments.data, answer->attachments.len },
		.begun_ns = answer->ended_ns,
		.lasts_ns = answer->keeps_ns,
		.segment = of->segment,
		.bytes = of->record,
		.is_answer = true,
		.dropped = answer->dropped,
		.error = (int)answer->error,
		.error_code = (int32_t)answer->error_code,
		.error_text = answer->text,
		.value = { answer->value.data, answer->value.len },
	};

	(void)snprintf(ticket.id, sizeof(ticket.id), "%.*s", (int)answer->id.len,
		       (const char *)answer->id.data);
	return ticket;
}

static struct spoke_journal_ticket call_of(const struct spokei_replay_ticket *of)
{
	static const unsigned char none[SPOKEI_RECORD_ID];
	const struct spokei_record_open *open = &of->open;
	struct spoke_journal_ticket ticket = {
		.number = of->number,
		.service = open->service,
		.version = open->version,
		.group = open->group,
		.method = open->method,
		.args = open->arguments,
		.attachments = { open->attachments.data, open->attachments.len },
		.key = open->key,
		.begun_ns = open->begun_ns,
		.lasts_ns = open->lasts_ns,
		.period_ns = open->period_ns,
		.retries = open->retries,
		.attempts = open->tried.attempts,
		.unsure = open->tried.unsure,
		.once = (open->flags & SPOKEI_RECORD_ONCE) != 0,
		.one_way = (open->flags & SPOKEI_RECORD_ONE_WAY) != 0,
		.segment = of->segment,
		.bytes = of->record,
	};

	if (memcmp(open->id, none, sizeof(none)) != 0)
		for (unsigned i = 0; i < SPOKEI_RECORD_ID; i++)
			(void)snprintf(ticket.id + (size_t)2 * i, 3, "%02x", open->id[i]);
	return ticket;
}

int spoke_journal_read(const struct spoke_env *env, const char *folder,
		       void (*each)(void *arg, const struct spoke_journal_ticket *ticket),
		       void *arg, struct spoke_journal_report *ret_report)
{
	struct inspection inspection;
	int error = begin(&inspection, env, folder, ret_report);

	if (error == SPOKE_OK)
		error = check_there(&inspection);
	if (error == SPOKE_OK)
		error = read_journal(&inspection);
	if (error == SPOKE_OK) {
		const struct spoke_list *all = &inspection.replay.tickets;

		ret_report->used = is_used(&inspection);
		note(&inspection);
		for (struct spoke_list *node = all->next; each && node != all; node = node->next) {
			const struct spokei_replay_ticket *of =
				spoke_container_of(node, struct spokei_replay_ticket, node);
			const struct spoke_journal_ticket ticket = of->kind == SPOKEI_RECORD_ANSWER
									   ? answer_of(of)
									   : call_of(of);

			each(arg, &ticket);
		}
	}
	spokei_replay_fini(&inspection.replay);
	return explain(&inspection, error);
}

/* --- changes */

static struct spokei_replay_ticket *find(const struct inspection *inspection, uint64_t number)
{
	return spokei_map_get(&inspection->replay.by_number, &number, sizeof(number));
}

static int write_out(struct spokei_journal_log *log, struct spokei_buffer *records, bool syncs)
{
	int status = spokei_log_write(log, spokei_buffer_data(records), spokei_buffer_len(records),
				      syncs);

	spokei_buffer_clear(records);
	return status;
}

/* Appends the present state of a ticket. Returns as spokei_record_put_open(). */
static int put_whole(struct spokei_buffer *out, const struct spokei_replay_ticket *ticket)
{
	return ticket->kind == SPOKEI_RECORD_ANSWER
		       ? spokei_record_put_answer(out, ticket->number, &ticket->answer)
		       : spokei_record_put_open(out, ticket->number, &ticket->open);
}

/* Appends the record of the change of one ticket. Returns as spokei_record_put_open(). */
static int put_change(const struct inspection *inspection, struct spokei_replay_ticket *ticket,
		      enum spoke_journal_change change, struct spokei_buffer *out)
{
	const struct spoke_env *env = inspection->env;

	if (change == SPOKE_JOURNAL_DROP)
		return spokei_record_put_ended(out, ticket->number, SPOKE_TICKET_CANCELLED);
	if (ticket->kind == SPOKEI_RECORD_ANSWER) {
		(void)snprintf(inspection->report->why, sizeof(inspection->report->why),
			       "this is the answer to a request, which has run");
		return SPOKE_EINVAL;
	}
	ticket->open.begun_ns = env->wall(env->ctx);
	ticket->open.tried = (struct spokei_record_tried){ .attempts = 0 };
	return put_whole(out, ticket);
}

/* Writes all tickets anew, and removes the files before. *ret_status: a negative errno. */
static int write_anew(struct inspection *inspection, struct spokei_journal_log *log,
		      struct spokei_buffer *records, int *ret_status)
{
	const struct spoke_list *all = &inspection->replay.tickets;
	const uint32_t first = log->segment.number;
	int error = SPOKE_OK;

	for (struct spoke_list *node = all->next; node != all && !error && !*ret_status;
	     node = node->next) {
		const struct spokei_replay_ticket *ticket =
			spoke_container_of(node, struct spokei_replay_ticket, node);

		error = put_whole(records, ticket);
		if (!error && spokei_buffer_len(records) >= WRITE_AT_ONCE)
			*ret_status = write_out(log, records, false);
	}
	if (!error && !*ret_status)
		error = spokei_record_put_base(records, first);
	if (!error && !*ret_status)
		*ret_status = write_out(log, records, true);
	if (!error && !*ret_status)
		spokei_log_drop(log, first);
	return error;
}

static int change_open(struct inspection *inspection, struct spokei_journal_log *log,
		       enum spoke_journal_change change, uint64_t number)
{
	struct spokei_replay_ticket *ticket = find(inspection, number);
	struct spokei_buffer records;
	int error = SPOKE_OK;
	int status = 0;

	note(inspection);
	if (change != SPOKE_JOURNAL_REPAIR && ticket == NULL) {
		(void)snprintf(inspection->report->why, sizeof(inspection->report->why),
			       "no ticket has this number, or it is settled");
		return SPOKE_ENOENT;
	}
	spokei_buffer_init(&records, inspection->env, RECORDS_MAX);
	if (change == SPOKE_JOURNAL_REPAIR)
		error = write_anew(inspection, log, &records, &status);
	else
		error = put_change(inspection, ticket, change, &records);
	if (!error && !status && spokei_buffer_len(&records) > 0)
		status = write_out(log, &records, true);
	spokei_buffer_fini(&records);
	inspection->found.segment = 0; /* damage is no cause of this */
	inspection->found.status = status;
	return status ? SPOKE_ESYSTEM : error;
}

int spoke_journal_change(const struct spoke_env *env, const char *folder,
			 enum spoke_journal_change change, uint64_t number,
			 struct spoke_journal_report *ret_report)
{
	struct spokei_journal_log log;
	struct inspection inspection;
	int error = begin(&inspection, env, folder, ret_report);

	if (error == SPOKE_OK)
		error = check_there(&inspection);
	if (error == SPOKE_OK) {
		error = spokei_log_lock(&log, inspection.env, folder, &inspection.found.status);
		error = error == SPOKE_EEXIST ? SPOKE_ESTATE : error;
	}
	if (error == SPOKE_OK) {
		struct spokei_log_options options = options_of(&inspection,
							       change == SPOKE_JOURNAL_REPAIR);

		options.appends = change != SPOKE_JOURNAL_REPAIR;
		options.segment_size = options.appends ? SEGMENT_OF_CHANGES : 0;
		inspection.replay.salvages = options.salvages;
		error = spokei_log_open(&log, &options, &inspection.found);
		if (error == SPOKE_OK)
			error = change_open(&inspection, &log, change, number);
		spokei_log_close(&log, false);
	}
	spokei_replay_fini(&inspection.replay);
	return explain(&inspection, error);
}
