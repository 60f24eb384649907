/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A page that shows an engine at work, to be opened in a browser, and the same for machines:
 *
 *     /          the page: the wheel as it turns, endpoints, tickets, calls, what happened last
 *     /status    all of it, as JSON
 *     /events    the same as a stream (text/event-stream), twice a second
 *     /metrics   counters and gauges in Prometheus' text format
 *
 * It is off until a program asks for it, and listens at a port of its own. Anybody who reaches that
 * port may read: let it be on loopback, or behind something that knows who asks. It is asked under
 * an address in digits or as localhost, as in http://127.0.0.1:9090/; under a name it answers if
 * that is one of the option `hosts`, for by others a page elsewhere on the web might read here.
 * Reading changes nothing; actions that the program offers are done by POST /act/NAME with the
 * token alone.
 */
#ifndef SPOKE_ADMIN_H
#define SPOKE_ADMIN_H

#include <spoke/engine.h>

SPOKE_BEGIN_DECLS

struct spoke_admin;

/* Something that a visitor with the token may have done. Texts and the table are copied. */
struct spoke_admin_action {
	const char *name;     /* of letters, digits and -, as "drain" */
	const char *sentence; /* what it does, for the button */
	/* On the engine's thread, after the answer was written; may free anything. */
	void (*act)(void *arg);
	void *arg;
};

/* Zero-initialised, every default stands; all texts are copied. */
struct spoke_admin_options {
	const char *listen; /* an address in digits, as "127.0.0.1:9090", or "unix:/run/x.sock";
			     * port 0: one that is free. NULL: "127.0.0.1:0" */
	const char *name;   /* of this process, for people, as "provider 1"; NULL: "spoke" */
	uint64_t number;    /* of the process (getpid()), to be shown; 0: none */
	const char *token;  /* what a POST has to say: in a header "Authorization: Bearer TOKEN".
			     * NULL: 128 bits from the dice, as hex; see spoke_admin_token() */
	const struct spoke_admin_action *actions;
	size_t action_count;  /* at most 16 */
	uint32_t viewers_max; /* connections at a time; beyond, they are closed; three quarters of
			       * them may be streams. 0: 16 */
	const char *hosts;    /* names under which it is asked, as by a scraper or a proxy, without
			       * ports, as "orders,orders.example"; NULL: none */
};

/*
 * Begins to listen. It does not keep a drain of its engine from ending, shows a drain, and is
 * closed with the engine. Returns 0, EINVAL (an option; spoke_engine_why() has a sentence), ESYSTEM
 * (the address is taken, or not ours), ELIMIT, ENOMEM, ECLOSED or EFORKED. Undo with
 * spoke_admin_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_admin_new(struct spoke_engine *engine,
					     const struct spoke_admin_options *options,
					     struct spoke_admin **ret_admin);

/* Closes it, and what reads there; NULL is fine. Anywhere on the engine's thread. */
SPOKE_API void spoke_admin_free(struct spoke_admin *admin);

/* Where it listens, as "127.0.0.1:9090"; lives as long as it. */
SPOKE_API const char *spoke_admin_address(const struct spoke_admin *admin);

/* What a POST has to say; lives as long as it. */
SPOKE_API const char *spoke_admin_token(const struct spoke_admin *admin);

SPOKE_END_DECLS

#endif
