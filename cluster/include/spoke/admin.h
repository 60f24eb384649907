/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The admin server shows an engine at work, in a browser and to other programs:
 *
 *     /          a live page: the timing wheel, endpoints, tickets, calls, latest events
 *     /status    the same data as JSON
 *     /settings  the settings in force, with their sources
 *     /events    the same data as a stream (text/event-stream), twice a second
 *     /metrics   counters and gauges in Prometheus' text format
 *     /live      for probes: 200
 *     /ready     for probes: 200, or 503 while the engine drains, or a provider does not listen or
 * is offline; /ready/consumers also requires an endpoint of each consumer
 *
 * The server is off unless a program creates it, and listens on a port of its own. Every client
 * that reaches the port may read, so bind it to loopback, ask for certificates or the token, or put
 * it behind an authenticating proxy.
 *
 * Requests must name the server by an address in digits or as localhost, e.g.
 * http://127.0.0.1:9090/, or by a name of the option `hosts`. Other names are refused, because a
 * foreign web page could read through them (DNS rebinding). Reading changes nothing; the actions
 * that the program offers need POST /act/NAME and the token. "offline" and "online" are such
 * actions of every engine with providers: see spoke_provider_offline().
 */
#ifndef SPOKE_ADMIN_H
#define SPOKE_ADMIN_H

#include <spoke/engine.h>
#include <spoke/tls.h>

SPOKE_BEGIN_DECLS

struct spoke_admin;
struct spoke_config;

/* An action that a client with the token may trigger. Texts and the table are copied. */
struct spoke_admin_action {
	const char *name;     /* letters, digits and "-", e.g. "drain" */
	const char *sentence; /* description, for the button */
	/* Called on the engine's thread after the answer was written; may free anything. */
	void (*act)(void *arg);
	void *arg; /* borrowed as long as the server exists */
};

/* Options of the admin server. 0 or NULL in a field selects its default; all texts are copied. */
struct spoke_admin_options {
	/* Address in digits, e.g. "127.0.0.1:9090", or "unix:/run/x.sock"; port 0: the system
	 * chooses. After "https://" the page is served over TLS: that of `tls`, or of the keys of
	 * [provider] in `config`. NULL: "127.0.0.1:0" */
	const char *listen;
	const char *name;  /* display name of this process, e.g. "provider 1"; NULL: "spoke" */
	uint64_t number;   /* process id to display (getpid()); 0: none */
	const char *token; /* required by POST in the header "Authorization: Bearer TOKEN".
			    * NULL: that of the file, else 128 random bits as hex; see
			    * spoke_admin_token() */
	const struct spoke_admin_action *actions; /* borrowed for the call */
	size_t action_count;                      /* at most 16 */
	uint32_t viewers_max; /* viewers at a time; further ones are closed. Three quarters may be
			       * streams. Probes (/live, /ready) and requests that are under way
			       * have 64 places in addition: when all are taken, the next
			       * connection takes that of the one that had its response first, or
			       * else has waited for its request longest. 0: 16 */
	const char *hosts;    /* additional host names, without ports, for scrapers and proxies,
			       * e.g. "orders,orders.example"; NULL: none */
	/* A file with the token, 8 to 256 visible ASCII characters, which only its owner may read;
	 * not with `token`. It is read again when a look each minute finds it changed. NULL:
	 * [engine] admin.token.file of `config`, if that is set. */
	const char *token_file;
	/* Every request needs the token, so a browser needs a proxy that adds it. Only /live and
	 * the two paths of /ready do not, and clients that have proven a name by a certificate
	 * (`tls`) need no token to read. */
	bool token_reads;
	/* The page is served over TLS, as a provider's; with `ca`, clients have to show a
	 * certificate unless `verify` says otherwise. Borrowed for the call. NULL: plain HTTP. */
	const struct spoke_tls_options *tls;
	/* Has the file of the token. Reloads read it and the files of `tls` again, and take them
	 * with all the rest or not at all. NULL: none. */
	struct spoke_config *config;
};

/*
 * Makes an admin server, which listens at once. It does not keep a drain of its engine from ending,
 * displays the drain, and is closed with the engine. Returns 0, EINVAL (an option; see
 * spoke_engine_why()), ESYSTEM (the address is taken, or not local; a file), EUNSUPPORTED (the
 * environment has no secret files), ELIMIT, ENOMEM, ECLOSED or EFORKED. Undo with
 * spoke_admin_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_admin_new(struct spoke_engine *engine,
					     const struct spoke_admin_options *options,
					     struct spoke_admin **ret_admin);

/* Closes the server and its connections; NULL is allowed. The engine's thread. */
SPOKE_API void spoke_admin_free(struct spoke_admin *admin);

/* Returns the server's address, e.g. "127.0.0.1:9090"; valid as long as the server. */
SPOKE_API const char *spoke_admin_address(const struct spoke_admin *admin);

/* Returns the token that a POST needs; valid as long as the server. */
SPOKE_API const char *spoke_admin_token(const struct spoke_admin *admin);

SPOKE_END_DECLS

#endif
