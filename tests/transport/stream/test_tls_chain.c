/* SPDX-License-Identifier: Apache-2.0 */
/* Chains of certificates of TLS streams: what this side shows, and what it takes from peers. */
#include "core/virtual/files.h"
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <string.h>

static struct tlsrig rig;

/* --- shown */

static void put(const char *path, const struct tlscert *const *certs, size_t count)
{
	char text[TLSCERT_PEM];

	tlscert_chain(certs, count, text);
	spokei_vfiles_put(rig.world.files, path, text);
}

static void take_all(SSL_CTX *context)
{
	SSL_CTX_set_verify(context, SSL_VERIFY_NONE, NULL);
}

/* Has these files used, and returns how many certificates the next peer is shown. */
static int shown_with(const struct tlscert *const *own, size_t own_count,
		      const struct tlscert *const *trusted, size_t trusted_count)
{
	put("server", own, own_count);
	put("authority", trusted, trusted_count);
	spokei_tls_reload(rig.tls);
	tlsrig_run(&rig);
	tlsrig_run(&rig);
	tlsrig_again(&rig);
	tlsrig_open(&rig);
	return sk_X509_num(SSL_get_peer_cert_chain(rig.peer));
}

TEST(peers_are_shown_what_leads_to_the_root_but_not_the_root)
{
	const struct tlscert *root = &tlsrig_certs()->authority;
	const struct tlscert *stranger = &tlsrig_certs()->stranger;
	struct tlscert middle = tlscert_make(
		&(struct tlscert_wish){ .subject = "middle", .issuer = root, .authority = true });
	struct tlscert leaf = tlscert_make(&(struct tlscert_wish){
		.subject = "leaf", .names = "DNS:" TLSRIG_HOST, .issuer = &middle });
	const struct tlsrig_setting setting = { .accepts = true,
						.verify = SPOKE_TLS_VERIFY_REQUIRED,
						.set_context = take_all };
	const struct tlscert *const chain[] = { &leaf, &middle, root };
	const struct tlscert *const all[] = { stranger, root, &middle };
	char key[TLSCERT_PEM];

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_int_equal(sk_X509_num(SSL_get_peer_cert_chain(rig.peer)), 1);
	tlscert_key(&leaf, key);
	spokei_vfiles_put(rig.world.files, "server.key", key);
	assert_int_equal(shown_with(chain, 1, all, 2), 1); /* nothing leads to its issuer */
	assert_int_equal(shown_with(chain, 1, all, 3), 2);
	assert_int_equal(shown_with(chain, 2, all, 2), 2);
	assert_int_equal(shown_with(chain, 3, all, 2), 3); /* as the file has it */
	assert_int_equal(shown_with(chain, 1, all, 2), 1);
	tlsrig_end(&rig);
	tlscert_free(&leaf);
	tlscert_free(&middle);
}

/* --- taken */

TEST(chain_that_is_too_long_is_refused)
{
	enum {
		CHAIN = 7
	};
	const struct tlsrig_certs *certs = tlsrig_certs();
	struct tlscert links[CHAIN];
	struct tlsrig_setting setting = { .accepts = true, .verify = SPOKE_TLS_VERIFY_REQUIRED };

	for (unsigned i = 0; i < CHAIN; i++) {
		char subject[16] = "link 0";

		subject[5] = (char)('0' + i);
		links[i] = tlscert_make(&(struct tlscert_wish){
			.subject = subject,
			.issuer = i > 0 ? &links[i - 1] : &certs->authority,
			.authority = i < CHAIN - 1,
		});
	}
	for (unsigned deep = 0; deep < 2; deep++) {
		unsigned own = deep ? CHAIN - 1 : 2;

		setting.peer = &links[own];
		tlsrig_begin(&rig, &setting);
		for (unsigned i = 0; i < own; i++)
			assert_int_equal(SSL_add1_chain_cert(rig.peer, links[i].cert), 1);
		/* The third one is an authority itself, and no good as a peer. */
		tlsrig_shake(&rig);
		if (deep)
			assert_non_null(strstr(rig.tls->why, "chain too long"));
		assert_int_not_equal(rig.status, 0);
		tlsrig_end(&rig);
	}
	for (unsigned i = 0; i < CHAIN; i++)
		tlscert_free(&links[i]);
}

TEST(certificates_over_16_kib_are_refused)
{
	static char names[26000];
	const struct tlsrig_certs *certs = tlsrig_certs();
	struct tlsrig_setting setting = { .accepts = true, .verify = SPOKE_TLS_VERIFY_REQUIRED };
	struct tlscert large;
	size_t len = 0;

	while (len < 24000)
		len += (size_t)snprintf(names + len, sizeof(names) - len, "%sDNS:%zu.a-name.test",
					len ? "," : "", len);
	large = tlscert_make(&(struct tlscert_wish){
		.subject = "large", .names = names, .issuer = &certs->authority });
	setting.peer = &large;
	tlsrig_begin(&rig, &setting);
	tlsrig_shake(&rig);
	assert_int_not_equal(rig.status, 0);
	assert_non_null(strstr(rig.tls->why, "excessive message size"));
	assert_in_range(rig.faulty.bytes_peak, 0, SPOKEI_ENGINE_SCRATCH * 4);
	tlsrig_end(&rig);
	tlscert_free(&large);
}
