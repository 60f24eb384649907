/* SPDX-License-Identifier: Apache-2.0 */
/* Gives users an engine's counters and events. */
#include "core/engine/parts.h"

#include <inttypes.h>

#define TIMERS_MAX                                                                                 \
	UINT64_C(16777216) /* unless the option timers_max is set, see <spoke/wheel.h>             \
			    */

/* The preprocessor cannot make lower-case letters. */
static const char *const names[] = {
	[SPOKE_STAT_BYTES_READ] = "bytes_read",
	[SPOKE_STAT_BYTES_WRITTEN] = "bytes_written",
	[SPOKE_STAT_READS] = "reads",
	[SPOKE_STAT_WRITES] = "writes",
	[SPOKE_STAT_MESSAGES_READ] = "messages_read",
	[SPOKE_STAT_MESSAGES_WRITTEN] = "messages_written",
	[SPOKE_STAT_CONNECTS] = "connects",
	[SPOKE_STAT_CONNECTS_FAILED] = "connects_failed",
	[SPOKE_STAT_CONNECTS_SELF] = "connects_self",
	[SPOKE_STAT_RESOLVES_FAILED] = "resolves_failed",
	[SPOKE_STAT_CONNECTED] = "connected",
	[SPOKE_STAT_ACCEPTED] = "accepted",
	[SPOKE_STAT_ACCEPTS_FAILED] = "accepts_failed",
	[SPOKE_STAT_ACCEPTS_SHED] = "accepts_shed",
	[SPOKE_STAT_ACCEPTS_REFUSED_TOTAL] = "accepts_refused_total",
	[SPOKE_STAT_ACCEPTS_REFUSED_PEER] = "accepts_refused_peer",
	[SPOKE_STAT_CLOSED] = "closed",
	[SPOKE_STAT_CLOSED_BY_PEER] = "closed_by_peer",
	[SPOKE_STAT_CLOSED_PROTOCOL] = "closed_protocol",
	[SPOKE_STAT_CLOSED_LARGE] = "closed_large",
	[SPOKE_STAT_CLOSED_FRAME_TIME] = "closed_frame_time",
	[SPOKE_STAT_CLOSED_MUTE] = "closed_mute",
	[SPOKE_STAT_CLOSED_SLOW] = "closed_slow",
	[SPOKE_STAT_CLOSED_ID_TWICE] = "closed_id_twice",
	[SPOKE_STAT_CLOSED_UNWANTED] = "closed_unwanted",
	[SPOKE_STAT_CLOSED_UNKNOWN_REPLIES] = "closed_unknown_replies",
	[SPOKE_STAT_CLOSED_MEMORY] = "closed_memory",
	[SPOKE_STAT_READS_PAUSED] = "reads_paused",
	[SPOKE_STAT_PROBES_READ] = "probes_read",
	[SPOKE_STAT_PROBES_WRITTEN] = "probes_written",
	[SPOKE_STAT_PROBE_ANSWERS_READ] = "probe_answers_read",
	[SPOKE_STAT_EVENTS_IGNORED] = "events_ignored",
	[SPOKE_STAT_BAD_REQUESTS] = "bad_requests",
	[SPOKE_STAT_BAD_REPLIES] = "bad_replies",
	[SPOKE_STAT_REPLIES_LATE] = "replies_late",
	[SPOKE_STAT_REPLIES_UNKNOWN] = "replies_unknown",
	[SPOKE_STAT_REQUESTS_UNWANTED] = "requests_unwanted",
	[SPOKE_STAT_CALLS] = "calls",
	[SPOKE_STAT_CALLS_OK] = "calls_ok",
	[SPOKE_STAT_CALLS_REMOTE] = "calls_remote",
	[SPOKE_STAT_CALLS_TIMEOUT_UNSENT] = "calls_timeout_unsent",
	[SPOKE_STAT_CALLS_TIMEOUT] = "calls_timeout",
	[SPOKE_STAT_CALLS_LOST] = "calls_lost",
	[SPOKE_STAT_CALLS_CANCELED] = "calls_canceled",
	[SPOKE_STAT_CALLS_CLOSED] = "calls_closed",
	[SPOKE_STAT_CALLS_FAILED] = "calls_failed",
	[SPOKE_STAT_CALLS_REFUSED] = "calls_refused",
	[SPOKE_STAT_REQUESTS] = "requests",
	[SPOKE_STAT_REQUESTS_OK] = "requests_ok",
	[SPOKE_STAT_REQUESTS_ERROR] = "requests_error",
	[SPOKE_STAT_REQUESTS_NO_SERVICE] = "requests_no_service",
	[SPOKE_STAT_REQUESTS_EXPIRED] = "requests_expired",
	[SPOKE_STAT_REQUESTS_REFUSED] = "requests_refused",
	[SPOKE_STAT_REQUESTS_ABANDONED] = "requests_abandoned",
	[SPOKE_STAT_REPLIES_TOO_LARGE] = "replies_too_large",
	[SPOKE_STAT_TURNS_LATE] = "turns_late",
	[SPOKE_STAT_PROBES_MISSED] = "probes_missed",
	[SPOKE_STAT_SUSPECTED] = "suspected",
	[SPOKE_STAT_RECOVERED] = "recovered",
	[SPOKE_STAT_PROBATIONS] = "probations",
	[SPOKE_STAT_RECONNECTS] = "reconnects",
	[SPOKE_STAT_READONLY_READ] = "readonly_read",
	[SPOKE_STAT_READONLY_WRITTEN] = "readonly_written",
	[SPOKE_STAT_CLOSED_SILENT] = "closed_silent",
	[SPOKE_STAT_CLOSED_IDLE] = "closed_idle",
	[SPOKE_STAT_SLEEPS] = "sleeps",
	[SPOKE_STAT_PUSHES] = "pushes",
	[SPOKE_STAT_CALLS_DEFERRED] = "calls_deferred",
	[SPOKE_STAT_CALLS_FALLBACK] = "calls_fallback",
	[SPOKE_STAT_RETRIES] = "retries",
	[SPOKE_STAT_HEDGES] = "hedges",
	[SPOKE_STAT_HEDGES_WON] = "hedges_won",
	[SPOKE_STAT_RETRIES_UNFUNDED] = "retries_unfunded",
	[SPOKE_STAT_TICKETS_SUCCESS] = "tickets_success",
	[SPOKE_STAT_TICKETS_EXHAUSTED] = "tickets_exhausted",
	[SPOKE_STAT_TICKETS_EXPIRED] = "tickets_expired",
	[SPOKE_STAT_TICKETS_CANCELLED] = "tickets_cancelled",
	[SPOKE_STAT_TICKETS_REFUSED] = "tickets_refused",
	[SPOKE_STAT_TICKETS_CLOSING] = "tickets_closing",
	[SPOKE_STAT_ATTEMPTS_TIMEOUT] = "attempts_timeout",
	[SPOKE_STAT_LEASES_ASKED] = "leases_asked",
	[SPOKE_STAT_LEASES_HELD] = "leases_held",
	[SPOKE_STAT_LEASES_FAILED] = "leases_failed",
	[SPOKE_STAT_LEASES_RELEASED] = "leases_released",
	[SPOKE_STAT_LEASES_LOST] = "leases_lost",
	[SPOKE_STAT_LEASE_RENEWALS] = "lease_renewals",
	[SPOKE_STAT_LEASE_COMMANDS] = "lease_commands",
	[SPOKE_STAT_LEASE_RECONNECTS] = "lease_reconnects",
	[SPOKE_STAT_REQUESTS_FENCED] = "requests_fenced",
	[SPOKE_STAT_POOL_REQUESTS] = "pool_requests",
	[SPOKE_STAT_POOL_WAITED] = "pool_waited",
	[SPOKE_STAT_POOL_FULL] = "pool_full",
	[SPOKE_STAT_CLOSED_HANDSHAKE] = "closed_handshake",
	[SPOKE_STAT_HANDSHAKES] = "handshakes",
	[SPOKE_STAT_HANDSHAKES_DONE] = "handshakes_done",
	[SPOKE_STAT_HANDSHAKES_SHED] = "handshakes_shed",
	[SPOKE_STAT_TLS_RECORDS_READ] = "tls_records_read",
	[SPOKE_STAT_TLS_RECORDS_WRITTEN] = "tls_records_written",
	[SPOKE_STAT_TLS_REKEYS] = "tls_rekeys",
	[SPOKE_STAT_TLS_RELOADS] = "tls_reloads",
	[SPOKE_STAT_TLS_RELOADS_FAILED] = "tls_reloads_failed",
	[SPOKE_STAT_REFUSED_ADDRESS] = "refused_address",
	[SPOKE_STAT_REFUSED_CALLER] = "refused_caller",
	[SPOKE_STAT_DRAINED_CALLER] = "drained_caller",
	[SPOKE_STAT_REFUSED_CREDENTIALS] = "refused_credentials",
	[SPOKE_STAT_CLOSED_AUTH] = "closed_auth",
	[SPOKE_STAT_CONNECTS_SECURED] = "connects_secured",
	[SPOKE_STAT_CONNECTED_LOCAL] = "connected_local",
	[SPOKE_STAT_LOCAL_FAILED] = "local_failed",
	[SPOKE_STAT_LOCAL_REFUSED] = "local_refused",
	[SPOKE_STAT_HANDSHAKES_FAILED] = "handshakes_failed",
	[SPOKE_STAT_HANDSHAKES_LATE] = "handshakes_late",
	[SPOKE_STAT_HANDSHAKES_PLAIN] = "handshakes_plain",
	[SPOKE_STAT_BODIES_SWOLLEN] = "bodies_swollen",
};

