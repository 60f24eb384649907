/* SPDX-License-Identifier: Apache-2.0 */
/* Gathers the records of tickets on the engine's thread, and has a thread of the pool write them.
 */
#include "cluster/journal/journal.h"

#include "core/base/env.h"
#include "core/base/status.h"
#include "core/engine/engine.h"

#include <errno.h>
#include <string.h>

#define MOVE_MAX 65536u  /* bytes of tickets that are written anew with each write */
#define RESTORE_MAX 128u /* tickets that are taken in a turn */
#define BUFFER_MAX (SIZE_MAX / 4)
#define AGAIN_NS UINT64_C(10000000000)      /* after a failure */
#define SPARE_AGAIN_NS UINT64_C(1000000000) /* while the disk is full */
#define QUEUE_AGAIN_NS UINT64_C(10000000)   /* while the queue of the pool is full */
#define FIRST_POSITION (UINT64_C(1) << 32)  /* of a new record; those of earlier ones count up */

/* A segment, and the position at which it begins. */
struct place {
	uint64_t from;
	uint32_t number;
};

static void kick(struct spokei_journal *journal)
{
	spokei_run_settling(journal->engine, &journal->settle);
}

static uint64_t now_of(const struct spokei_journal *journal)
{
	return journal->engine->begin_ns;
}

/* Returns the position of the first byte that flies, or that would be the first. */
static uint64_t flying_from(const struct spokei_journal *journal)
{
	return journal->position - spokei_buffer_len(&journal->gathered) -
	       spokei_buffer_len(&journal->flying);
}

static struct spokei_journal_ticket *of_live(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_journal_ticket, node);
}

static struct spokei_journal_ticket *of_waiting(struct spoke_list *node)
{
	return spoke_container_of(node, struct spokei_journal_ticket, waiting);
}

/* --- the work, on a thread of the pool */

static size_t place_count(const struct spokei_journal *journal)
{
	return spokei_buffer_len(&journal->places) / sizeof(struct place);
}

/* Notes a segment, after the first one. Without memory its tickets count as those of an older
 * segment, which is kept for longer then. */
static void add_place(struct spokei_journal *journal, struct place place)
{
	const struct place first = { .number = journal->log.first };

	if (place_count(journal) == 0 &&
	    spokei_buffer_append(&journal->places, &first, sizeof(first)) != SPOKE_OK)
		return;
	if (place.number > first.number)
		(void)!spokei_buffer_append(&journal->places, &place, sizeof(place));
}

/* Numbers the tickets that were read, and notes the segments in which they are. */
static void place_tickets(struct spokei_journal *journal)
{
	const struct spoke_list *tickets = &journal->replay.tickets;
	struct place place = { .number = journal->log.first };
	uint64_t position = 0;

	add_place(journal, place);
	for (struct spoke_list *node = tickets->next; node != tickets; node = node->next) {
		struct spokei_replay_ticket *ticket =
			spoke_container_of(node, struct spokei_replay_ticket, node);

		if (ticket->segment > place.number) {
			place = (struct place){ .number = ticket->segment, .from = position };
			add_place(journal, place);
		}
		ticket->position = ++position;
	}
}

static void run_open(struct spokei_journal *journal)
{
	struct spokei_journal_job *job = &journal->job;

	job->error = spokei_log_open(&journal->log, &journal->log_options, &journal->found.log);
	if (!job->error)
		place_tickets(journal);
}

static void run_write(struct spokei_journal *journal)
{
	struct spokei_journal_job *job = &journal->job;
	struct spokei_journal_log *log = &journal->log;
	size_t len = spokei_buffer_len(&journal->flying);
	int status = job->restarts ? spokei_log_restart(log) : 0;

	log->rolled_at = 0;
	if (!status && len > 0)
		status = spokei_log_write(log, spokei_buffer_data(&journal->flying), len,
					  job->syncs);
	else if (!status && job->syncs)
		status = spokei_log_sync(log);
	if (!status && journal->base)
		spokei_log_drop(log, journal->base);
	if (!status && job->spares)
		job->spare_status = spokei_log_spare(log);
	job->status = status;
}

