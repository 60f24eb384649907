/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Single leases: the functions for users, the line of asks that wait for one name, and the commands
 * that acquire and release.
 */
#include "cluster/lease/parts.h"
#include "cluster/lease/script.h"
#include "cluster/lease/settings.h"
#include "cluster/lease/use.h"
#include "core/base/log.h"
#include "core/base/pace.h"
#include "core/text/encoding.h"

#define RUSHES_MAX 16u
#define PAUSE_NS UINT64_C(20000000)
#define REST_NS (5 * PAUSE_NS)
#define LINES_KEPT 1024u  /* room of the map that is kept when no lease waits */
#define COMMANDS_MAX 512u /* most commands under way */
#define HOLD_FIRST_NS UINT64_C(100000000)
#define HOLD_CAP_NS UINT64_C(2000000000)
#define PTTL_MORE_NS UINT64_C(1000000) /* the store rounds to ms */
#define PTTL_MAX_MS INT64_C(86400000)  /* a longer time to live is looked at once a day */
#define ONCE_NS UINT64_C(10000000000)  /* longest time for an ask that does not wait */
#define NS_PER_MS UINT64_C(1000000)

/* --- lines
 *
 * The asks that wait for one name stand in its line, and only the first one tries. When it has to
 * wait, the line subscribes to the channel on which releases of that name are published. A message
 * wakes the first ask, and no other. A holder that dies publishes nothing, so the time to live of
 * its lock wakes the first ask, too. An ask that does not wait is a line of its own.
 */

void spokei_lease_todo(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (leases->ended)
		return;
	spokei_list_append(&leases->todo, &lease->node);
	spokei_engine_soon(leases->engine, &leases->work);
}

void spokei_lease_line_todo(struct spokei_lease_line *line)
{
	struct spoke_leases *leases = line->leases;

	if (line->node.next == NULL)
		spokei_list_append(&leases->lines_todo, &line->node);
	spokei_engine_soon(leases->engine, &leases->work);
}

static struct spokei_lease_line *make_line(struct spoke_leases *leases, struct spoke_span name,
					   bool alone)
{
	const struct spoke_env *env = leases->engine->env;
	size_t size = sizeof(struct spokei_lease_line) + 2 * name.len + SPOKEI_LEASE_NAME_MORE;
	struct spokei_lease_line *line = spokei_alloc(env, 1, size);
	size_t len;

	if (line == NULL)
		return NULL;
	len = spokei_lease_name(line->text, SPOKEI_LEASE_CHANNEL, name);
	memcpy(line->text + len, name.data, name.len);
	line->channel.name = (struct spoke_span){ line->text, len };
	line->name = (struct spoke_span){ line->text + len, name.len };
	line->leases = leases;
	line->alone = alone;
	line->size = size;
	spokei_list_init(&line->waiters);
	if (!alone && spokei_map_add(&leases->lines, line->name.data, name.len, line)) {
		spokei_free(env, line, 1, size);
		return NULL;
	}
	return line;
}

static void free_line(struct spokei_lease_line *line)
{
	struct spoke_leases *leases = line->leases;

	if (line->node.next)
		spokei_list_remove(&line->node);
	if (line->listens)
		spokei_redis_unsubscribe(leases->redis, &line->channel);
	if (!line->alone)
		(void)spokei_map_remove(&leases->lines, line->name.data, line->name.len);
	if (leases->lines.count == 0 && leases->lines.room > LINES_KEPT)
		spokei_map_fini(&leases->lines);
	spokei_free(leases->engine->env, line, 1, line->size);
}

/* Adds an ask to the line of its name, or to one of its own. Returns 0 or SPOKE_ENOMEM. */
static int join_line(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	struct spoke_span name = spokei_lease_name_of(lease);
	bool alone = lease->life.once;
	struct spokei_lease_line *line = NULL;

	if (!alone)
		line = spokei_map_get(&leases->lines, name.data, name.len);
	if (line == NULL)
		line = make_line(leases, name, alone);
	if (line == NULL)
		return SPOKE_ENOMEM;
	lease->line = line;
	spokei_list_append(&line->waiters, &lease->node);
	return SPOKE_OK;
}

