/* SPDX-License-Identifier: Apache-2.0 */
/* Files of certificates that change while handshakes and open streams use them. */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include "core/virtual/files.h"

#include <spoke/engine.h>
#include <spoke/stats.h>

#include <errno.h>
#include <string.h>

enum {
	ROOM = 65536,
	CHANGES = 1000,
	YEAR_2025 = 1735689600, /* the world begins in 2026 */
};

static const struct tlsrig_setting accepting = { .accepts = true,
						 .verify = SPOKE_TLS_VERIFY_REQUIRED };

static struct tlsrig rig;
static unsigned char bytes[ROOM];
static unsigned refused;

static void note_refused(struct spokei_stream *stream)
{
	(void)stream;
	refused++;
}

STEP(set_up)
{
	refused = 0;
	tlsrig_begin(&rig, &accepting);
	spokei_tls_watch(rig.tls, note_refused);
}

STEP(tear_down)
{
	tlsrig_end(&rig);
}

FIXTURE(set_up, tear_down);

static uint64_t stat_of(enum spoke_stat stat)
{
	return spoke_stat_get(rig.engine, stat);
}

static void put(const char *path, const struct tlscert *cert)
{
	char text[TLSCERT_PEM];

	tlscert_chain(&cert, 1, text);
	spokei_vfiles_put(rig.world.files, path, text);
}

static void put_own(const struct tlscert *cert)
{
	char text[TLSCERT_PEM];

	put("server", cert);
	tlscert_key(cert, text);
	spokei_vfiles_put(rig.world.files, "server.key", text);
}

/* Has the files looked at. */
static void reload(void)
{
	spokei_tls_reload(rig.tls);
	tlsrig_run(&rig);
	tlsrig_run(&rig);
}

static struct tlscert make_other(void)
{
	return tlscert_make(&(struct tlscert_wish){ .subject = "other",
						    .names = "DNS:" TLSRIG_HOST,
						    .issuer = &tlsrig_certs()->authority });
}

static void assert_shown(const struct tlscert *expected)
{
	X509 *shown = SSL_get1_peer_certificate(rig.peer);

	assert_non_null(shown);
	assert_int_equal(X509_cmp(shown, expected->cert), 0);
	X509_free(shown);
}

/* The peer has the answer to its ClientHello, and has not ended its handshake. */
static void begin_handshake(void)
{
	tlsrig_step(&rig);
	tlsrig_pass(&rig);
	assert_int_equal(rig.status, TLSRIG_OPENING);
}

TEST(handshake_ends_on_the_files_on_which_it_began)
{
	struct tlscert other = make_other();

	begin_handshake();
	put_own(&other);
	reload();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 1);
	tlsrig_open(&rig);
	assert_shown(&tlsrig_certs()->server);
	tlsrig_run(&rig);
	assert_int_equal(refused, 0);
	tlsrig_again(&rig);
	tlsrig_open(&rig);
	assert_shown(&other);
	tlscert_free(&other);
}

/* Reads the files as a part of a reload of other things. */
static int reload_as_a_part(bool takes)
{
	struct spoke_list held;
	int error;

	spokei_list_init(&held);
	spokei_tls_hold(rig.tls, &held);
	spokei_tls_hold(rig.tls, &held);
	spokei_tls_read_held(&held);
	error = spokei_tls_verdict(&held);
	spokei_tls_let_go(&held, takes && error == 0);
	assert_true(spokei_list_empty(&held));
	return error;
}

TEST(older_look_does_not_undo_a_reload)
{
	struct tlscert older = make_other();
	struct tlscert newer = make_other();

	put_own(&older);
	spokei_tls_reload(rig.tls); /* the pool has read the files, and its answer waits */
	put_own(&newer);
	assert_int_equal(reload_as_a_part(true), 0);
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 1);
	tlsrig_run(&rig);
	tlsrig_run(&rig);
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 1);
	tlsrig_open(&rig);
	assert_shown(&newer);
	tlscert_free(&older);
	tlscert_free(&newer);
}

TEST(older_reload_does_not_undo_a_look)
{
	struct tlscert older = make_other();
	struct tlscert newer = make_other();
	struct spoke_list held;

	spokei_list_init(&held);
	put_own(&older);
	spokei_tls_hold(rig.tls, &held);
	spokei_tls_read_held(&held);
	put_own(&newer);
	reload();
	assert_int_equal(spokei_tls_verdict(&held), 0);
	spokei_tls_let_go(&held, true);
	tlsrig_run(&rig);
	tlsrig_run(&rig);
	tlsrig_open(&rig);
	assert_shown(&newer);
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 2);
	tlscert_free(&older);
	tlscert_free(&newer);
}

