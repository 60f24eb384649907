/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a journal, on a thread of the pool. */
#include "cluster/journal/log.h"

#include "core/base/env.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define PATH_SIZE 4096u
#define SUFFIX ".spokej"
#define DIGITS 8u
#define NAME (DIGITS + sizeof(SUFFIX)) /* bytes of a name with the NUL */
#define LOCK "journal"
#define NAMES_SIZE ((size_t)16 * SPOKEI_LOG_SEGMENTS_MAX)
#define READ_MAX ((size_t)4 * SPOKEI_LOG_SEGMENT) /* bytes of a segment */
#define UNKNOWN UINT32_MAX                        /* end of the segment before a damaged head */

/* Writes the path of a segment, or of the lock: 0. */
static int name_path(const struct spokei_journal_log *log, uint32_t number, char path[PATH_SIZE])
{
	int len = number ? snprintf(path, PATH_SIZE, "%s/%0*u" SUFFIX, log->folder, (int)DIGITS,
				    number)
			 : snprintf(path, PATH_SIZE, "%s/" LOCK, log->folder);

	return len < 0 || (unsigned)len >= PATH_SIZE ? -ENAMETOOLONG : 0;
}

static void close_file(const struct spokei_journal_log *log, int *fd)
{
	if (*fd >= 0)
		log->env->net->close(log->env->ctx, *fd);
	*fd = -1;
}

/* --- reading */

struct reading {
	struct spokei_journal_log *log;
	const struct spokei_log_options *options;
	struct spokei_log_report *report;
	uint32_t *numbers; /* of the segments, in order */
	uint32_t count;
	unsigned char *bytes; /* READ_MAX */
	uint32_t bad_segment; /* where damage was found first in the search for the first segment; 0
			       */
	uint32_t bad_offset;
};

static int fail(struct reading *reading, uint32_t number, int status)
{
	reading->report->segment = number;
	reading->report->status = status;
	return status == -ENOMEM ? SPOKE_ENOMEM : SPOKE_ESYSTEM;
}

static int is_before(const void *one, const void *other)
{
	uint32_t a = *(const uint32_t *)one;
	uint32_t b = *(const uint32_t *)other;

	return (a > b) - (a < b);
}

/* Returns the number of a segment with this name; 0: it is another file. */
static uint32_t number_of(const char *name)
{
	uint32_t number = 0;

	for (unsigned i = 0; i < DIGITS; i++) {
		if (name[i] < '0' || name[i] > '9')
			return 0;
		number = number * 10 + (uint32_t)(name[i] - '0');
	}
	return strcmp(name + DIGITS, SUFFIX) == 0 ? number : 0;
}

static int list(struct reading *reading)
{
	const struct spoke_env *env = reading->log->env;
	char *names = (char *)reading->bytes;
	ssize_t len = env->files->list(env->ctx, reading->log->folder, names, NAMES_SIZE);

	if (len < 0)
		return fail(reading, 0, (int)len);
	for (const char *name = names; name < names + len; name += strlen(name) + 1) {
		uint32_t number = number_of(name);

		if (number == 0)
			continue;
		if (reading->count == SPOKEI_LOG_SEGMENTS_MAX)
			return fail(reading, 0, -EFBIG);
		reading->numbers[reading->count++] = number;
	}
	qsort(reading->numbers, reading->count, sizeof(*reading->numbers), is_before);
	return SPOKE_OK;
}

/* Refuses a segment that is a symbolic link: it would be read, but not written to. */
static int check_link(const struct spokei_journal_log *log, const char *path)
{
	int fd = -1;
	int status = log->env->files->open_log(log->env->ctx, path, false, &fd);

	if (status == 0)
		close_file(log, &fd);
	return status == -ELOOP ? status : 0;
}

/* Reads a segment and its head. *ret_head: as spokei_segment_read(). */
static int read_segment(struct reading *reading, uint32_t number, struct spokei_segment *ret,
			size_t *ret_len, int *ret_head)
{
	struct spokei_journal_log *log = reading->log;
	char path[PATH_SIZE];
	ssize_t len = name_path(log, number, path);

	if (len == 0)
		len = check_link(log, path);
	if (len == 0)
		len = log->env->files->read(log->env->ctx, path, reading->bytes, READ_MAX);
	if (len < 0)
		return fail(reading, number, (int)len);
	*ret_head = spokei_segment_read(&log->crc, reading->bytes, (size_t)len, ret);
	*ret_len = (size_t)len;
	return SPOKE_OK;
}