static struct spokei_lease *first_of(const struct spokei_lease_line *line)
{
	return spokei_lease_at(spokei_list_first(&line->waiters));
}

static bool is_hushed(const struct spokei_lease_line *line)
{
	return line->hush_ns > spokei_leases_now(line->leases);
}

/* Has the first lease of the line try again at this time, or sooner when it is woken. */
static void wait_in_line(struct spokei_lease_line *line, uint64_t retry_ns)
{
	if (line->woken && is_hushed(line)) {
		line->woken = false;
		retry_ns = line->hush_ns;
	}
	line->retry_ns = retry_ns;
	if (line->woken || retry_ns == 0) {
		line->woken = false;
		spokei_lease_line_todo(line);
		return;
	}
	/* Also when a lease of this process has just got it, and no try was refused yet. */
	if (!line->listens && !line->alone) {
		line->listens = true;
		spokei_redis_subscribe(line->leases->redis, &line->channel);
	}
	(void)spokei_lease_arm(first_of(line), retry_ns);
}

void spokei_lease_line_leave(struct spokei_lease *lease)
{
	struct spokei_lease_line *line = lease->line;
	bool first = first_of(line) == lease;

	spokei_list_remove(&lease->node);
	lease->line = NULL;
	if (spokei_list_empty(&line->waiters))
		free_line(line);
	else if (first)
		wait_in_line(line, line->retry_ns);
}

/* A lock that is always about to expire, and a flood of messages, must not make a loop without a
 * pause. */
static void line_refused(struct spokei_lease_line *line, uint64_t now_ns, uint64_t retry_ns)
{
	line->rushes = now_ns - line->refused_ns < REST_NS ? line->rushes + 1 : 0;
	line->refused_ns = now_ns;
	if (line->rushes >= RUSHES_MAX) {
		line->hush_ns = now_ns + PAUSE_NS;
		retry_ns = retry_ns > line->hush_ns ? retry_ns : line->hush_ns;
	}
	wait_in_line(line, retry_ns);
}

void spokei_lease_line_wake(struct spokei_lease_line *line)
{
	if (first_of(line)->life.state == SPOKEI_LEASE_WAITING && is_hushed(line))
		wait_in_line(line, line->hush_ns);
	else if (first_of(line)->life.state == SPOKEI_LEASE_WAITING)
		spokei_lease_line_todo(line);
	else
		line->woken = true;
}

bool spokei_lease_is_first(const struct spokei_lease *lease)
{
	return first_of(lease->line) == lease;
}

/* --- commands */

/* An answer of the store to one command. */
struct answer {
	struct spokei_lease_command *command; /* its copy */
	int error;
	struct spokei_resp_cursor reply;
};

static void command_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply);

/* Sends the RELEASE or the ACQUIRE of a lease. Returns whether there was room, and memory. The cell
 * of the command comes first: texts without it would have an answer that nothing waits for. */
static bool send_command(struct spokei_lease *lease, bool releases, uint64_t sent_ns)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_redis *redis = leases->redis;
	struct spoke_span name = spokei_lease_name_of(lease);
	char key[SPOKE_LEASE_NAME_MAX + SPOKEI_LEASE_NAME_MORE];
	char holder[SPOKEI_LEASE_HOLDER];
	struct spokei_lease_command *command;
	struct spoke_span second = { key, 0 };
	uint64_t handle;
	void *cell;

	if (spokei_slab_take(&leases->commands, &cell, &handle))
		return false;
	command = cell;
	*command = (struct spokei_lease_command){
		.ask.done = command_done,
		.leases = leases,
		.cell = handle,
		.handle = lease->handle,
		.sent_ns = sent_ns,
		.releases = releases,
	};
	second.len = spokei_lease_name(key, releases ? SPOKEI_LEASE_CHANNEL : SPOKEI_LEASE_TOKEN,
				       name);
	spokei_redis_begin(redis, releases ? SPOKEI_SCRIPT_RELEASE : SPOKEI_SCRIPT_ACQUIRE, 2,
			   releases ? 3 : 4);
	spokei_redis_text(redis, name);
	spokei_redis_text(redis, second);
	if (!releases)
		spokei_redis_number(redis, lease->life.ttl_ms);
	spokei_redis_text(redis, spokei_lease_holder(lease, holder));
	if (spokei_redis_send(redis, &command->ask)) {
		command->cell = 0;
		spokei_slab_give(&leases->commands, handle);
		return false;
	}
	lease->under = true;
	return true;
}

