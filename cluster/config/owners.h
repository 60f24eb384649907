/* SPDX-License-Identifier: Apache-2.0 */
/* Settings of owners whose fields rows of the table name, so that one loop sets them. */
#ifndef SPOKEI_CLUSTER_CONFIG_OWNERS_H
#define SPOKEI_CLUSTER_CONFIG_OWNERS_H

#include <stdbool.h>
#include <stdint.h>

#define SPOKEI_RETRIES_OF_POLICY UINT32_MAX
#define SPOKEI_ATTEMPT_WHOLE UINT64_MAX /* an attempt may take all the time of its call */

/* The values of "dedupe.id". */
enum spokei_ids {
	SPOKEI_IDS_AUTO, /* at endpoints that have told their instance */
	SPOKEI_IDS_ON,
	SPOKEI_IDS_OFF, /* only tickets bear one */
};

struct spoke_balancer;
struct spoke_policy;

/* Settings of calls, of a whole consumer or of one method. */
struct spokei_call_settings {
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	uint64_t timeout_ns; /* of a call */
	/* Of an attempt; 0: each further attempt is left an equal part; or ATTEMPT_WHOLE. */
	uint64_t attempt_ns;
	uint8_t codec; /* id of the serialization; 0: that of the endpoint */
	bool growing;  /* exponential backoff */
	bool wait_ready;
	/* Also the only attempt of a call may have to wait or to end early, or calls are marked. */
	bool bounded;
	bool sticky;
	bool idempotent;
	bool once;     /* a failback call does not repeat a request that may have run */
	bool inherits; /* a call in a handler is made for its request */
	bool marked;   /* calls that may be repeated bear an id at some endpoints, or at all */
	enum spokei_ids ids;
	uint64_t period_ns;
	uint64_t deadline_ns; /* of a ticket, from its call on; 0: spokei_settings_deadline() */
	uint64_t hedge_ns;    /* or a percentile, see SPOKE_PERCENTILE(); 0: no backups */
	uint64_t slow_ns;     /* from this time on an attempt is slow; 0: none is */
	uint32_t retries;     /* SPOKEI_RETRIES_OF_POLICY: the policy's number */
	uint32_t forks;
	uint32_t fail_percent;
	uint32_t actives;    /* 0: no limit */
	uint32_t per_second; /* 0: no limit */
};

/* When an endpoint is ejected. */
struct spokei_eject_rule {
	uint32_t failures; /* consecutive; 0: never ejected */
	uint32_t errors;   /* percent of the attempts of an interval; 0: never ejected for that */
	uint64_t first_ns; /* duration of the first ejection, with 20 % jitter */
	uint64_t interval_ns;
	uint32_t calls;   /* attempts that an interval has at least, before it is judged */
	uint32_t latency; /* times the mean of the others; 0: never ejected for that */
};

#define SPOKEI_JOURNAL_SIZE_MIN (UINT64_C(16) << 20)

/* Settings of a consumer's or a provider's journal. */
struct spokei_journal_settings {
	const char *folder;  /* NULL: there is none */
	uint32_t durability; /* enum spokei_durability */
	uint64_t wait_ns;
	uint64_t sync_ns;
	uint64_t size_max; /* bytes */
	bool is_optional;  /* tickets and requests are taken that the journal does not */
	bool salvages;
};

/* Settings of a directory. */
struct spokei_directory_settings {
	const char *service; /* the texts outlive the directory */
	const char *version; /* "*": any */
	const char *group;
	uint32_t connections;   /* to each endpoint; 0: 1 */
	uint32_t actives_max;   /* attempts in flight to one endpoint; 0: no limit */
	uint32_t endpoints_max; /* of a registry's list */
	struct spokei_eject_rule eject;
	uint32_t eject_share; /* percent of the endpoints that errors and latency eject at most */
	bool lazy;            /* connect on the first call */
	bool local_path;      /* connect to providers of this host by their paths */
	bool protects;        /* ignore a list without any endpoint */
};

#endif