static void run(struct spoke_work *work)
{
	struct spokei_journal *journal = spoke_container_of(work, struct spokei_journal, work);

	if (journal->job.opens)
		run_open(journal);
	else
		run_write(journal);
}

static void done(struct spoke_work *work);

/* Hands the work to the pool. Returns as offload(). */
static int submit(struct spokei_journal *journal)
{
	const struct spoke_loop *loop = journal->engine->env->loop;
	int status;

	journal->work = (struct spoke_work){ .run = run, .done = done, .urgent = true };
	status = loop->offload(journal->engine->loop, &journal->work);
	journal->busy = status == 0;
	return status;
}

/* --- waits of tickets */

static void wait_due(struct spoke_alarm *alarm);

static void arm_wait(struct spokei_journal *journal)
{
	uint64_t due_ns;

	/* Until the journal has been read, tickets wait for as long as their calls last. */
	if (journal->wait_armed || journal->stage == SPOKEI_JOURNAL_READING ||
	    spokei_list_empty(&journal->waiting))
		return;
	due_ns = spokei_later(of_waiting(journal->waiting.next)->since_ns,
			      journal->options.wait_ns);
	journal->wait_armed = spoke_alarm_after(journal->engine, &journal->wait_alarm,
						due_ns > now_of(journal) ? due_ns - now_of(journal)
									 : 0,
						wait_due) == SPOKE_OK;
}

static void end_wait(struct spokei_journal *journal, int error)
{
	struct spoke_list *node = journal->waiting.next;

	spokei_list_remove(node);
	journal->up->waited(of_waiting(node), error);
}

static void wait_due(struct spoke_alarm *alarm)
{
	struct spokei_journal *journal = spoke_container_of(alarm, struct spokei_journal,
							    wait_alarm);

	journal->wait_armed = false;
	while (!spokei_list_empty(&journal->waiting) &&
	       now_of(journal) - of_waiting(journal->waiting.next)->since_ns >=
		       journal->options.wait_ns)
		end_wait(journal, journal->broken ? SPOKE_ESYSTEM : SPOKE_ETIMEOUT);
	arm_wait(journal);
}

static void end_waits(struct spokei_journal *journal, int error)
{
	while (!spokei_list_empty(&journal->waiting))
		end_wait(journal, error);
}

/* Has the waits begin now. */
static void begin_waits(struct spokei_journal *journal)
{
	struct spoke_list *all = &journal->waiting;

	for (struct spoke_list *node = all->next; node != all; node = node->next)
		of_waiting(node)->since_ns = now_of(journal);
	arm_wait(journal);
}

/* Ends the waits for records that are as durable as asked. */
static void release(struct spokei_journal *journal)
{
	uint64_t safe = journal->options.durability == SPOKEI_DURABILITY_POWER ? journal->durable
									       : journal->written;

	while (!spokei_list_empty(&journal->waiting) &&
	       of_waiting(journal->waiting.next)->awaits <= safe)
		end_wait(journal, SPOKE_OK);
}

static void wait_for(struct spokei_journal *journal, struct spokei_journal_ticket *ticket)
{
	SPOKE_ASSERT(ticket->waiting.next == NULL);
	ticket->awaits = journal->position;
	ticket->since_ns = now_of(journal);
	spokei_list_append(&journal->waiting, &ticket->waiting);
	arm_wait(journal);
}

/* --- records */

static struct place place_at(const struct spokei_journal *journal, size_t index)
{
	const unsigned char *places = spokei_buffer_data(&journal->places);
	struct place place;

	SPOKE_ASSERT(places != NULL);
	memcpy(&place, places + index * sizeof(place), sizeof(place));
	return place;
}

/* Forgets the segments before the first one that is needed. Returns its number. */
static uint32_t first_needed(struct spokei_journal *journal)
{
	uint64_t from = spokei_list_empty(&journal->live) ? UINT64_MAX
							  : of_live(journal->live.next)->position;

	while (place_count(journal) > 1 && place_at(journal, 1).from < from)
		spokei_buffer_consume(&journal->places, sizeof(struct place));
	return place_count(journal) > 0 ? place_at(journal, 0).number : journal->log.first;
}