/* Sends the ACQUIRE of a lease that is WAITING. Its validity counts from here. */
static void send_acquire(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t sent_ns = spokei_leases_now(leases);

	if (lease->life.end_ns <= sent_ns)
		return; /* the timer is about to end it */
	if (!send_command(lease, false, sent_ns)) {
		(void)spokei_lease_arm(lease, sent_ns + spokei_leases_pause(leases));
		return;
	}
	spokei_lease_asks(&lease->life, sent_ns);
	(void)spokei_lease_arm(lease, lease->life.end_ns);
}

void spokei_lease_send_release(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (!lease->under && !send_command(lease, true, 0))
		(void)spokei_lease_arm(lease,
				       spokei_leases_now(leases) + spokei_leases_pause(leases));
}

/* Sends what this lease has to send. While the store asks for a pause, its timer is set instead. */
static void send_next(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (leases->hold_ns > 0 && spokei_leases_now(leases) < leases->hold_ns)
		(void)spokei_lease_arm(lease, leases->hold_ns);
	else if (lease->life.state == SPOKEI_LEASE_WAITING)
		send_acquire(lease);
	else if (lease->life.state == SPOKEI_LEASE_RETURNING ||
		 lease->life.state == SPOKEI_LEASE_RELEASING)
		spokei_lease_send_release(lease);
}

/* Returns whether a lease may leave the lists: to send, or to be sent again once the store is
 * reached. At the limit the lists wait for an answer. */
static bool may_send(const struct spoke_leases *leases)
{
	return leases->commands.count < COMMANDS_MAX || !spokei_redis_is_ready(leases->redis);
}

void spokei_leases_send(struct spoke_leases *leases)
{
	while (!spokei_list_empty(&leases->todo) && may_send(leases)) {
		struct spokei_lease *lease = spokei_lease_at(spokei_list_first(&leases->todo));

		spokei_list_remove(&lease->node);
		if (spokei_redis_is_ready(leases->redis))
			send_next(lease);
	}
	while (!spokei_list_empty(&leases->lines_todo) && may_send(leases)) {
		struct spokei_lease_line *line = spoke_container_of(spokei_list_first(
									    &leases->lines_todo),
								    struct spokei_lease_line, node);

		spokei_list_remove(&line->node);
		if (spokei_redis_is_ready(leases->redis))
			send_next(spokei_lease_at(spokei_list_first(&line->waiters)));
	}
}

/* --- after a failure */

/* The store is busy: nothing is acquired or released for a while, by any lease. */
static uint64_t hold(struct spoke_leases *leases)
{
	const struct spokei_backoff backoff = { HOLD_FIRST_NS, HOLD_CAP_NS };
	const struct spoke_env *env = leases->engine->env;
	uint64_t now_ns = spokei_leases_now(leases);
	uint64_t dice;

	if (now_ns >= leases->hold_ns) {
		env->dice(env->ctx, &dice, sizeof(dice));
		leases->hold_ns = now_ns + spokei_backoff_pause(&backoff, leases->holds, dice);
		leases->holds++;
	}
	return leases->hold_ns;
}

/* Has the lease repeat its command at this time, unless the store is reached again before. */
static void again_at(struct spokei_lease *lease, uint64_t at_ns)
{
	if (spokei_lease_is_ask(&lease->life))
		wait_in_line(lease->line, at_ns);
	else
		(void)spokei_lease_arm(lease, at_ns);
}

/* --- answers */

/* The command was not answered, or is to be repeated at this time. */
static void repeat(struct spokei_lease *lease, uint64_t at_ns)
{
	spokei_lease_happen_now(lease, SPOKEI_LEASE_MISS, &spokei_lease_no_words);
	again_at(lease, at_ns);
}

