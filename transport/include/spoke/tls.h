/* SPDX-License-Identifier: Apache-2.0 */
/*
 * TLS: secret connections, on which a side can prove its names to the other by a certificate:
 * certificates:
 *
 *     struct spoke_tls_options tls = { .cert = "echo.pem", .key = "echo.key", .ca = "ca.pem" };
 *     struct spoke_provider_options options = { .tls = &tls };
 *
 * A side with these options never speaks plain bytes, even if a registry or the peer does. TLS 1.3
 * is spoken; there is no resumption, no early data and no renegotiation. Files are PEM. The same
 * settings in a file: the keys tls and tls.* of [provider] and [consumer].
 */
#ifndef SPOKE_TLS_H
#define SPOKE_TLS_H

#include <spoke/base.h>

#include <stdbool.h>
#include <stdint.h>

SPOKE_BEGIN_DECLS

/* Whether consumers have to show a certificate. */
enum spoke_tls_verify {
	SPOKE_TLS_VERIFY_DEFAULT,  /* required if there is `ca`, else none */
	SPOKE_TLS_VERIFY_NONE,     /* none is asked for */
	SPOKE_TLS_VERIFY_OPTIONAL, /* one that is shown must be good */
	SPOKE_TLS_VERIFY_REQUIRED,
};

/* Options of TLS. 0 or NULL in a field selects the settings file's value, else the default; texts
 * are copied. */
struct spoke_tls_options {
	/* The chain of this side, its own certificate first, and its key, without a password. A
	 * provider needs both; a consumer has both or none. */
	const char *cert;
	const char *key;
	/* The authorities of the peers' certificates. NULL: for a consumer those of the system; a
	 * provider then asks for no certificate. */
	const char *ca;
	const char *crl; /* revoked certificates, of every authority in `ca`; NULL: none */
	/* Consumers: the names of which a provider's certificate has to bear one:
	 * "dns:echo.pay.test,uri:spiffe://test/echo,ip:10.0.0.1". NULL: the host of its URL, which
	 * with a registry is mostly an address. */
	const char *peers;
	enum spoke_tls_verify verify; /* providers */
	unsigned oldest;              /* version: 13, or 12 for old Java consumers; 0: 13 */
	bool optional; /* providers: plain connections are accepted, too; the first byte tells */
	/* Providers: handshakes under way, in all and from one address; further ones wait, or are
	 * closed. 0: 256 and 32. */
	uint32_t handshakes_max;
	uint32_t handshakes_per_peer_max;
	uint64_t handshake_timeout_ns; /* providers; 0: 5 s */
	/* Providers: handshakes that begin in a second; further ones wait. 0: no limit. */
	uint32_t handshakes_per_second;
};

/* The TLS of a connection. */
struct spoke_tls_info {
	char version[16]; /* e.g. "TLSv1.3" */
	char suite[48];   /* e.g. "TLS_AES_256_GCM_SHA384" */
	/* The names in the peer's certificate, e.g. "dns:a.test,ip:10.0.0.1"; some if they are
	 * many; "": it has shown none, or a certificate without names. */
	char names[512];
	int64_t ends_s; /* the last second of this certificate, since 1970; 0: none was shown */
};

SPOKE_END_DECLS

#endif
