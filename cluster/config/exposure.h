/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether every host that reaches an address is let in there, for the event that reports
 * it. Pure.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_EXPOSURE_H
#define SPOKEI_CLUSTER_CONFIG_EXPOSURE_H

#include <spoke/tls.h>

struct spokei_callers;
struct spokei_rules;

/* The guards between a host and a service, or a page, at one address. */
struct spokei_exposure {
	bool local;                   /* only processes of this machine reach the address */
	bool plain;                   /* plain bytes are served there, with or without TLS */
	bool asks;                    /* for a token or a signature */
	enum spoke_tls_verify verify; /* of TLS; see spokei_tls_verifies() */
	/* Lists; NULL: none. */
	const struct spokei_rules *of_owner; /* of peers, at all addresses ... */
	const struct spokei_rules *of_address;
	const struct spokei_callers *of_provider;
	const struct spokei_callers *of_service;
};

/* The first thing to set, because every host is let in. */
enum spokei_exposed {
	SPOKEI_EXPOSED_NOT,
	SPOKEI_EXPOSED_PLAIN,
	SPOKEI_EXPOSED_NO_CA,      /* TLS asks for no certificate */
	SPOKEI_EXPOSED_UNVERIFIED, /* tls.verify does not require one */
};

enum spokei_exposed spokei_exposure_judge(const struct spokei_exposure *of);

/* Returns the rest of the sentence, up to the first remedy; "" for NOT. Others may follow it. */
const char *spokei_exposed_why(enum spokei_exposed exposed);

#endif