static void refuse_for_good(struct spokei_lease *lease, struct spoke_span text)
{
	struct spokei_lease_words words = { .text = spokei_refusal_text(text) };
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;
	char escaped[96];

	(void)spokei_log_escape(escaped, sizeof(escaped), words.text.data, words.text.len);
	spokei_lease_event(lease, SPOKE_ESTORE, "was refused: %s", escaped);
	spokei_lease_happen_now(lease, SPOKEI_LEASE_DENY, &words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_OVER)
		spokei_lease_finish(lease, SPOKE_ESTORE);
}

/* The store has answered with an error. The connection is ended last, because that calls others. */
static void take_error(struct spokei_lease *lease, struct spoke_span text)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_lease_words words = { .text = spokei_refusal_text(text) };
	enum spokei_refusal refusal = spokei_refusal_of(text);

	if (refusal == SPOKEI_REFUSAL_REFUSED) {
		refuse_for_good(lease, text);
		return;
	}
	if (lease->life.once && lease->life.state == SPOKEI_LEASE_ASKING)
		spokei_lease_happen_now(lease, SPOKEI_LEASE_UNREACHABLE, &words);
	else
		repeat(lease, hold(leases));
	if (refusal == SPOKEI_REFUSAL_ELSEWHERE && !leases->ended)
		spokei_redis_restart(leases->redis, "the server is no primary");
}

static void take_grant(struct spokei_lease *lease, const struct answer *answer, uint64_t fence)
{
	struct spoke_leases *leases = lease->leases;
	struct spokei_lease_news news = {
		.event = SPOKEI_LEASE_GRANT,
		.now_ns = spokei_leases_now(leases),
		.sent_ns = answer->command->sent_ns,
		.fence = fence,
	};

	spokei_lease_happen(lease, &news, &spokei_lease_no_words);
}

static void take_refusal(struct spokei_lease *lease, int64_t pttl_ms)
{
	uint64_t now_ns = spokei_leases_now(lease->leases);
	uint64_t left_ns = UINT64_MAX;
	uint64_t retry_ns = now_ns + spokei_lease_ttl_ns(&lease->life);
	struct spokei_lease_line *line = lease->line;
	bool once = lease->life.once; /* then the refusal ends the ask, and its line */

	if (pttl_ms >= 0) {
		left_ns = (uint64_t)(pttl_ms < PTTL_MAX_MS ? pttl_ms : PTTL_MAX_MS) *
			  UINT64_C(1000000);
		retry_ns = now_ns + left_ns + PTTL_MORE_NS;
	}
	spokei_lease_happen_now(lease, SPOKEI_LEASE_REFUSE,
				&(struct spokei_lease_words){ .left_ns = left_ns });
	if (!once)
		line_refused(line, now_ns, retry_ns);
}

static void take_acquired(struct spokei_lease *lease, struct answer *answer)
{
	int64_t refused = 1;
	int64_t number = 0;

	(void)spokei_resp_next_number(&answer->reply, &refused);
	(void)spokei_resp_next_number(&answer->reply, &number);
	lease->leases->holds = 0;
	if (!refused)
		take_grant(lease, answer, (uint64_t)number);
	else
		take_refusal(lease, number);
}

static void take_released(struct spokei_lease *lease, int64_t count)
{
	struct spoke_leases *leases = lease->leases;
	bool returned = lease->life.state == SPOKEI_LEASE_RETURNING;
	bool unheld = count == 0 && lease->granted && !lease->repeats;

	leases->holds = 0;
	spokei_lease_happen_now(lease, SPOKEI_LEASE_RELEASED, &spokei_lease_no_words);
	if (returned)
		again_at(lease, spokei_leases_now(leases) + spokei_leases_pause(leases));
	else
		spokei_lease_finish(lease, unheld ? SPOKE_ENOENT : SPOKE_OK);
}

static void take_answer(struct spokei_lease *lease, struct answer *answer)
{
	struct spokei_resp_value first;

	if (answer->error || !spokei_resp_next(&answer->reply, &first)) {
		lease->repeats = answer->command->releases;
		repeat(lease,
		       spokei_leases_now(lease->leases) + spokei_leases_pause(lease->leases));
	} else if (first.kind == SPOKEI_RESP_ERROR) {
		take_error(lease, first.text);
	} else if (answer->command->releases) {
		take_released(lease, first.integer);
	} else {
		take_acquired(lease, answer);
	}
}