/* Counts a piece that is lost, or torn. */
static void note_bad(struct reading *reading, uint32_t segment, size_t offset, bool torn)
{
	struct spokei_log_report *report = reading->report;

	if (report->torn + report->damaged == 0) {
		report->segment = segment;
		report->offset = (uint32_t)offset;
	}
	if (torn)
		report->torn = 1;
	else
		report->damaged++;
}

/* Reads the records of a segment, up to its end. Notes where that is, and the greatest BASE.
 * Without `takes` only that is done. */
static int read_records(struct reading *reading, const struct spokei_segment *segment, size_t len,
			struct spokei_segment_end end, bool takes, uint32_t *base)
{
	struct spokei_record_reader reader;
	struct spokei_record record;
	enum spokei_record_found found = SPOKEI_RECORD_FOUND;
	int error = SPOKE_OK;

	spokei_record_begin(&reader, &reading->log->crc, segment, reading->bytes, len, end);
	reading->log->end = UINT32_MAX;
	while (!error && found != SPOKEI_RECORD_END) {
		found = spokei_record_next(&reader, &record);
		if (found == SPOKEI_RECORD_TORN)
			reading->log->end = (uint32_t)reader.bad;
		if (found == SPOKEI_RECORD_FOUND && record.kind == SPOKEI_RECORD_BASE &&
		    record.ticket > *base && record.ticket <= segment->number)
			*base = (uint32_t)record.ticket;
		record.segment = segment->number;
		if (found == SPOKEI_RECORD_FOUND && record.kind != SPOKEI_RECORD_BASE && takes)
			error = reading->options->take(reading->options->arg, &record);
		if (found == SPOKEI_RECORD_DAMAGED && !takes && reading->bad_segment == 0) {
			reading->bad_segment = segment->number;
			reading->bad_offset = (uint32_t)reader.bad;
		}
		if (!takes || (found != SPOKEI_RECORD_TORN && found != SPOKEI_RECORD_DAMAGED))
			continue;
		note_bad(reading, segment->number, reader.bad, found == SPOKEI_RECORD_TORN);
		if (found == SPOKEI_RECORD_DAMAGED && !reading->options->salvages)
			error = SPOKE_ECORRUPT;
	}
	if (reading->log->end == UINT32_MAX)
		reading->log->end = (uint32_t)reader.at;
	return error;
}

/* Was the head of a last segment never finished? A write that failed may have left a part of it,
 * and no record follows. */
static bool is_unfinished(const struct reading *reading, int head, size_t len)
{
	if (len < SPOKEI_SEGMENT_HEAD)
		return true;
	return (head == SPOKE_ETRUNCATED || head == SPOKE_ECORRUPT) &&
	       spokei_segment_is_blank(reading->bytes + SPOKEI_SEGMENT_HEAD,
				       len - SPOKEI_SEGMENT_HEAD);
}

/* Finds the number of the journal, for segments with damaged heads: in the other ones, the
 * last of them first, or in the bytes of a damaged head. */
static int find_journal(struct reading *reading, struct spokei_segment *ret)
{
	int head = SPOKE_ECORRUPT;
	size_t len = 0;

	for (uint32_t place = reading->count; head && place > 0;) {
		int error = read_segment(reading, reading->numbers[--place], ret, &len, &head);

		if (error)
			return error;
	}
	if (head && len >= SPOKEI_SEGMENT_HEAD)
		spokei_segment_guess(reading->bytes, ret);
	return SPOKE_OK;
}

/* Reads a segment with a damaged head, for a salvage: a wrong guess is found out, because the sum
 * of each record contains the number of the segment and of the journal. */
static int guess_head(struct reading *reading, uint32_t number, struct spokei_segment *ret,
		      size_t *ret_len)
{
	struct spokei_segment guess = reading->log->segment;
	int error = SPOKE_OK;
	int head;

	if (guess.number == 0) {
		error = find_journal(reading, &guess);
		if (!error)
			error = read_segment(reading, number, ret, ret_len, &head);
	}
	if (reading->bad_segment == 0)
		reading->bad_segment = number;
	guess.number = number;
	guess.previous_end = UNKNOWN;
	*ret = guess;
	return error;
}

/* Reads the segment at this place, and judges its head. *ret_found: false, it is the last one and
 * was never finished, so that it counts as absent. */