/* Are there more segments than twice the bytes of the tickets, one to write to and a spare one? */
static bool is_too_large(const struct spokei_journal *journal)
{
	uint32_t segments = spokei_log_segments(&journal->log);

	return !journal->pinned && segments > 2 &&
	       (uint64_t)(segments - 2) * journal->log.segment_size > 2 * journal->live_bytes;
}

static bool needs_move(struct spokei_journal *journal)
{
	uint64_t position;

	if (spokei_list_empty(&journal->live))
		return false;
	position = of_live(journal->live.next)->position;
	return position <= journal->move_before ||
	       (is_too_large(journal) && first_needed(journal) < journal->log.segment.number);
}

/* Appends the record of a ticket, and notes it. */
static int put_open(struct spokei_journal *journal, struct spokei_journal_ticket *ticket)
{
	size_t before = spokei_buffer_len(&journal->gathered);
	int error = journal->up->put(ticket, &journal->gathered);
	size_t len = spokei_buffer_len(&journal->gathered) - before;

	if (error)
		return error;
	journal->position += len;
	journal->live_bytes += len;
	ticket->position = journal->position;
	ticket->record = (uint32_t)len;
	return SPOKE_OK;
}

/* Writes old tickets anew, and ends the segments that no ticket needs. */
static void tidy(struct spokei_journal *journal)
{
	uint64_t begun = journal->position;
	size_t before;
	uint32_t first;

	while (journal->position - begun < MOVE_MAX && needs_move(journal)) {
		struct spokei_journal_ticket *ticket = of_live(journal->live.next);
		uint32_t old = ticket->record;

		if (put_open(journal, ticket))
			break;
		journal->live_bytes -= old;
		spokei_list_remove(&ticket->node);
		spokei_list_append(&journal->live, &ticket->node);
	}
	first = first_needed(journal);
	before = spokei_buffer_len(&journal->gathered);
	if (first <= journal->log.first || journal->pinned ||
	    spokei_record_put_base(&journal->gathered, first) != SPOKE_OK)
		return;
	journal->position += spokei_buffer_len(&journal->gathered) - before;
	journal->base = first;
}

/* Returns whether a new segment begins now, and all tickets are written anew. It must not contain
 * the record for which that is done, so that one is written first. */
static bool renews(const struct spokei_journal *journal)
{
	return journal->renew_at > 0 && flying_from(journal) >= journal->renew_at;
}

/* Puts the next work together. Returns whether there is any. */
static bool prepare(struct spokei_journal *journal)
{
	struct spokei_journal_job *job = &journal->job;
	const struct spokei_journal_log *log = &journal->log;

	*job = (struct spokei_journal_job){ .restarts = log->broken || renews(journal) };
	if (spokei_buffer_len(&journal->flying) == 0) {
		struct spokei_buffer empty = journal->flying;

		if (journal->stage == SPOKEI_JOURNAL_OPEN && !log->broken && !journal->closing)
			tidy(journal);
		journal->flying = journal->gathered;
		journal->gathered = empty;
	}
	job->syncs = journal->options.durability == SPOKEI_DURABILITY_POWER || journal->base ||
		     journal->sync_due || journal->closing;
	job->spares = log->spare_fd < 0 && !journal->closing &&
		      (!journal->full || journal->tries_spare);
	journal->tries_spare = false;
	return spokei_buffer_len(&journal->flying) > 0 || job->restarts || job->spares ||
	       (job->syncs && journal->written > journal->durable);
}

static void again_due(struct spoke_alarm *alarm);

static void try_again(struct spokei_journal *journal, uint64_t delay_ns)
{
	journal->again_ns = spokei_later(now_of(journal), delay_ns);
	(void)!spoke_alarm_after(journal->engine, &journal->again_alarm, delay_ns, again_due);
}

static void finish_close(struct spokei_journal *journal)
{
	spokei_log_close(&journal->log, spokei_engine_forked(journal->engine));
	journal->stage = SPOKEI_JOURNAL_CLOSED;
	journal->up->closed(journal->arg);
}

/* --- after a work */

static void sync_due(struct spoke_alarm *alarm)
{
	struct spokei_journal *journal = spoke_container_of(alarm, struct spokei_journal,
							    sync_alarm);

	journal->sync_armed = false;
	journal->sync_due = journal->written > journal->durable;
	kick(journal);
}

