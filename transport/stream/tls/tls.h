/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS streams: the certificates and limits that the connections of one owner share, and their kind
 * of stream. Nothing outside this folder knows the library. On the engine's thread.
 */
#ifndef SPOKEI_TRANSPORT_STREAM_TLS_TLS_H
#define SPOKEI_TRANSPORT_STREAM_TLS_TLS_H

#include "transport/stream/stream.h"

#include <spoke/tls.h>

#define SPOKEI_TLS_WHY 256u        /* bytes of a sentence */
#define SPOKEI_TLS_HANDSHAKES 256u /* under way at a time, by default */
#define SPOKEI_TLS_HANDSHAKES_PER_PEER 32u

struct spokei_tls;

/* Bounds of the handshakes that a side accepts. */
struct spokei_tls_limits {
	uint32_t handshakes_max;          /* under way; 0: the default; also the next */
	uint32_t handshakes_per_peer_max; /* of one address, with those that wait */
	uint32_t handshakes_per_second;   /* that begin; 0: no limit */
	uint32_t prefix6;                 /* as of struct spokei_quota_limits */
};

/* Texts are copied. A side that connects always verifies its peer. */
struct spokei_tls_options {
	bool accepts;     /* for accepted connections; else for those that this side makes */
	const char *cert; /* path of the chain, PEM; NULL: none, if this side connects */
	const char *key;  /* path of its key */
	const char *ca;   /* path of the authorities of peers' certificates; NULL: the system's */
	const char *crl;  /* path of revoked certificates; NULL: none */
	/* "dns:a.test,uri:spiffe://x/y,ip:10.0.0.1": the peer's certificate has to bear one. NULL:
	 * the host that is connected to. */
	const char *peers;
	enum spoke_tls_verify verify; /* of accepted connections */
	unsigned oldest;              /* version, 12 or 13; 0: 13 */
	struct spokei_tls_limits limits;
};

/*
 * Reads the files. Returns 0; SPOKE_EUNSUPPORTED: spoke is built without TLS; SPOKE_EINVAL: an
 * option or the content of a file; SPOKE_ESYSTEM: a file cannot be read; SPOKE_ENOMEM. `why` says
 * which, and the remedy. Blocks for as long as the files do.
 */
SPOKE_MUST_USE int spokei_tls_new(struct spoke_engine *engine,
				  const struct spokei_tls_options *options,
				  char why[SPOKEI_TLS_WHY], struct spokei_tls **ret_tls);

/* Checks a list of expected names. Returns 0, SPOKE_ENOMEM or SPOKE_EINVAL with a sentence. Without
 * the library any list is good. */
SPOKE_MUST_USE int spokei_tls_check_peers(const struct spoke_env *env, const char *list,
					  char why[SPOKEI_TLS_WHY]);

/* Changes the bounds. Handshakes under way stay; those that wait begin, if there is room now. NULL
 * is fine. */
void spokei_tls_limit(struct spokei_tls *tls, const struct spokei_tls_limits *limits);

/* Has connections that live verified again after each change of the files, and calls `refuse` for
 * those that are not trusted any more. Nothing is closed here. */
void spokei_tls_watch(struct spokei_tls *tls, void (*refuse)(struct spokei_stream *stream));

/* Looks at the files soon, as each minute: changed ones are used for new connections, if all of
 * them are good. NULL is fine. */
void spokei_tls_reload(struct spokei_tls *tls);

/*
 * The files as a part of a reload of other things. `held` is a list of such parts. hold() adds one;
 * its owner may be freed before the end, and NULL is fine. read_held() blocks, and may be called on
 * another thread. verdict() reports each error, and returns 0 or the last. let_go() empties the
 * list, and uses the changed files or drops them.
 */
void spokei_tls_hold(struct spokei_tls *tls, struct spoke_list *held);
void spokei_tls_read_held(struct spoke_list *held);
SPOKE_MUST_USE int spokei_tls_verdict(const struct spoke_list *held);
void spokei_tls_let_go(struct spoke_list *held, bool takes);

/* Frees it, after its last connection was closed. NULL is fine. */
void spokei_tls_free(struct spokei_tls *tls);

/* Returns the last second of this side's certificate, since 1970; 0: it has none. */
int64_t spokei_tls_ends(const struct spokei_tls *tls);

/* Returns whether its accepted connections have to show a certificate. DEFAULT: no, because no
 * authority of theirs is set. */
enum spoke_tls_verify spokei_tls_verifies(const struct spokei_tls *tls);

/* Returns the kind with which its streams begin, good until it is freed. */
const struct spokei_stream_kind *spokei_tls_kind(const struct spokei_tls *tls);

/* Returns the kind of accepted streams whose first byte tells TLS from plain bytes. */
const struct spokei_stream_kind *spokei_tls_or_plain(const struct spokei_tls *tls);

/* Returns the kind that the streams of both have once their handshake begins. */
const struct spokei_stream_kind *spokei_tls_secure_kind(const struct spokei_tls *tls);

#endif
