/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists the locks in a store: SCAN goes through its keys, some at a time, and a script looks at
 * each hash that it finds. A single name needs the script only. A listing keeps the names of one
 * step only. When the connection is lost, the commands that were not answered are sent again, once.
 */
#include "cluster/lease/job.h"
#include "cluster/lease/names.h"
#include "cluster/lease/parts.h"

#include <stdio.h>

#define JOB "list of leases"
#define STEP 512u       /* keys that the store goes through in one step, at first */
#define LOOKS 16u       /* scripts under way */
#define CURSOR_SIZE 24u /* a number of 64 bits, with the NUL */
#define TRIES 2u        /* in a row, without any answer */
#define MATCH_MAX                                                                                  \
	((size_t)2 * SPOKE_LEASE_NAME_MAX) /* bytes of a pattern: a name, each one escaped */
#define NS_PER_MS UINT64_C(1000000)

/* A script under way, or one to be sent again. */
struct look {
	struct spokei_redis_ask ask;
	struct listing *listing;
	uint32_t name; /* its index */
	bool used;
	bool under;
};

struct listing {
	struct spokei_lease_job job;
	spoke_lease_info_fn each;
	void *arg;
	struct spokei_redis_ask scan;
	bool scanning; /* `scan` is under way */
	bool begun;    /* a step was answered */
	bool typed;    /* the store knows the option TYPE, which comes with Redis 6 */
	uint32_t step;
	unsigned tries;
	char cursor[CURSOR_SIZE];
	struct look looks[LOOKS];
	struct spoke_span *names; /* of this step, with their bytes behind them; NULL: none */
	size_t names_size;
	uint32_t name_count;
	uint32_t next; /* name to look at */
	size_t match_len;
	char match[];
};

static struct listing *listing_of(struct spokei_lease_job *job)
{
	return spoke_container_of(job, struct listing, job);
}

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

static void go_on(struct listing *listing);

static void drop_names(struct listing *listing)
{
	spokei_free(listing->job.leases->engine->env, listing->names, 1, listing->names_size);
	listing->names = NULL;
	listing->name_count = 0;
	listing->next = 0;
}

static void listing_end(struct spokei_lease_job *job, int error)
{
	struct listing *listing = listing_of(job);
	const struct spoke_env *env = job->leases->engine->env;
	spoke_lease_info_fn each = listing->each;
	void *arg = listing->arg;

	drop_names(listing);
	spokei_free(env, listing, 1, sizeof(*listing) + listing->match_len);
	each(arg, NULL, error);
}

/* A command was not answered, or could not be sent. It is sent again, once. */
static void miss(struct listing *listing, int error)
{
	if (error == SPOKE_ENOMEM)
		spokei_lease_job_end(&listing->job, error);
	else if (error == SPOKE_ELIMIT || listing->tries >= TRIES)
		spokei_lease_job_end(&listing->job, SPOKE_EUNAVAILABLE);
	else
		listing->job.waits = true;
}

/* Goes on after an answer, or after all commands of a lost connection have ended. */
static void answered(struct listing *listing)
{
	struct spokei_lease_job *job = &listing->job;

	if (job->ended || (job->waits && job->under > 0))
		return;
	if (!job->waits)
		go_on(listing);
	else if (spokei_redis_is_ready(job->leases->redis))
		spokei_lease_job_go(job);
}

static void listing_go(struct spokei_lease_job *job)
{
	listing_of(job)->tries++;
	go_on(listing_of(job));
}

/* --- one lock */

/* Reads the answer of the script. Returns false if the key is no lock. */
static bool read_info(struct spokei_resp_cursor reply, struct spoke_lease_info *info)
{
	struct spokei_resp_value value;
	int64_t left_ms;
	int64_t count;
	int64_t fence;

	if (!spokei_resp_next(&reply, &value) || value.kind != SPOKEI_RESP_ARRAY ||
	    !spokei_resp_next_number(&reply, &left_ms) || left_ms < -1 ||
	    !spokei_resp_next(&reply, &value) || value.kind != SPOKEI_RESP_BULK)
		return false;
	info->holder = value.text;
	if (!spokei_resp_next_number(&reply, &count) || count < 0)
		return false;
	info->count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	if (!spokei_resp_next_number(&reply, &fence) || fence < 0)
		fence = 0;
	info->fence = (uint64_t)fence;
	info->left_ns = UINT64_MAX;
	if (left_ms >= 0 && (uint64_t)left_ms < UINT64_MAX / NS_PER_MS)
		info->left_ns = (uint64_t)left_ms * NS_PER_MS;
	return true;
}

