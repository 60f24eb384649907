/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The certificates of secure worlds, made once in a program. Their keys differ from run to run, but
 * all their lengths are the same, so the schedule of a world is, too.
 */
#include "tests/sim/sim.h"
#include "tests/transport/stream/tlscert.h"

#include <stdio.h>

enum {
	SETS = 2
};

static char texts[SETS][SIM_CERTS][TLSCERT_PEM];

static void make(const struct tlscert *authority, const char *name, char *chain, char *key)
{
	struct tlscert cert = tlscert_make(
		&(struct tlscert_wish){ .names = name, .issuer = authority });

	tlscert_chain((const struct tlscert *const[]){ &cert }, 1, chain);
	tlscert_key(&cert, key);
	tlscert_free(&cert);
}

static void make_set(char (*set)[TLSCERT_PEM])
{
	struct tlscert authority = tlscert_make(
		&(struct tlscert_wish){ .subject = "authority", .authority = true });
	char name[32];

	tlscert_chain((const struct tlscert *const[]){ &authority }, 1, set[SIM_CERT_AUTHORITY]);
	make(&authority, "DNS:provider.test", set[SIM_CERT_PROVIDER], set[SIM_CERT_PROVIDER_KEY]);
	for (unsigned i = 0; i < SIM_CONSUMERS; i++) {
		(void)snprintf(name, sizeof(name), "DNS:c%u.test", i);
		make(&authority, name, set[SIM_CERT_CONSUMERS + 2 * i],
		     set[SIM_CERT_CONSUMERS + 2 * i + 1]);
	}
	tlscert_free(&authority);
}

const char *sim_cert(unsigned which, unsigned set)
{
	if (texts[0][0][0] == '\0')
		for (unsigned i = 0; i < SETS; i++)
			make_set(texts[i]);
	return texts[set][which];
}