static void command_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct spokei_lease_command *command = spoke_container_of(ask, struct spokei_lease_command,
								  ask);
	struct spoke_leases *leases = command->leases;
	struct spokei_lease_command copy = *command;
	struct answer answer = { &copy, error, reply };
	struct spokei_lease *lease = spokei_slab_get(&leases->cells, copy.handle);
	bool releasing;

	command->cell = 0;
	spokei_slab_give(&leases->commands, copy.cell);
	spokei_engine_soon(leases->engine, &leases->work);
	if (lease == NULL)
		return;
	releasing = lease->life.state == SPOKEI_LEASE_RETURNING ||
		    lease->life.state == SPOKEI_LEASE_RELEASING;
	/* The answer to an ACQUIRE that was cancelled is of no use: the RELEASE follows it. */
	if (copy.releases != releasing)
		return;
	lease->under = false;
	/* The user is about to be called. The RELEASE is repeated after that. */
	if (lease->tell != SPOKEI_LEASE_TELL_NOTHING)
		return;
	take_answer(lease, &answer);
}

/* --- the functions for users */

bool spokei_lease_is_name(const char *name, size_t len)
{
	size_t at = 0;

	while (at < len) {
		size_t step = spokei_utf8_len((const unsigned char *)name + at, len - at);

		if (step == 0)
			return false;
		at += step;
	}
	return len > 0 && len <= SPOKE_LEASE_NAME_MAX;
}

/* A command that is unanswered for longer than the lease with the shortest time to live allows is
 * repeated on a new connection. When there is no other lease, the times of earlier ones are
 * forgotten. */
static void be_patient(struct spoke_leases *leases, uint64_t ttl_ns)
{
	uint64_t patience_ns = spokei_lease_patience(ttl_ns);

	if (leases->cells.count > 1 && patience_ns >= leases->patience_ns)
		return;
	leases->patience_ns = patience_ns;
	spokei_redis_patience(leases->redis, patience_ns);
}

/* Begins the ask of a cell. Returns 0, ELIMIT or ENOMEM. */
static int begin(struct spokei_lease *lease, const struct spokei_lease_terms *terms)
{
	struct spoke_leases *leases = lease->leases;
	bool once = terms->wait_ns == 0;
	uint64_t now_ns = spokei_leases_now(leases);
	int error;

	spokei_lease_begin(&lease->life, (uint32_t)(terms->ttl_ns / NS_PER_MS), once,
			   spokei_later(now_ns, once ? ONCE_NS : terms->wait_ns));
	if (!spokei_lease_arm(lease, UINT64_MAX))
		return SPOKE_ELIMIT;
	error = join_line(lease);
	if (error == SPOKE_OK && spokei_lease_is_first(lease))
		spokei_lease_line_todo(lease->line);
	return error;
}

static int check(const struct spoke_leases *leases, const char *name, spoke_lease_told_fn told)
{
	int error;

	if (leases == NULL || name == NULL || told == NULL ||
	    !spokei_lease_is_name(name, strlen(name)))
		return SPOKE_EINVAL;
	error = spokei_engine_check(leases->engine);
	return error == SPOKE_OK && leases->draining ? SPOKE_ECLOSED : error;
}

static int read_terms(struct spoke_leases *leases, const struct spoke_lease_options *options,
		      struct spokei_lease_terms *ret)
{
	char why[SPOKEI_LEASE_WHY_MAX];
	int error = spokei_lease_terms(leases->settings, options, ret, why);

	if (error)
		spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, error, "%s", why);
	return error;
}

int spoke_lease_ask(struct spoke_leases *leases, const char *name,
		    const struct spoke_lease_options *options, spoke_lease_told_fn told,
		    struct spoke_lease *ret_lease)
{
	static const struct spoke_lease_options defaults;
	const struct spoke_lease_options *with = options ? options : &defaults;
	struct spokei_lease *lease;
	struct spokei_lease_terms terms;
	int error = check(leases, name, told);