static int read_place(struct reading *reading, uint32_t place, struct spokei_segment *ret,
		      size_t *ret_len, bool *ret_found)
{
	struct spokei_segment *last = &reading->log->segment;
	const uint32_t number = reading->numbers[place];
	int head;
	int error = read_segment(reading, number, ret, ret_len, &head);

	*ret_found = error || place + 1 < reading->count || !is_unfinished(reading, head, *ret_len);
	if (error || !*ret_found)
		return error;
	if (head == SPOKE_OK && ret->number != number)
		error = SPOKE_EINVAL;
	else if (head != SPOKE_OK && head != SPOKE_EUNSUPPORTED && reading->options->salvages)
		error = guess_head(reading, number, ret, ret_len);
	else
		error = head == SPOKE_ETRUNCATED ? SPOKE_ECORRUPT : head;
	if (!error && last->number == 0) {
		*last = *ret;
		reading->log->size = (uint32_t)*ret_len;
	}
	if (!error && memcmp(ret->journal, last->journal, SPOKEI_JOURNAL_ID) != 0)
		error = SPOKE_EINVAL;
	if (error)
		reading->report->segment = number;
	return error;
}

/* A segment that counts is missing, or the BASE that has ended it is damaged. */
static int miss(struct reading *reading, uint32_t number)
{
	struct spokei_log_report *report = reading->report;

	if (reading->bad_segment && reading->options->salvages)
		return SPOKE_OK;
	report->segment = reading->bad_segment ? reading->bad_segment : number;
	report->offset = reading->bad_offset;
	report->damaged = reading->bad_segment != 0;
	return SPOKE_ECORRUPT;
}

/* Goes back from the last segment to the first one that counts. Returns its place. */
static int find_first(struct reading *reading, struct spokei_segment_end ends[],
		      uint32_t *ret_place)
{
	uint32_t place = reading->count;
	uint32_t base = 0;
	struct spokei_segment_end end = { 0 };
	int error = SPOKE_OK;

	while (place > 0) {
		struct spokei_segment segment;
		uint32_t number = reading->numbers[--place];
		bool found;
		size_t len;

		error = read_place(reading, place, &segment, &len, &found);
		if (error)
			return error;
		if (!found) {
			reading->count--;
			continue;
		}
		ends[place] = end;
		error = read_records(reading, &segment, len, ends[place], false, &base);
		if (error)
			return error;
		*ret_place = place;
		if (number == base || segment.previous_end == 0)
			return SPOKE_OK;
		end = (struct spokei_segment_end){ segment.previous_end, segment.uncertain };
		if (end.at == UNKNOWN)
			end = (struct spokei_segment_end){ 0 };
		if (place == 0 || reading->numbers[place - 1] != number - 1)
			return miss(reading, number - 1);
	}
	*ret_place = 0;
	return SPOKE_OK;
}

static int read_all(struct reading *reading)
{
	/* Also the greatest number of them. */
	struct spokei_segment_end *ends = spokei_alloc(reading->log->env, SPOKEI_LOG_SEGMENTS_MAX,
						       sizeof(*ends));
	uint32_t base = 0;
	uint32_t place = 0;
	int error = ends ? list(reading) : SPOKE_ENOMEM;

	if (!error)
		error = find_first(reading, ends, &place);
	reading->log->first = !error && reading->count > 0 ? reading->numbers[0] : 1;
	for (; !error && place < reading->count; place++) {
		struct spokei_segment segment;
		bool found;
		size_t len;

		error = read_place(reading, place, &segment, &len, &found);
		if (!error && segment.previous_end == UNKNOWN)
			note_bad(reading, segment.number, 0, false);
		if (!error)
			error = read_records(reading, &segment, len, ends[place], true, &base);
	}
	spokei_free(reading->log->env, ends, SPOKEI_LOG_SEGMENTS_MAX, sizeof(*ends));
	return error;
}

/* --- segments */

/* Removes a segment that was not finished. If the name may come back after a loss of power, nothing
 * may be appended to the segment before it. */
static void drop_segment(struct spokei_journal_log *log, uint32_t number)
{
	const struct spoke_env *env = log->env;
	char path[PATH_SIZE];
	int status = name_path(log, number, path);

	if (!status)
		status = env->files->remove(env->ctx, path);
	if (!status || status == -ENOENT)
		status = env->files->sync_folder(env->ctx, log->folder);
	log->broken = log->broken || status != 0;
}

/* Opens the file of the next segment, and reserves its room. After a negative errno there is no
 * descriptor; the file may be left, and counts as absent. */