/* Records were written. */
static void note_written(struct spokei_journal *journal)
{
	const struct spokei_journal_log *log = &journal->log;
	struct place place = { .number = log->segment.number,
			       .from = flying_from(journal) + log->rolled_at };
	size_t places = place_count(journal);

	if (journal->job.restarts && renews(journal))
		journal->renew_at = 0;
	if (places == 0 || place_at(journal, places - 1).number != place.number)
		add_place(journal, place);
	journal->written = flying_from(journal) + spokei_buffer_len(&journal->flying);
	spokei_buffer_clear(&journal->flying);
	journal->base = 0;
	if (journal->job.syncs) {
		journal->durable = journal->written;
		journal->sync_due = false;
		spokei_count(journal->engine, SPOKE_STAT_JOURNAL_SYNCS);
	} else if (!journal->sync_armed) {
		journal->sync_armed = spoke_alarm_after(journal->engine, &journal->sync_alarm,
							journal->options.sync_ns,
							sync_due) == SPOKE_OK;
	}
	if (journal->failures > 0)
		spokei_event(journal->engine, SPOKE_OK,
			     "journal %.96s: written again, from segment %u on",
			     journal->options.folder, (unsigned)log->segment.number);
	journal->broken = false;
	journal->failures = 0;
}

/* A write or a sync has failed. The same records are written again, to another segment, and all
 * tickets of earlier ones, because the system may have lost bytes that it has confirmed. */
static void note_failed(struct spokei_journal *journal)
{
	char text[SPOKEI_STATUS_TEXT];
	const char *reason = spokei_status_text(journal->job.status, text);
	const struct spokei_journal_log *log = &journal->log;
	bool wrote = journal->written > FIRST_POSITION;

	spokei_count(journal->engine, SPOKE_STAT_JOURNAL_FAILURES);
	journal->failures++;
	journal->failure = journal->job.status;
	journal->broken = true;
	/* Segments of earlier processes are durable. */
	if (log->broken && wrote && flying_from(journal) > journal->move_before)
		journal->move_before = flying_from(journal);
	if (journal->failures == 1 && wrote)
		spokei_event(journal->engine, SPOKE_ESYSTEM,
			     "journal %.96s: segment %u is given up: %s", journal->options.folder,
			     (unsigned)log->segment.number, reason);
	if (journal->failures == (wrote ? 2 : 1))
		spokei_event(journal->engine, SPOKE_ESYSTEM,
			     "journal %.96s cannot be written: %s; that is tried again",
			     journal->options.folder, reason);
	if (journal->failures > 1 || !wrote)
		try_again(journal, journal->job.status == -ENOSPC ? SPARE_AGAIN_NS : AGAIN_NS);
}

static void note_spare(struct spokei_journal *journal)
{
	char text[SPOKEI_STATUS_TEXT];
	int status = journal->job.spare_status;

	if (!journal->job.spares || journal->job.status)
		return;
	if (status && !journal->full) {
		spokei_event(
			journal->engine, SPOKE_ESYSTEM,
			"journal %.96s: no room for a further segment: %s; ends of tickets are "
			"still written",
			journal->options.folder, spokei_status_text(status, text));
	}
	if (!status && journal->full)
		spokei_event(journal->engine, SPOKE_OK, "journal %.96s: there is room again",
			     journal->options.folder);
	journal->full = status != 0;
	if (status)
		(void)!spoke_alarm_after(journal->engine, &journal->again_alarm, SPARE_AGAIN_NS,
					 again_due);
}

static void note_log(struct spokei_journal *journal)
{
	journal->room = spokei_log_room(&journal->log);
	journal->segments = spokei_log_segments(&journal->log);
}

static void wrote(struct spokei_journal *journal)
{
	if (journal->job.status)
		note_failed(journal);
	else
		note_written(journal);
	note_spare(journal);
	note_log(journal);
	release(journal);
	kick(journal);
}

/* Begins a work, unless one is under way. A journal that is closing begins one after the other, and
 * works at once if the engine has no threads any more. The files of a forked child are those of its
 * parent. */