#define STAT_SENTENCE(name, sentence) sentence,
static const char *const sentences[] = { SPOKE_STATS(STAT_SENTENCE) };
#undef STAT_SENTENCE

_Static_assert(sizeof(names) == sizeof(sentences), "each counter has a name in small letters");

const char *spoke_stat_name(enum spoke_stat stat)
{
	return (unsigned)stat < SPOKE_STAT_COUNT ? names[stat] : NULL;
}

const char *spoke_stat_sentence(enum spoke_stat stat)
{
	return (unsigned)stat < SPOKE_STAT_COUNT ? sentences[stat] : NULL;
}

uint64_t spoke_stat_get(const struct spoke_engine *engine, enum spoke_stat stat)
{
	return (unsigned)stat < SPOKE_STAT_COUNT ? engine->stats[stat] : 0;
}

void spoke_engine_latency(const struct spoke_engine *engine, struct spoke_histogram *ret_latency)
{
	*ret_latency = *engine->latency;
}

const char *spoke_event_user_name(enum spoke_event_user user)
{
	switch (user) {
	case SPOKE_EVENT_OF_NONE:
		return "";
	case SPOKE_EVENT_OF_TIMEOUT:
		return "timeout";
	case SPOKE_EVENT_OF_RETRY:
		return "retry";
	case SPOKE_EVENT_OF_HEARTBEAT:
		return "heartbeat";
	case SPOKE_EVENT_OF_LEASE:
		return "lease";
	default:
		return NULL;
	}
}

