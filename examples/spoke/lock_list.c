/* SPDX-License-Identifier: Apache-2.0 */
/* spoke lock --list and --break: the leases of a store, of whichever holder. */
#include "examples/spoke/escape.h"
#include "examples/spoke/json.h"
#include "examples/spoke/lock.h"
#include "examples/spoke/terminal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define LATE_NS UINT64_C(1000000000) /* from one look at the connection to the next */
#define LATE_MAX 5u                  /* looks in a row that find none */
#define HOLDER_TEXT 64u

struct lister {
	struct locker *locker;
	struct spoke_alarm late;
	unsigned lates; /* looks in a row that found no connection */
	uint64_t rows;
	int end;
	bool broken;
	/* Of --break: the lease as it was seen before. */
	char holder[HOLDER_TEXT];
	uint64_t left_ns;
};

/* --- the end */

static void stop(struct lister *lister, int end)
{
	lister->end = end;
	(void)spoke_alarm_cancel(&lister->late);
	spoke_engine_stop(lister->locker->engine);
}

static void failed(struct lister *lister, int error)
{
	struct spoke_leases_look look;
	const char *why = lock_why();
	int end = error == SPOKE_EUNAVAILABLE ? VERB_UNREACHABLE : ending_of(error);

	spoke_leases_look(lister->locker->leases, &look);
	if (end == VERB_UNREACHABLE)
		(void)ending_say(end, LOCK_VERB, "%s cannot be reached%s%s", look.store,
				 *look.why ? ": " : "", look.why);
	else
		(void)ending_say(end, LOCK_VERB, "%s%s%s", spoke_strerror(error), *why ? ": " : "",
				 why);
	stop(lister, end);
}

/* A store that takes commands may have many keys to go through; the library notices if it stops to
 * answer. */
static void late_due(struct spoke_alarm *alarm)
{
	struct lister *lister = spoke_container_of(alarm, struct lister, late);
	struct spoke_leases_look look;

	spoke_leases_look(lister->locker->leases, &look);
	lister->lates = look.connected ? 0 : lister->lates + 1;
	if (lister->lates == LATE_MAX)
		failed(lister, SPOKE_EUNAVAILABLE);
}

/* Turns until stop(), but not for long without a connection. `error`: of the function that was to
 * begin the work. */
static int turn(struct lister *lister, int error)
{
	struct spoke_engine *engine = lister->locker->engine;
	bool is_list = lister->locker->mode == LOCK_LIST;

	if (error == SPOKE_EINVAL)
		return ending_say(VERB_USAGE, LOCK_VERB, "%s: not a %s; write 1 to %u bytes",
				  lister->locker->shown, is_list ? "pattern" : "name",
				  is_list ? 2 * SPOKE_LEASE_NAME_MAX : SPOKE_LEASE_NAME_MAX);
	lister->lates = 0;
	if (!error)
		error = spoke_alarm_every(engine, &lister->late, LATE_NS, late_due);
	if (!error)
		error = spoke_engine_run(engine);
	(void)spoke_alarm_cancel(&lister->late);
	return error ? ending_say(ending_of(error), LOCK_VERB, "%s", spoke_strerror(error))
		     : lister->end;
}

/* --- list */

static void print_json(const struct spoke_lease_info *info)
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
static void print_row(struct lister *lister, const struct spoke_lease_info *info)
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

static void listed(void *arg, const struct spoke_lease_info *info, int error)
{
	struct lister *lister = arg;

	if (lister->locker->closing)
		return;
	if (error) {
		failed(lister, error);
	} else if (!info) {
		stop(lister, VERB_OK);
	} else {
		if (lister->locker->json)
			print_json(info);
		else
			print_row(lister, info);
		/* Ends if the reader of the output has gone. */
		if (!ending_show())
			stop(lister, VERB_OK);
	}
}

/* Returns the usual status of verbs. */
int lock_list(struct locker *locker)
{
	struct lister lister = { .locker = locker };
	int end = lock_prepare(locker);

	if (end == VERB_OK)
		end = lock_open(locker);
	if (end == VERB_OK)
		end = turn(&lister,
			   spoke_leases_list(locker->leases, locker->name, listed, &lister));
	lock_close(locker);
	return end;
}

/* --- break */

static void seen(void *arg, const struct spoke_lease_info *info, int error)
{
	struct lister *lister = arg;

	if (lister->locker->closing)
		return;
	if (error) {
		failed(lister, error);
	} else if (info) {
		(void)escape_text(info->holder, lister->holder, sizeof(lister->holder));
		lister->left_ns = info->left_ns;
	} else {
		stop(lister, VERB_OK);
	}
}

static void broken(void *arg, int error)
{
	struct lister *lister = arg;

	if (lister->locker->closing)
		return;
	lister->broken = !error;
	if (error && error != SPOKE_ENOENT)
		failed(lister, error);
	else
		stop(lister, error ? (int)LOCK_ABSENT : (int)VERB_OK);
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
	int end;

	lock_pattern(locker->name, pattern, sizeof(pattern));
	end = turn(lister, spoke_leases_list(locker->leases, pattern, seen, lister));
	if (end == VERB_OK && !*lister->holder)
		return LOCK_ABSENT;
	if (end == VERB_OK && !is_confirmed(lister))
		end = ending_say(VERB_REMOTE, LOCK_VERB, "%s is left as it is", locker->shown);
	return end;
}

int lock_break(struct locker *locker)
{
	struct lister lister = { .locker = locker };
	int end;

	if (!locker->yes && !isatty(STDIN_FILENO))
		return ending_say(VERB_USAGE, LOCK_VERB,
				  "--break asks first, but the standard input is not a terminal; "
				  "add --yes");
	end = lock_prepare(locker);
	if (end == VERB_OK)
		end = lock_open(locker);
	if (end == VERB_OK && !locker->yes)
		end = look_and_ask(&lister);
	if (end == VERB_OK)
		end = turn(&lister,
			   spoke_leases_break(locker->leases, locker->name, broken, &lister));
	lock_close(locker);
	return say_broken(&lister, end);
}
