/* SPDX-License-Identifier: Apache-2.0 */
/* spoke lock --list and --break: the leases of a store, of whichever holder. */
#include "examples/spoke/escape.h"
#include "examples/spoke/json.h"
#include "examples/spoke/lock_redis.h"
#include "examples/spoke/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define HOLDER_TEXT 64u

struct lister {
	struct locker *locker;
	struct lock_redis redis;
	uint64_t rows;
	bool broken;
	/* Of --break: the lease as it was seen before. */
	char holder[HOLDER_TEXT];
	uint64_t left_ns;
};

/* Makes ready. Returns VERB_OK, or prints an error and returns another status. */
static int prepare(struct lister *lister, size_t name_max)
{
	struct locker *locker = lister->locker;
	size_t len = locker->name ? strlen(locker->name) : 1;
	bool is_list = locker->mode == LOCK_LIST;
	int end = lock_prepare(locker);

	if (end == VERB_OK)
		end = lock_open(locker);
	if (end == VERB_OK && ((len == 0 && !is_list) || len > name_max))
		end = ending_say(VERB_USAGE, LOCK_VERB, "%s: not a %s; write 1 to %zu bytes",
				 locker->shown, is_list ? "pattern" : "name", name_max);
	return end;
}

/* Prints why the store gave no answer, and returns a status. */
static int failed(const struct lister *lister, int error)
{
	const char *why = lister->redis.why;
	int end = error == SPOKE_EUNAVAILABLE ? VERB_UNREACHABLE : spoke_error_exit(error);
	struct spoke_leases_look look;

	spoke_leases_look(lister->locker->leases, &look);
	if (end == VERB_UNREACHABLE)
		return ending_say(end, LOCK_VERB, "%s cannot be reached%s%s", look.store,
				  *why ? ": " : "", why);
	return ending_say(end, LOCK_VERB, "%s", *why ? why : spoke_strerror(error));
}

/* --- list */

static void print_json(const struct lock_info *info)
{
	(void)fputs("{\"name\":", stdout);
	json_print_text(info->name.data, info->name.len, stdout);
	(void)fputs(",\"holder\":", stdout);
	json_print_text(info->holder.data, info->holder.len, stdout);
	if (info->left_ns == UINT64_MAX)
		(void)fputs(",\"left_ns\":null", stdout);
	else
		printf(",\"left_ns\":%" PRIu64, info->left_ns);
	printf(",\"count\":%" PRIu32 ",\"fence\":%" PRIu64 "}\n", info->count, info->fence);
}

/* The name, which may be long, stands last. */
static void print_row(struct lister *lister, const struct lock_info *info)
{
	char name[1024];
	char holder[HOLDER_TEXT];
	char left[32] = "no end";

	if (!lister->rows++)
		printf("%s%-12s %10s %-40s %s%s\n", terminal_colour(TERMINAL_BOLD), "LEFT", "FENCE",
		       "HOLDER", "NAME", terminal_colour(TERMINAL_NORMAL));
	if (info->left_ns != UINT64_MAX)
		(void)lock_time(info->left_ns, left, sizeof(left));
	(void)escape_text(info->name, name, sizeof(name));
	(void)escape_text(info->holder, holder, sizeof(holder));
	printf("%-12s %10" PRIu64 " %-40s %s\n", left, info->fence, holder, name);
}

/* Ends if the reader of the output has gone. */
static bool listed(void *arg, const struct lock_info *info)
{
	struct lister *lister = arg;

	if (lister->locker->json)
		print_json(info);
	else
		print_row(lister, info);
	return ending_show();
}

/* Returns the usual status of verbs. */
int lock_list(struct locker *locker)
{
	struct lister lister = { .locker = locker,
				 .redis = { .locker = locker, .limit_ns = LOCK_REDIS_NS } };
	int end = prepare(&lister, (size_t)2 * SPOKE_LEASE_NAME_MAX);
	int error;

	if (end == VERB_OK) {
		error = lock_redis_list(&lister.redis, locker->name, listed, &lister);
		end = error ? failed(&lister, error) : VERB_OK;
	}
	lock_redis_close(&lister.redis);
	lock_close(locker);
	return end;
}

/* --- break */

static bool seen(void *arg, const struct lock_info *info)
{
	struct lister *lister = arg;

	(void)escape_text(info->holder, lister->holder, sizeof(lister->holder));
	lister->left_ns = info->left_ns;
	return true;
}

/* Asks on the terminal. */
static bool is_confirmed(const struct lister *lister)
{
	char left[32] = "";
	char answer[16] = "";

	if (lister->left_ns != UINT64_MAX)
		(void)lock_time(lister->left_ns, left, sizeof(left));
	(void)fprintf(stderr, "%s is held by %s%s%s; break it? [y/N] ", lister->locker->shown,
		      lister->holder, *left ? " for at most " : "", left);
	(void)fflush(stderr);
	return fgets(answer, sizeof(answer), stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

static int say_broken(const struct lister *lister, int end)
{
	const struct locker *locker = lister->locker;

	if (end != VERB_OK && end != LOCK_ABSENT)
		return end;
	if (locker->json) {
		(void)fputs("{\"name\":", stdout);
		json_print_text(locker->name, strlen(locker->name), stdout);
		printf(",\"broken\":%s}\n", lister->broken ? "true" : "false");
	} else if (end == LOCK_ABSENT && !locker->quiet) {
		(void)ending_say(end, LOCK_VERB, "%s has no holder", locker->shown);
	} else if (locker->verbose) {
		(void)ending_say(end, LOCK_VERB, "%s is broken", locker->shown);
	}
	return end;
}

/* Looks first, so that the question can name the holder. */
static int look_and_ask(struct lister *lister)
{
	struct locker *locker = lister->locker;
	char pattern[2 * SPOKE_LEASE_NAME_MAX + 1];
	int error;

	lock_pattern(locker->name, pattern, sizeof(pattern));
	error = lock_redis_list(&lister->redis, pattern, seen, lister);
	if (error)
		return failed(lister, error);
	if (!*lister->holder)
		return LOCK_ABSENT;
	return is_confirmed(lister)
		       ? VERB_OK
		       : ending_say(VERB_REMOTE, LOCK_VERB, "%s is left as it is", locker->shown);
}

static int break_it(struct lister *lister)
{
	int error = lock_redis_break(&lister->redis, lister->locker->name);

	lister->broken = !error;
	if (error == SPOKE_ENOENT)
		return LOCK_ABSENT;
	return error ? failed(lister, error) : VERB_OK;
}

int lock_break(struct locker *locker)
{
	struct lister lister = { .locker = locker,
				 .redis = { .locker = locker, .limit_ns = LOCK_REDIS_NS } };
	int end;

	if (!locker->yes && !isatty(STDIN_FILENO))
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "--break asks first, but the standard input is not a terminal; "
				  "add --yes");
	end = prepare(&lister, SPOKE_LEASE_NAME_MAX);
	if (end == VERB_OK && !locker->yes)
		end = look_and_ask(&lister);
	if (end == VERB_OK)
		end = break_it(&lister);
	lock_redis_close(&lister.redis);
	lock_close(locker);
	return say_broken(&lister, end);
}