static int open_next(struct spokei_journal_log *log, uint32_t size)
{
	const struct spoke_files *files = log->env->files;
	void *ctx = log->env->ctx;
	char path[PATH_SIZE];
	int status = name_path(log, log->segment.number + 1, path);

	if (status)
		return status;
	(void)!files->remove(ctx, path); /* of an attempt that failed */
	status = files->open_log(ctx, path, true, &log->spare_fd);
	if (!status)
		status = files->allocate(ctx, log->spare_fd, size);
	if (!status)
		status = files->sync_folder(ctx, log->folder);
	if (status) {
		close_file(log, &log->spare_fd);
		(void)!files->remove(ctx, path);
	}
	return status;
}

int spokei_log_spare(struct spokei_journal_log *log)
{
	return log->spare_fd >= 0 ? 0 : open_next(log, log->segment_size);
}

/* Begins the segment after the last one, and makes it durable. After a negative errno the log is as
 * before, or broken. */
static int make_segment(struct spokei_journal_log *log, size_t room)
{
	const struct spoke_files *files = log->env->files;
	void *ctx = log->env->ctx;
	struct spokei_segment segment = log->segment;
	unsigned char head[SPOKEI_SEGMENT_HEAD];
	uint32_t size = log->segment_size;
	int status = 0;

	segment.number++;
	segment.previous_end = log->segment.number ? log->end : 0;
	segment.uncertain = log->segment.number ? log->end - log->durable : 0;
	if (room + sizeof(head) > size)
		size = (uint32_t)(room + sizeof(head));
	if (log->spare_fd < 0)
		status = open_next(log, size);
	else if (size > log->segment_size)
		status = files->allocate(ctx, log->spare_fd, size);
	if (status)
		return status;
	spokei_segment_put(&log->crc, &segment, head);
	status = files->write_at(ctx, log->spare_fd, 0, head, sizeof(head));
	if (!status)
		status = files->sync(ctx, log->spare_fd);
	if (status) {
		close_file(log, &log->spare_fd);
		drop_segment(log, segment.number);
		return status;
	}
	close_file(log, &log->fd);
	log->segment = segment;
	log->fd = log->spare_fd;
	log->spare_fd = -1;
	log->size = size;
	log->end = log->durable = sizeof(head);
	return 0;
}

static int write_records(struct spokei_journal_log *log, unsigned char *records, size_t len)
{
	int status;

	spokei_records_seal(&log->crc, &log->segment, log->durable, records, len);
	status = log->env->files->write_at(log->env->ctx, log->fd, log->end, records, len);
	if (!status)
		log->end += (uint32_t)len;
	log->broken = log->broken || status != 0;
	return status;
}

int spokei_log_sync(struct spokei_journal_log *log)
{
	int status = log->broken ? -EIO : 0;

	if (!status && log->durable < log->end)
		status = log->env->files->sync(log->env->ctx, log->fd);
	if (status)
		log->broken = true; /* a later sync would return 0, but not have saved the bytes */
	else
		log->durable = log->end;
	return status;
}

/* Returns the bytes of the first records that fit. */
static size_t first_records(const unsigned char *records, size_t len, size_t room)
{
	size_t taken = 0;

	while (taken < len) {
		size_t size = spokei_record_size(records + taken);

		if (taken + size > room)
			break;
		taken += size;
	}
	return taken;
}

/* Begins a segment with room for a record, after the present one, which is full. */
static int roll(struct spokei_journal_log *log, size_t room)
{
	int status = spokei_log_sync(log);

	return status ? status : make_segment(log, room);
}

int spokei_log_write(struct spokei_journal_log *log, unsigned char *records, size_t len, bool syncs)
{
	int status = log->broken ? -EIO : 0;
	size_t done = 0;

	log->rolled_at = 0;
	while (!status && done < len) {
		size_t part = first_records(records + done, len - done, log->size - log->end);

		if (part == 0) {
			status = roll(log, spokei_record_size(records + done));
			log->rolled_at = done;
			continue;
		}
		status = write_records(log, records + done, part);
		done += part;
	}
	return status || !syncs ? status : spokei_log_sync(log);
}

int spokei_log_restart(struct spokei_journal_log *log)
{
	int status;

	(void)!spokei_log_sync(log);
	status = make_segment(log, 0);
	if (!status)
		log->broken = false;
	return status;
}

void spokei_log_drop(struct spokei_journal_log *log, uint32_t number)
{
	const struct spoke_env *env = log->env;
	char path[PATH_SIZE];

	while (log->first < number) {
		int status = name_path(log, log->first, path);

		if (!status)
			status = env->files->remove(env->ctx, path);
		if (status && status != -ENOENT)
			return;
		log->first++;
	}
	(void)!env->files->sync_folder(env->ctx, log->folder);
}

/* --- the journal */

