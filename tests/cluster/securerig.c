/* SPDX-License-Identifier: Apache-2.0 */
/* TLS for the stages of tests: see securerig.h. */
#define _POSIX_C_SOURCE 200809L
#include "tests/cluster/securerig.h"

#include "core/virtual/files.h"
#include "tests/transport/stream/tlscert.h"
#include "timer/base.h"

#include <spoke/host.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum {
	AUTHORITY,
	SERVER,
	SERVER_KEY,
	CLIENT,
	CLIENT_KEY,
	FILES,
};

const struct spokei_stream_kind secure_stream = { .name = "secure" };

/* The files' content, the same for all tests of a program. */
static const char *text_of(unsigned which)
{
	static char texts[FILES][TLSCERT_PEM];
	struct tlscert authority;

	if (texts[0][0])
		return texts[which];
	authority = tlscert_make(&(struct tlscert_wish){ .subject = "a", .authority = true });
	tlscert_chain((const struct tlscert *const[]){ &authority }, 1, texts[AUTHORITY]);
	for (unsigned i = SERVER; i < FILES; i += 2) {
		struct tlscert cert = tlscert_make(&(struct tlscert_wish){
			.subject = i == SERVER ? "server" : "client",
			.names = i == SERVER ? "DNS:server.test" : "DNS:client.test",
			.issuer = &authority });

		tlscert_chain((const struct tlscert *const[]){ &cert }, 1, texts[i]);
		tlscert_key(&cert, texts[i + 1]);
		tlscert_free(&cert);
	}
	tlscert_free(&authority);
	return texts[which];
}

/* Only the owner may read it: it may be a key. */
static void put_on_disk(const char *path, const char *text)
{
	const struct spoke_env *env = spoke_host_env();

	SPOKE_ASSERT(env->files->replace(env->ctx, path, text, strlen(text), true) == 0);
}

bool secure_begin(struct secure *secure, struct spokei_world *world, const char *folder)
{
	memset(secure, 0, sizeof(*secure));
	for (unsigned i = 0; i < FILES; i++) {
		(void)snprintf(secure->paths[i], sizeof(secure->paths[i]), "%s/%u.pem", folder, i);
		if (world)
			spokei_vfiles_put(world->files, secure->paths[i], text_of(i));
		else
			put_on_disk(secure->paths[i], text_of(i));
	}
	secure->provider = (struct spoke_tls_options){ .cert = secure->paths[SERVER],
						       .key = secure->paths[SERVER_KEY],
						       .ca = secure->paths[AUTHORITY] };
	secure->consumer = (struct spoke_tls_options){ .cert = secure->paths[CLIENT],
						       .key = secure->paths[CLIENT_KEY],
						       .ca = secure->paths[AUTHORITY],
						       .peers = "dns:server.test" };
	return true;
}

void secure_end(const struct secure *secure)
{
	for (unsigned i = 0; i < FILES; i++)
		if (secure->paths[i][0])
			(void)unlink(secure->paths[i]);
}
