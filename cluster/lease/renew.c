/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Renews held leases. Those that are due in one turn are renewed by as few scripts as possible. A
 * renewal that is not answered is repeated until the validity of the lease ends.
 */
#include "cluster/lease/parts.h"
#include "core/base/log.h"

#define AGAIN_GRID_NS UINT64_C(50000000)

static void batch_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply);

void spokei_lease_renew_soon(struct spokei_lease *lease)
{
	struct spoke_leases *leases = lease->leases;

	if (lease->under || lease->node.next)
		return;
	spokei_list_append(&leases->due, &lease->node);
	spokei_run_soon(leases->engine, &leases->work);
}

/* --- sending renewals */

static struct spokei_lease_batch *find_free(struct spoke_leases *leases)
{
	for (unsigned i = 0; i < SPOKEI_LEASE_BATCHES; i++) {
		if (!leases->batches[i].busy)
			return &leases->batches[i];
	}
	return NULL;
}

/* Collects leases that are due. */
static void collect(struct spokei_lease_batch *batch)
{
	struct spoke_list *due = &batch->leases->due;
	struct spoke_list *node = due->next;

	batch->count = 0;
	while (node != due && batch->count < SPOKEI_SCRIPT_RENEW_MAX) {
		batch->handles[batch->count++] = spokei_lease_at(node)->handle;
		node = node->next;
	}
}

static struct spokei_lease *member_of(const struct spokei_lease_batch *batch, uint32_t i)
{
	return spokei_slab_get(&batch->leases->cells, batch->handles[i]);
}

static bool send_batch(struct spokei_lease_batch *batch)
{
	struct spoke_leases *leases = batch->leases;
	char holder[SPOKEI_LEASE_HOLDER];

	batch->sent_ns = spokei_leases_now(leases);
	spokei_redis_begin(leases->redis, SPOKEI_SCRIPT_RENEW, batch->count, 3 * batch->count);
	for (uint32_t i = 0; i < batch->count; i++)
		spokei_redis_text(leases->redis, spokei_lease_name_of(member_of(batch, i)));
	for (uint32_t i = 0; i < batch->count; i++) {
		const struct spokei_lease *lease = member_of(batch, i);

		spokei_redis_text(leases->redis, spokei_lease_holder(lease, holder));
		spokei_redis_number(leases->redis, lease->life.ttl_ms);
	}
	return spokei_redis_send(leases->redis, &batch->ask) == SPOKE_OK;
}

/* Returns when to repeat renewals that failed, a pause after now, rounded up, so that batches that
 * failed at about the same time become one again. */
static uint64_t again_at(const struct spoke_leases *leases)
{
	uint64_t at_ns = spokei_leases_now(leases) + spokei_leases_pause(leases);

	return at_ns + AGAIN_GRID_NS - at_ns % AGAIN_GRID_NS;
}

/* Takes the leases of a batch off the list: they are under way, or wait for a while. */
static void mark(struct spokei_lease_batch *batch, bool sent)
{
	uint64_t again_ns = again_at(batch->leases);

	batch->busy = sent;
	for (uint32_t i = 0; i < batch->count; i++) {
		struct spokei_lease *lease = member_of(batch, i);

		spokei_list_remove(&lease->node);
		lease->under = sent;
		if (sent)
			spokei_lease_sent(&lease->life, batch->sent_ns);
		(void)spokei_lease_arm(lease, sent ? UINT64_MAX : again_ns);
	}
}

void spokei_leases_renew(struct spoke_leases *leases)
{
	while (!spokei_list_empty(&leases->due) && spokei_redis_is_ready(leases->redis)) {
		struct spokei_lease_batch *batch = find_free(leases);

		if (batch == NULL)
			return; /* the next answer makes room */
		batch->leases = leases;
		batch->ask.done = batch_done;
		collect(batch);
		mark(batch, send_batch(batch));
	}
}

/* --- answers to renewals */

enum result {
	UNKNOWN, /* not answered, or not confirmed: it is repeated */
	GONE,
	RENEWED,
};

static void take_error(struct spoke_leases *leases, struct spoke_span text)
{
	char escaped[128];

	switch (spokei_refusal_of(text)) {
	case SPOKEI_REFUSAL_ELSEWHERE:
		spokei_redis_restart(leases->redis, "the server is no primary");
		return;
	case SPOKEI_REFUSAL_REFUSED:
		if (!spokei_leases_may_log(leases))
			return;
		text = spokei_refusal_text(text);
		(void)spokei_log_escape(escaped, sizeof(escaped), text.data, text.len);
		spokei_event_of(leases->engine, SPOKE_EVENT_OF_LEASE, SPOKE_ESTORE,
				"renewals of leases were refused: %s", escaped);
		return;
	case SPOKEI_REFUSAL_AGAIN:
	case SPOKEI_REFUSAL_RELOAD:
	default:
		return;
	}
}

/* Reads the results, as many as the batch has leases; all are UNKNOWN if that is not the answer. */
static void read_results(struct spokei_lease_batch *batch, int error,
			 struct spokei_resp_cursor reply, enum result *results)
{
	struct spoke_leases *leases = batch->leases;
	struct spokei_resp_value value;
	int64_t number;

	memset(results, 0, SPOKEI_SCRIPT_RENEW_MAX * sizeof(*results));
	if (error || !spokei_resp_next(&reply, &value))
		return;
	if (value.kind == SPOKEI_RESP_ERROR) {
		take_error(leases, value.text);
		return;
	}
	for (uint32_t i = 0; i < batch->count && spokei_resp_next_number(&reply, &number); i++) {
		results[i] = number == 0 ? GONE : RENEWED;
	}
}

static void take_result(struct spokei_lease *lease, uint64_t sent_ns, enum result result,
			uint64_t next_ns)
{
	struct spoke_leases *leases = lease->leases;
	uint64_t handle = lease->handle;
	struct spokei_lease_news news = {
		.event = result == GONE ? SPOKEI_LEASE_DISOWN : SPOKEI_LEASE_CONFIRM,
		.now_ns = spokei_leases_now(leases),
		.sent_ns = sent_ns,
	};

	lease->under = false;
	if (result == RENEWED) {
		next_ns = spokei_lease_renewal_due(sent_ns, spokei_lease_ttl_ns(&lease->life));
		spokei_count(leases->engine, SPOKE_STAT_LEASE_RENEWALS);
	}
	if (result != UNKNOWN)
		spokei_lease_happen(lease, &news, &spokei_lease_no_words);
	lease = spokei_slab_get(&leases->cells, handle);
	if (lease && lease->life.state == SPOKEI_LEASE_HELD)
		(void)spokei_lease_arm(lease, next_ns);
}

static void batch_done(struct spokei_redis_ask *ask, int error, struct spokei_resp_cursor reply)
{
	struct spokei_lease_batch *batch = spoke_container_of(ask, struct spokei_lease_batch, ask);
	struct spoke_leases *leases = batch->leases;
	uint64_t again_ns = again_at(leases);
	enum result results[SPOKEI_SCRIPT_RENEW_MAX];

	read_results(batch, error, reply, results);
	for (uint32_t i = 0; i < batch->count && !leases->ended; i++) {
		struct spokei_lease *lease = member_of(batch, i);

		if (lease && lease->life.state == SPOKEI_LEASE_HELD)
			take_result(lease, batch->sent_ns, results[i], again_ns);
	}
	batch->busy = false;
	if (!leases->ended)
		spokei_run_soon(leases->engine, &leases->work);
}