/* Makes the file of the lock of a path for its owner only: a user that may open it could hold the
 * lock. If that fails, the lock has the reason. */
static void make_lock_file(const struct spokei_journal_log *log, const char *path)
{
	char name[PATH_SIZE];
	int len = snprintf(name, sizeof(name), "%s.lock", path);
	int fd = -1;

	if (len > 0 && (unsigned)len < sizeof(name) &&
	    log->env->files->open_log(log->env->ctx, name, true, &fd) == 0)
		close_file(log, &fd);
}

int spokei_log_lock(struct spokei_journal_log *log, const struct spoke_env *env, const char *folder,
		    int *ret_status)
{
	char path[PATH_SIZE];
	int status;

	*log = (struct spokei_journal_log){
		.env = env, .folder = folder, .lock_fd = -1, .fd = -1, .spare_fd = -1
	};
	status = name_path(log, 0, path);
	if (!status)
		make_lock_file(log, path);
	if (!status)
		status = env->files->lock(env->ctx, path, &log->lock_fd);
	if (status)
		log->lock_fd = -1;
	*ret_status = status;
	return status == 0 ? SPOKE_OK : status == -EAGAIN ? SPOKE_EEXIST : SPOKE_ESYSTEM;
}

void spokei_log_close(struct spokei_journal_log *log, bool forked)
{
	close_file(log, &log->fd);
	close_file(log, &log->spare_fd);
	if (forked)
		close_file(log, &log->lock_fd);
	else if (log->lock_fd >= 0)
		log->env->files->unlock(log->env->ctx, log->lock_fd);
	log->lock_fd = -1;
}

/* Reads the records that count. */
static int read_log(struct spokei_journal_log *log, const struct spokei_log_options *options,
		    struct spokei_log_report *ret_report)
{
	const struct spoke_env *env = options->env;
	struct reading reading = { .log = log, .options = options, .report = ret_report };
	int error;

	*ret_report = (struct spokei_log_report){ 0 };
	spokei_crc_init(&log->crc);
	reading.bytes = spokei_alloc_unset(env, READ_MAX);
	reading.numbers = spokei_alloc(env, SPOKEI_LOG_SEGMENTS_MAX, sizeof(*reading.numbers));
	error = reading.bytes && reading.numbers ? read_all(&reading) : SPOKE_ENOMEM;
	spokei_free(env, reading.bytes, READ_MAX, 1);
	spokei_free(env, reading.numbers, SPOKEI_LOG_SEGMENTS_MAX, sizeof(*reading.numbers));
	return error;
}

int spokei_log_read(const struct spokei_log_options *options, struct spokei_log_report *ret_report)
{
	struct spokei_journal_log log = { .env = options->env, .folder = options->folder };

	return read_log(&log, options, ret_report);
}

/* Has the disk take the end of the last segment, which the next record is about to confirm: the
 * process before may have died before its sync. Opens the segment. */
static int sync_last(struct spokei_journal_log *log)
{
	const struct spoke_files *files = log->env->files;
	char path[PATH_SIZE];
	int status;

	if (log->segment.number == 0)
		return 0;
	status = name_path(log, log->segment.number, path);
	if (!status)
		status = files->open_log(log->env->ctx, path, false, &log->fd);
	return status ? status : files->sync(log->env->ctx, log->fd);
}

int spokei_log_open(struct spokei_journal_log *log, const struct spokei_log_options *options,
		    struct spokei_log_report *ret_report)
{
	int error;
	int status;

	log->segment_size = options->segment_size ? options->segment_size : SPOKEI_LOG_SEGMENT;
	log->segment = (struct spokei_segment){ .number = 0 };
	error = read_log(log, options, ret_report);
	if (error)
		return error;
	if (log->segment.number == 0)
		memcpy(log->segment.journal, options->journal, SPOKEI_JOURNAL_ID);
	log->segment.wall_ns = options->wall_ns;
	if (options->consumer)
		log->segment.consumer = options->consumer;
	status = sync_last(log);
	if (status) {
		close_file(log, &log->fd);
		ret_report->segment = log->segment.number;
		ret_report->status = status;
		return status == -ENOMEM ? SPOKE_ENOMEM : SPOKE_ESYSTEM;
	}
	log->durable = log->end;
	if (options->appends && log->segment.number && !ret_report->torn && !ret_report->damaged &&
	    log->end < log->size)
		return SPOKE_OK;
	close_file(log, &log->fd);
	/* Without room for a segment the tickets are read all the same. */
	ret_report->status = make_segment(log, 0);
	log->broken = ret_report->status != 0;
	return SPOKE_OK;
}