static void begin_work(struct spokei_journal *journal)
{
	if (spokei_engine_forked(journal->engine))
		return;
	while (!journal->busy && (journal->stage == SPOKEI_JOURNAL_RESTORING ||
				  journal->stage == SPOKEI_JOURNAL_OPEN)) {
		int status;

		if (now_of(journal) < journal->again_ns && !journal->closing) {
			try_again(journal, journal->again_ns - now_of(journal));
			return;
		}
		/* Records that cannot be written at the end are lost. */
		if ((journal->closing && journal->failures > 1) || !prepare(journal)) {
			if (journal->closing)
				finish_close(journal);
			return;
		}
		status = submit(journal);
		if (status == -EAGAIN && !journal->closing) {
			try_again(journal, QUEUE_AGAIN_NS);
			return;
		}
		if (status) {
			run(&journal->work);
			wrote(journal);
		}
	}
}

static void settle(struct spokei_task *task)
{
	begin_work(spoke_container_of(task, struct spokei_journal, settle));
}

/* --- the beginning */

/* Tells why the journal is not used. */
static void report_unopened(const struct spokei_journal *journal, bool again)
{
	const struct spokei_log_report *report = &journal->found.log;
	char text[SPOKEI_STATUS_TEXT];
	int error = journal->job.error;
	const char *reason = report->status == -ELOOP ? SPOKEI_LOG_IS_LINK
			     : report->status         ? spokei_status_text(report->status, text)
						      : spoke_strerror(error);

	if (error == SPOKE_ECORRUPT && report->damaged > 0) {
		spokei_event(journal->engine, error,
			     "journal %.96s: damaged at byte %u of %08u.spokej, and not used; see "
			     "journal.damaged",
			     journal->options.folder, (unsigned)report->offset,
			     (unsigned)report->segment);
	} else if (report->segment > 0) {
		spokei_event(journal->engine, error, "journal %.96s is not used%s: %08u.spokej: %s",
			     journal->options.folder, again ? " yet, and read again" : "",
			     (unsigned)report->segment, reason);
	} else {
		spokei_event(journal->engine, error, "journal %.96s is not used%s: %s",
			     journal->options.folder, again ? " yet, and read again" : "", reason);
	}
}

/* The files could not be read, or must not be used. The first is tried again; until then calls are
 * refused as if the journal could not be written. */
static void note_unopened(struct spokei_journal *journal)
{
	int error = journal->job.error;
	bool again = (error == SPOKE_ESYSTEM && journal->found.log.status != -ELOOP) ||
		     error == SPOKE_ENOMEM;
	bool is_first = journal->failures++ == 0;

	journal->found.error = error;
	journal->failure = journal->found.log.status;
	if (again) {
		journal->broken = true;
		try_again(journal, AGAIN_NS);
	} else {
		journal->stage = SPOKEI_JOURNAL_UNUSABLE;
		spokei_log_close(&journal->log, false);
	}
	if (is_first || !again)
		report_unopened(journal, again);
	end_waits(journal, SPOKE_ESYSTEM);
	if (is_first || !again)
		journal->up->recovered(journal->arg, &journal->found);
}

static void merge_lists(struct spokei_journal *journal)
{
	struct spoke_list later;

	spokei_list_init(&later);
	spokei_list_move(&journal->live, &later);
	spokei_list_move(&journal->restored, &journal->live);
	while (!spokei_list_empty(&later)) {
		struct spoke_list *node = later.next;

		spokei_list_unlink(node);
		spokei_list_append(&journal->live, node);
	}
}