static void look_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct look *look = spoke_container_of(ask, struct look, ask);
	struct listing *listing = look->listing;
	struct spoke_lease_info info = { .name = listing->names[look->name] };

	look->under = false;
	if (!spokei_lease_job_answered(&listing->job))
		return;
	if (error) {
		miss(listing, error);
	} else {
		/* A user may be allowed to see a key's name only, so an error reply is no end. */
		look->used = false;
		listing->tries = 0;
		if (read_info(reply, &info))
			listing->each(listing->arg, &info, SPOKE_OK);
	}
	answered(listing);
}

static int send_look(struct listing *listing, struct look *look)
{
	struct spokei_redis *redis = listing->job.leases->redis;
	const struct spoke_span name = listing->names[look->name];
	char key[SPOKE_LEASE_NAME_MAX + SPOKEI_LEASE_NAME_MORE];
	int error;

	spokei_redis_begin(redis, SPOKEI_SCRIPT_LOOK, 2, 2);
	spokei_redis_text(redis, name);
	spokei_redis_text(redis, (struct spoke_span){
					 key, spokei_lease_name(key, SPOKEI_LEASE_TOKEN, name) });
	error = spokei_redis_send(redis, &look->ask);
	look->under = error == SPOKE_OK;
	listing->job.under += look->under;
	return error;
}

/* Sends scripts for the names of this step. Returns whether all are answered. */
static bool look_on(struct listing *listing)
{
	for (unsigned i = 0; i < LOOKS; i++) {
		struct look *look = &listing->looks[i];
		int error;

		if (look->under || (!look->used && listing->next == listing->name_count))
			continue;
		if (!look->used)
			look->name = listing->next++;
		look->used = true;
		error = send_look(listing, look);
		if (error == SPOKE_OK)
			continue;
		/* The answers of others make room. */
		if (error == SPOKE_ESTATE || listing->job.under == 0)
			miss(listing, error);
		return false;
	}
	return listing->job.under == 0;
}

/* --- steps */

/* Reads the store's answer: the next cursor, and names. Returns the number of names, or -1. */
static int64_t read_step(struct listing *listing, struct spokei_resp_cursor *reply)
{
	struct spokei_resp_value value;

	if (!spokei_resp_next(reply, &value) || value.kind != SPOKEI_RESP_ARRAY ||
	    value.count != 2 || !spokei_resp_next(reply, &value) ||
	    value.kind != SPOKEI_RESP_BULK || value.text.len == 0 || value.text.len >= CURSOR_SIZE)
		return -1;
	memcpy(listing->cursor, value.text.data, value.text.len);
	listing->cursor[value.text.len] = '\0';
	if (!spokei_resp_next(reply, &value) || value.kind != SPOKEI_RESP_ARRAY)
		return -1;
	return value.count;
}

/* Copies the names that a lease can have. Returns 0 or ENOMEM. */
static int keep_names(struct listing *listing, struct spokei_resp_cursor reply, uint32_t count)
{
	size_t size = count * sizeof(struct spoke_span) + (size_t)(reply.end - reply.at);
	struct spokei_resp_value value;
	char *to;

	if (count == 0)
		return SPOKE_OK;
	listing->names = spokei_alloc_unset(listing->job.leases->engine->env, size);
	if (listing->names == NULL)
		return SPOKE_ENOMEM;
	listing->names_size = size;
	to = (char *)(listing->names + count);
	while (spokei_resp_next(&reply, &value)) {
		if (value.kind != SPOKEI_RESP_BULK || value.text.len == 0 ||
		    value.text.len > SPOKE_LEASE_NAME_MAX)
			continue;
		memcpy(to, value.text.data, value.text.len);
		listing->names[listing->name_count++] = (struct spoke_span){ to, value.text.len };
		to += value.text.len;
	}
	return SPOKE_OK;
}

/* Ends with an error reply, unless it is about the option TYPE. */
static void scan_refused(struct listing *listing, const struct spokei_resp_value *value)
{
	if (listing->typed && value->text.len >= 10 &&
	    memcmp(value->text.data, "ERR syntax", 10) == 0) {
		listing->typed = false;
		return;
	}
	spokei_lease_job_refuse(&listing->job, JOB, value->text);
}