TEST(part_of_a_refused_reload_is_not_used)
{
	struct tlscert other = make_other();

	put_own(&other);
	assert_int_equal(reload_as_a_part(false), 0);
	put("server", &tlsrig_certs()->server);
	assert_int_equal(reload_as_a_part(true), SPOKE_EINVAL); /* the key is another one */
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 0);
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS_FAILED), 1);
	tlsrig_open(&rig);
	assert_shown(&tlsrig_certs()->server);
	tlscert_free(&other);
}

TEST(handshake_under_a_removed_authority_is_refused_at_its_end)
{
	begin_handshake();
	put("authority", &tlsrig_certs()->stranger);
	reload();
	tlsrig_shake(&rig);
	assert_int_equal(rig.status, -EPROTO);
	assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "not accepted any more"));
	assert_int_equal(refused, 0);
}

TEST(new_authority_counts_for_live_and_new_peers)
{
	struct tlscert foreign = tlscert_make(&(struct tlscert_wish){
		.subject = "foreign", .issuer = &tlsrig_certs()->stranger });
	struct tlsrig_setting setting = accepting;

	tlsrig_open(&rig);
	put("authority", &tlsrig_certs()->stranger);
	reload();
	assert_int_equal(refused, 1);
	tlsrig_again(&rig); /* a peer of the old authority */
	tlsrig_shake(&rig);
	(void)tlsrig_peer_read(&rig, bytes, 1);
	assert_int_not_equal(rig.status, 0);
	assert_non_null(strstr(rig.stream.kind->why(&rig.stream), "certificate is refused"));
	tlsrig_hang_up(&rig);
	assert_int_equal(SSL_CTX_use_certificate(rig.context, foreign.cert), 1);
	assert_int_equal(SSL_CTX_use_PrivateKey(rig.context, foreign.key), 1);
	setting.peer = &foreign;
	rig.setting = setting;
	tlsrig_again(&rig);
	tlsrig_open(&rig);
	assert_int_equal(refused, 1);
	tlscert_free(&foreign);
}

TEST(files_that_are_gone_or_broken_leave_the_old_ones_in_use)
{
	spokei_vfiles_remove(rig.world.files, "server");
	reload();
	reload();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS_FAILED), 1);
	tlsrig_open(&rig);
	assert_shown(&tlsrig_certs()->server);
	spokei_vfiles_put(rig.world.files, "authority", "-----BEGIN CERTIFICATE-----\nMIIB");
	reload();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS_FAILED), 2);
	tlsrig_put_files(&rig.world);
	reload();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 0); /* as they were */
	assert_int_equal(refused, 0);
}

static void put_revoked(const struct tlscert *revoked, int64_t until_s)
{
	char text[TLSCERT_PEM];

	tlscert_crl(&tlsrig_certs()->authority, revoked, until_s, text);
	spokei_vfiles_put(rig.world.files, "revoked", text);
}

/* With such a list no peer would be accepted. */
TEST(revoked_ones_that_have_ended_are_not_used)
{
	struct tlsrig_setting setting = accepting;

	setting.revoked = &tlsrig_certs()->server;
	tlsrig_end(&rig);
	tlsrig_begin(&rig, &setting);
	spokei_tls_watch(rig.tls, note_refused);
	tlsrig_open(&rig);
	put_revoked(NULL, YEAR_2025);
	reload();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS_FAILED), 1);
	assert_int_equal(refused, 0);
	tlsrig_again(&rig);
	tlsrig_open(&rig);
	put_revoked(&tlsrig_certs()->client, 0);
	reload();
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), 1);
	assert_int_equal(refused, 1);
}

TEST(thousand_changes_leave_no_memory_behind)
{
	struct tlscert other = make_other();
	size_t blocks = 0;

	tlsrig_open(&rig);
	for (unsigned i = 0; i < CHANGES; i++) {
		put_own(i % 2 ? &tlsrig_certs()->server : &other);
		reload();
		if (i == 0)
			blocks = rig.faulty.blocks;
		assert_int_equal(rig.faulty.blocks, blocks);
	}
	assert_int_equal(stat_of(SPOKE_STAT_TLS_RELOADS), CHANGES);
	assert_int_equal(refused, 0);
	tlsrig_peer_write(&rig, "x", 1);
	tlsrig_pass(&rig);
	assert_int_equal(rig.got_len, 1);
	tlscert_free(&other);
}