static void go_on(struct spokei_task *task)
{
	struct spokei_journal *journal = spoke_container_of(task, struct spokei_journal, go_on);
	const struct spoke_env *env = journal->engine->env;
	int error;

	if (journal->closing || journal->stage != SPOKEI_JOURNAL_RESTORING)
		return;
	for (unsigned i = 0; i < RESTORE_MAX; i++) {
		struct spokei_replay_ticket *ticket = spokei_replay_first(&journal->replay);

		if (ticket == NULL) {
			merge_lists(journal);
			spokei_replay_fini(&journal->replay);
			journal->stage = SPOKEI_JOURNAL_OPEN;
			journal->found.took_ns = env->now(env->ctx) - journal->begun_ns;
			journal->up->recovered(journal->arg, &journal->found);
			kick(journal);
			return;
		}
		error = journal->up->restore(journal->arg, ticket);
		if (error == SPOKE_ENOMEM || error == SPOKE_ECLOSED) {
			(void)!spoke_alarm_after(journal->engine, &journal->again_alarm,
						 SPARE_AGAIN_NS, again_due);
			return;
		}
		journal->pinned |= error != SPOKE_OK;
		spokei_replay_drop(&journal->replay, ticket);
	}
	spokei_run_soon(journal->engine, &journal->go_on);
}

static void opened(struct spokei_journal *journal)
{
	if (journal->closing) {
		finish_close(journal);
		return;
	}
	if (journal->job.error) {
		note_unopened(journal);
		return;
	}
	journal->broken = journal->log.broken;
	journal->failure = journal->found.log.status;
	journal->failures = 0;
	journal->again_ns = 0;
	journal->found.error = SPOKE_OK;
	if (journal->found.log.torn) {
		spokei_event(journal->engine, SPOKE_OK,
			     "journal %.96s: the end of %08u.spokej, from byte %u on, was torn, "
			     "as by a loss of power during its last write",
			     journal->options.folder, (unsigned)journal->found.log.segment,
			     (unsigned)journal->found.log.offset);
	}
	journal->found.skipped = journal->replay.skipped;
	memcpy(journal->found.journal, journal->log.segment.journal, SPOKEI_JOURNAL_ID);
	if (journal->found.log.damaged || journal->found.skipped) {
		spokei_event(journal->engine, SPOKE_ECORRUPT,
			     "journal %.96s: damaged at byte %u of %08u.spokej; the records there "
			     "are lost, the others are used",
			     journal->options.folder, (unsigned)journal->found.log.offset,
			     (unsigned)journal->found.log.segment);
	}
	journal->stage = SPOKEI_JOURNAL_RESTORING;
	begin_waits(journal);
	note_log(journal);
	spokei_run_soon(journal->engine, &journal->go_on);
	kick(journal);
}

static void begin_open(struct spokei_journal *journal)
{
	spokei_replay_fini(&journal->replay);
	spokei_replay_init(&journal->replay, journal->engine->env, journal->options.salvages);
	journal->job = (struct spokei_journal_job){ .opens = true };
	if (submit(journal))
		try_again(journal, QUEUE_AGAIN_NS);
}

static void done(struct spoke_work *work)
{
	struct spokei_journal *journal = spoke_container_of(work, struct spokei_journal, work);

	journal->busy = false;
	if (spokei_engine_forked(journal->engine)) {
		finish_close(journal);
		return;
	}
	/* The engine is being freed, and has no threads any more. */
	if (work->status && !journal->job.opens)
		run(work);
	else if (work->status)
		journal->job.error = SPOKE_ECLOSED;
	if (journal->job.opens) {
		opened(journal);
		return;
	}
	wrote(journal);
	if (journal->closing)
		begin_work(journal);
}

static void again_due(struct spoke_alarm *alarm)
{
	struct spokei_journal *journal = spoke_container_of(alarm, struct spokei_journal,
							    again_alarm);

	journal->tries_spare = true;
	if (journal->stage == SPOKEI_JOURNAL_READING && !journal->busy)
		begin_open(journal);
	if (journal->stage == SPOKEI_JOURNAL_RESTORING)
		spokei_run_soon(journal->engine, &journal->go_on);
	kick(journal);
}

static int refuse_folder(const struct spokei_journal *journal, int error, int status)
{
	const char *folder = journal->options.folder;
	char text[SPOKEI_STATUS_TEXT];

	if (error == SPOKE_EEXIST) {
		spokei_event(journal->engine, error,
			     "journal %.96s: in use by another process, or by another consumer or "
			     "provider of this one; each needs a folder of its own",
			     folder);
	} else {
		spokei_event(journal->engine, error, "journal %.96s: %s", folder,
			     status ? spokei_status_text(status, text) : spoke_strerror(error));
	}
	return error;
}