static void scan_read(struct listing *listing, struct spokei_resp_cursor reply)
{
	struct spokei_resp_cursor from = reply;
	struct spokei_resp_value value;
	int64_t count;

	listing->tries = 0;
	if (spokei_resp_next(&from, &value) && value.kind == SPOKEI_RESP_ERROR) {
		scan_refused(listing, &value);
		return;
	}
	listing->begun = true;
	count = read_step(listing, &reply);
	if (count < 0)
		spokei_lease_job_refuse(&listing->job, JOB, span_of("unknown answer to SCAN"));
	else if (keep_names(listing, reply, (uint32_t)count) != SPOKE_OK)
		spokei_lease_job_end(&listing->job, SPOKE_ENOMEM);
}

static void scan_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct listing *listing = spoke_container_of(ask, struct listing, scan);

	listing->scanning = false;
	if (!spokei_lease_job_answered(&listing->job))
		return;
	if (error) {
		/* Perhaps the answer was too large, which is no failure of the store. */
		if (listing->step > 1)
			listing->tries = 0;
		listing->step = listing->step / 8 > 0 ? listing->step / 8 : 1;
		miss(listing, error);
	} else {
		scan_read(listing, reply);
	}
	answered(listing);
}

static void send_scan(struct listing *listing)
{
	struct spokei_redis *redis = listing->job.leases->redis;
	int error;

	spokei_redis_begin(redis, SPOKEI_SCRIPT_NONE, 0, listing->typed ? 8 : 6);
	spokei_redis_text(redis, span_of("SCAN"));
	spokei_redis_text(redis, span_of(listing->cursor));
	spokei_redis_text(redis, span_of("MATCH"));
	spokei_redis_text(redis, (struct spoke_span){ listing->match, listing->match_len });
	spokei_redis_text(redis, span_of("COUNT"));
	spokei_redis_number(redis, listing->step);
	if (listing->typed) {
		spokei_redis_text(redis, span_of("TYPE"));
		spokei_redis_text(redis, span_of("hash"));
	}
	error = spokei_redis_send(redis, &listing->scan);
	listing->scanning = error == SPOKE_OK;
	listing->job.under += listing->scanning;
	if (error)
		miss(listing, error);
}

/* A single name is looked at without a walk through all keys of the store. Returns 0 or ENOMEM. */
static int begin_with_name(struct listing *listing, const char *pattern)
{
	char name[SPOKE_LEASE_NAME_MAX];
	size_t len = spokei_lease_pattern_name(pattern, name);
	size_t size = sizeof(struct spoke_span) + len;
	char *to;

	if (len == 0)
		return SPOKE_OK;
	listing->names = spokei_alloc_unset(listing->job.leases->engine->env, size);
	if (listing->names == NULL)
		return SPOKE_ENOMEM;
	listing->names_size = size;
	to = (char *)(listing->names + 1);
	memcpy(to, name, len);
	listing->names[listing->name_count++] = (struct spoke_span){ to, len };
	listing->begun = true;
	return SPOKE_OK;
}

/* Sends the next commands. The cursor is "0" before the first step, and after the last. */
static void go_on(struct listing *listing)
{
	if (listing->scanning || (listing->names && !look_on(listing)))
		return;
	drop_names(listing);
	if (listing->begun && strcmp(listing->cursor, "0") == 0)
		spokei_lease_job_end(&listing->job, SPOKE_OK);
	else
		send_scan(listing);
}

int spoke_leases_list(struct spoke_leases *leases, const char *match, spoke_lease_info_fn each,
		      void *arg)
{
	const char *pattern = match ? match : "*";
	struct listing *listing;
	size_t len = strlen(pattern);
	size_t size = sizeof(*listing) + len;
	int error;

	if (leases == NULL || each == NULL || len > MATCH_MAX)
		return SPOKE_EINVAL;
	listing = spokei_alloc(leases->engine->env, 1, size);
	if (listing == NULL)
		return SPOKE_ENOMEM;
	listing->job =
		(struct spokei_lease_job){ .leases = leases, .go = listing_go, .end = listing_end };
	listing->each = each;
	listing->arg = arg;
	listing->scan.done = scan_done;
	listing->typed = true;
	listing->step = STEP;
	listing->cursor[0] = '0';
	for (unsigned i = 0; i < LOOKS; i++)
		listing->looks[i] = (struct look){ .ask.done = look_done, .listing = listing };
	memcpy(listing->match, pattern, len);
	listing->match_len = len;
	error = begin_with_name(listing, pattern);
	if (!error)
		error = spokei_lease_job_begin(leases, &listing->job);
	if (error) {
		drop_names(listing);
		spokei_free(leases->engine->env, listing, 1, size);
	}
	return error;
}