	if (error == SPOKE_OK)
		error = read_terms(leases, with, &terms);
	if (error == SPOKE_OK)
		error = spokei_lease_cell_take(leases, (struct spoke_span){ name, strlen(name) },
					       &lease);
	if (error)
		return error;
	error = begin(lease, &terms);
	if (error) {
		spokei_lease_cell_give(lease);
		return error;
	}
	lease->life.fixed = with->fixed;
	lease->told = told;
	lease->lost = with->lost;
	lease->arg = with->arg;
	leases->asks++;
	spokei_count(leases->engine, SPOKE_STAT_LEASES_ASKED);
	be_patient(leases, terms.ttl_ns);
	spokei_leases_send(leases);
	if (ret_lease)
		*ret_lease = spokei_lease_public(lease);
	return SPOKE_OK;
}

static struct spokei_lease *find(struct spoke_lease lease)
{
	return lease.leases ? spokei_slab_get(&lease.leases->cells, lease.handle) : NULL;
}

void spokei_lease_mirror(struct spoke_lease lease)
{
	struct spokei_lease *found = find(lease);

	SPOKE_ASSERT(found != NULL);
	found->mirrored = true;
}

uint64_t spoke_lease_left(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	if (found == NULL || spokei_engine_forked(lease.leases->engine))
		return 0;
	return spokei_lease_left_at(&found->life, spokei_leases_now(lease.leases));
}

uint64_t spoke_lease_fence(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	return found && found->life.state == SPOKEI_LEASE_HELD ? found->life.fence : 0;
}

struct spoke_span spoke_lease_name(struct spoke_lease lease)
{
	const struct spokei_lease *found = find(lease);

	return found ? spokei_lease_name_of(found) : (struct spoke_span){ "", 0 };
}

int spoke_lease_release(struct spoke_lease lease, spoke_lease_released_fn done, void *arg)
{
	struct spokei_lease *found;
	bool held;
	int error = lease.leases ? spokei_engine_check(lease.leases->engine) : SPOKE_ENOENT;

	if (error)
		return error;
	found = find(lease);
	held = found && found->life.state == SPOKEI_LEASE_HELD;
	if (found == NULL || (!held && !spokei_lease_is_ask(&found->life)))
		return SPOKE_ENOENT;
	spokei_lease_happen_now(found, SPOKEI_LEASE_RELEASE, NULL);
	found->done = done;
	found->done_arg = arg;
	if (held) {
		spokei_count(lease.leases->engine, SPOKE_STAT_LEASES_RELEASED);
		spokei_lease_event(found, SPOKE_OK, "was released");
		spokei_leases_send(lease.leases);
	}
	return SPOKE_OK;
}

/* --- uses */

int spokei_lease_use_check(struct spoke_lease lease, const struct spoke_engine *engine)
{
	if (lease.leases->engine != engine)
		return SPOKE_EINVAL;
	return spoke_lease_left(lease) > 0 ? SPOKE_OK : SPOKE_ELEASE;
}

int spokei_lease_use_begin(struct spoke_lease lease, const struct spoke_engine *engine,
			   struct spokei_lease_use *use)
{
	int error = spokei_lease_use_check(lease, engine);

	if (error)
		return error;
	use->lease = lease;
	spokei_lease_use_join(&find(lease)->uses, use);
	return SPOKE_OK;
}

void spokei_lease_use_join(struct spokei_lease_use **uses, struct spokei_lease_use *use)
{
	SPOKE_ASSERT(use->at == NULL && use->over != NULL);
	use->next = *uses;
	use->at = uses;
	if (use->next)
		use->next->at = &use->next;
	*uses = use;
}

void spokei_lease_use_end(struct spokei_lease_use *use)
{
	if (use->at == NULL)
		return;
	*use->at = use->next;
	if (use->next)
		use->next->at = use->at;
	use->at = NULL;
}

void spokei_lease_uses_end(struct spokei_lease_use **uses)
{
	while (*uses) {
		struct spokei_lease_use *use = *uses;

		spokei_lease_use_end(use);
		use->over(use);
	}
}