int spokei_journal_begin(struct spokei_journal *journal, struct spoke_engine *engine,
			 const struct spokei_journal_options *options,
			 const struct spokei_journal_up *up, void *arg)
{
	const struct spoke_env *env = engine->env;
	int status = 0;
	int error;

	*journal = (struct spokei_journal){
		.up = up,
		.arg = arg,
		.engine = engine,
		.options = *options,
		.position = FIRST_POSITION,
		.written = FIRST_POSITION,
		.durable = FIRST_POSITION,
		.begun_ns = env->now(env->ctx),
		.settle.run = settle,
		.go_on.run = go_on,
	};
	if (options->gather_max == 0)
		journal->options.gather_max = SPOKEI_JOURNAL_GATHER_MAX;
	error = env->files->open_log ? spokei_log_lock(&journal->log, env, options->folder, &status)
				     : SPOKE_EUNSUPPORTED;
	if (error)
		return refuse_folder(journal, error, status);
	spokei_buffer_init(&journal->gathered, env, BUFFER_MAX);
	spokei_buffer_init(&journal->flying, env, BUFFER_MAX);
	spokei_buffer_init(&journal->places, env, BUFFER_MAX);
	spokei_list_init(&journal->live);
	spokei_list_init(&journal->restored);
	spokei_list_init(&journal->waiting);
	spokei_replay_init(&journal->replay, env, options->salvages);
	journal->log_options = (struct spokei_log_options){
		.env = env,
		.folder = options->folder,
		.consumer = options->consumer,
		.wall_ns = env->wall(env->ctx),
		.segment_size = options->segment_size ? options->segment_size : SPOKEI_LOG_SEGMENT,
		.salvages = options->salvages,
		.take = spokei_replay_take,
		.arg = &journal->replay,
	};
	env->dice(env->ctx, journal->log_options.journal, SPOKEI_JOURNAL_ID);
	begin_open(journal);
	return SPOKE_OK;
}

/* --- tickets */

/* Is there room on the disk for so many more bytes, and for the ends of all tickets? */
static bool has_room(const struct spokei_journal *journal, uint64_t bytes, uint64_t tickets)
{
	uint64_t used = spokei_buffer_len(&journal->gathered) + spokei_buffer_len(&journal->flying);

	if (journal->stage == SPOKEI_JOURNAL_READING ||
	    (journal->options.no_ends && !journal->full))
		return true;
	if (!journal->options.no_ends)
		bytes += tickets * SPOKEI_ENDED_SIZE;
	return used + bytes <= journal->room;
}

/* Returns why no record can be gathered, or 0. */
static int check_gather(const struct spokei_journal *journal)
{
	if (journal->stage >= SPOKEI_JOURNAL_UNUSABLE || journal->closing || journal->broken)
		return SPOKE_ESYSTEM;
	return spokei_buffer_len(&journal->gathered) >= journal->options.gather_max ? SPOKE_ELIMIT
										    : SPOKE_OK;
}

static bool is_over_max(const struct spokei_journal *journal)
{
	uint64_t size = (uint64_t)journal->segments * journal->log_options.segment_size;

	return journal->options.size_max && size > journal->options.size_max;
}

int spokei_journal_check(const struct spokei_journal *journal, size_t bytes)
{
	int error = check_gather(journal);

	if (!error &&
	    (is_over_max(journal) || !has_room(journal, bytes, (uint64_t)journal->count + 1)))
		error = SPOKE_ELIMIT;
	return error;
}

int spokei_journal_add(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
		       uint64_t number)
{
	size_t before = spokei_buffer_len(&journal->gathered);
	int error = spokei_journal_check(journal, 0);

	*ticket = (struct spokei_journal_ticket){ .number = number };
	if (!error)
		error = put_open(journal, ticket);
	if (error)
		return error;
	if (ticket->record > SPOKEI_JOURNAL_GATHER_MAX)
		error = SPOKE_ETOOLARGE;
	else if (!has_room(journal, 0, (uint64_t)journal->count + 1))
		error = SPOKE_ELIMIT;
	if (error) {
		spokei_buffer_truncate(&journal->gathered, before);
		journal->position -= ticket->record;
		journal->live_bytes -= ticket->record;
		return error;
	}
	spokei_list_append(&journal->live, &ticket->node);
	journal->count++;
	if (journal->options.durability != SPOKEI_DURABILITY_NONE)
		wait_for(journal, ticket);
	kick(journal);
	return SPOKE_OK;
}

