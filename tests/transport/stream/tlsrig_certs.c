/* SPDX-License-Identifier: Apache-2.0 */
/* The certificates that TLS streams of tests and their peers have by default: see tlsrig.h. */
#include "core/virtual/files.h"
#include "tests/transport/stream/tlsrig.h"

const struct tlsrig_certs *tlsrig_certs(void)
{
	static struct tlsrig_certs certs;
	struct tlscert_wish wish = { .subject = "authority", .authority = true };

	if (certs.authority.cert)
		return &certs;
	certs.authority = tlscert_make(&wish);
	wish.subject = "stranger";
	certs.stranger = tlscert_make(&wish);
	wish = (struct tlscert_wish){ .subject = "server",
				      .names = "DNS:" TLSRIG_HOST ",IP:127.0.0.1",
				      .issuer = &certs.authority };
	certs.server = tlscert_make(&wish);
	wish.subject = "client";
	wish.names = "DNS:client.test,URI:spiffe://a/client";
	certs.client = tlscert_make(&wish);
	return &certs;
}

void tlsrig_put_files(struct spokei_world *world)
{
	enum {
		CERTS = 4
	};
	static const char *const names[CERTS][2] = { { "authority", "authority.key" },
						     { "stranger", "stranger.key" },
						     { "server", "server.key" },
						     { "client", "client.key" } };
	static char texts[CERTS][2][TLSCERT_PEM];
	const struct tlsrig_certs *certs = tlsrig_certs();
	const struct tlscert *const all[CERTS] = { &certs->authority, &certs->stranger,
						   &certs->server, &certs->client };

	for (unsigned i = 0; i < CERTS; i++) {
		if (texts[i][0][0] == '\0') {
			tlscert_chain(&all[i], 1, texts[i][0]);
			tlscert_key(all[i], texts[i][1]);
		}
		spokei_vfiles_put(world->files, names[i][0], texts[i][0]);
		spokei_vfiles_put(world->files, names[i][1], texts[i][1]);
	}
}