int spoke_event_get(const struct spoke_engine *engine, uint64_t number,
		    struct spoke_event *ret_event)
{
	const struct spoke_event *event = spokei_events_find(engine->events, number);

	if (event == NULL)
		return SPOKE_ENOENT;
	*ret_event = *event;
	return SPOKE_OK;
}

void spoke_engine_pool(const struct spoke_engine *engine, struct spoke_pool *ret_pool)
{
	const struct spoke_loop *loop = engine->env->loop;

	*ret_pool = (struct spoke_pool){ .threads_max = 0 };
	if (loop->pool_look)
		loop->pool_look(engine->loop, ret_pool);
}

uint64_t spokei_why_begin(const struct spoke_engine *engine)
{
	return spokei_engine_elsewhere(engine) ? 0 : engine->events->last;
}

/* Names the limit of timers if that is reached. */
static void explain(struct spoke_engine *engine, int error, const char *what)
{
	uint64_t timers_max = spokei_engine_options(engine)->timers_max;
	struct spoke_wheel_counts counts;

	spoke_wheel_counts(engine->wheel, &counts);
	if (timers_max == 0)
		timers_max = TIMERS_MAX;
	if (error == SPOKE_ELIMIT && counts.pending >= timers_max) {
		spokei_why_set(engine,
			       "%s: timers.max = %" PRIu64
			       " is reached (timers of the engine); raise it or cancel some",
			       what, timers_max);
	} else {
		spokei_why_set(engine, "%s: %s", what, spoke_strerror(error));
	}
}

int spokei_why_end(struct spoke_engine *engine, uint64_t begun, int error, const char *what)
{
	if (error == SPOKE_ETHREAD)
		return error;
	if (error && engine->events->last == begun) {
		explain(engine, error, what);
		spokei_event(engine, error, "%s", engine->why);
	}
	return error;
}

const char *spoke_engine_why(const struct spoke_engine *engine)
{
	const struct spoke_event *event = spokei_events_find(engine->events, engine->events->last);

	if (engine->why[0] && engine->why_after == engine->events->last)
		return engine->why;
	return event ? event->text : "";
}