void spokei_journal_adopt(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
			  const struct spokei_replay_ticket *from)
{
	*ticket = (struct spokei_journal_ticket){
		.number = from->number,
		.position = from->position,
		.record = from->record,
	};
	spokei_list_append(&journal->restored, &ticket->node);
	journal->count++;
	journal->live_bytes += from->record;
}

int spokei_journal_note(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
			const struct spokei_record_tried *tried, bool waits)
{
	size_t before = spokei_buffer_len(&journal->gathered);
	int error = check_gather(journal);

	if (!error && !has_room(journal, (uint64_t)SPOKEI_ENDED_SIZE * 3, journal->count))
		error = SPOKE_ELIMIT;
	if (!error)
		error = spokei_record_put_tried(&journal->gathered, ticket->number, tried);
	if (error)
		return error;
	journal->position += spokei_buffer_len(&journal->gathered) - before;
	if (waits && journal->options.durability != SPOKEI_DURABILITY_NONE)
		wait_for(journal, ticket);
	kick(journal);
	return SPOKE_OK;
}

static void leave(struct spokei_journal *journal, struct spokei_journal_ticket *ticket)
{
	SPOKE_ASSERT(ticket->node.next != NULL);
	spokei_list_remove(&ticket->node);
	if (ticket->waiting.next)
		spokei_list_remove(&ticket->waiting);
	journal->count--;
	journal->live_bytes -= ticket->record;
}

void spokei_journal_forget(struct spokei_journal *journal, struct spokei_journal_ticket *ticket)
{
	leave(journal, ticket);
	if (journal->stage < SPOKEI_JOURNAL_UNUSABLE)
		kick(journal);
}

void spokei_journal_keep(struct spokei_journal *journal, struct spokei_journal_ticket *ticket)
{
	leave(journal, ticket);
	journal->pinned = true;
}

void spokei_journal_settle(struct spokei_journal *journal, struct spokei_journal_ticket *ticket,
			   uint32_t settlement)
{
	size_t before = spokei_buffer_len(&journal->gathered);

	leave(journal, ticket);
	if (journal->stage >= SPOKEI_JOURNAL_UNUSABLE)
		return;
	/* Without memory for its end, the ticket ends with the segments that contain it. */
	if (spokei_record_put_ended(&journal->gathered, ticket->number, settlement) != SPOKE_OK) {
		journal->renew_at = journal->position;
		journal->move_before = journal->position;
	}
	journal->position += spokei_buffer_len(&journal->gathered) - before;
	kick(journal);
}

/* --- the end */

void spokei_journal_close(struct spokei_journal *journal)
{
	if (journal->closing)
		return;
	journal->closing = true;
	(void)spoke_alarm_cancel(&journal->sync_alarm);
	(void)spoke_alarm_cancel(&journal->wait_alarm);
	(void)spoke_alarm_cancel(&journal->again_alarm);
	if (journal->busy)
		return;
	if (spokei_engine_forked(journal->engine) ||
	    (journal->stage != SPOKEI_JOURNAL_RESTORING && journal->stage != SPOKEI_JOURNAL_OPEN))
		finish_close(journal);
	else
		begin_work(journal);
}

void spokei_journal_fini(struct spokei_journal *journal)
{
	SPOKE_ASSERT(journal->stage == SPOKEI_JOURNAL_CLOSED);
	spokei_task_drop(&journal->settle);
	spokei_task_drop(&journal->go_on);
	(void)spoke_alarm_cancel(&journal->sync_alarm);
	(void)spoke_alarm_cancel(&journal->wait_alarm);
	(void)spoke_alarm_cancel(&journal->again_alarm);
	spokei_replay_fini(&journal->replay);
	spokei_buffer_fini(&journal->gathered);
	spokei_buffer_fini(&journal->flying);
	spokei_buffer_fini(&journal->places);
}
