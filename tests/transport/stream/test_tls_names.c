/* SPDX-License-Identifier: Apache-2.0 */
/* Certificates of TLS streams: which are taken, which are refused and with which sentence, and the
 * names that a peer is known by. */
#include "tests/support/test.h"
#include "tests/transport/stream/tlsrig.h"

#include <spoke/engine.h>

#include <string.h>

enum {
	YEAR_2025 = 1735689600, /* the world begins in 2026 */
	YEAR_2030 = 1893456000,
	ALERT_UNKNOWN_CA = 48,
	ALERT_REVOKED = 44,
	ALERT_CERTIFICATE_REQUIRED = 116,
};

static struct tlsrig rig;

/* Opens a stream towards a provider with this certificate. Returns NULL, or why it is refused. */
static const char *meet(const struct tlscert_wish *wish, const char *host, const char *peers)
{
	static char why[SPOKEI_TLS_WHY];
	struct tlscert_wish of = *wish;
	struct tlscert cert;
	struct tlsrig_setting setting = { .host = host, .peers = peers, .peer = &cert };
	int status;

	if (of.issuer == NULL)
		of.issuer = &tlsrig_certs()->authority;
	cert = tlscert_make(&of);
	tlsrig_begin(&rig, &setting);
	tlsrig_shake(&rig);
	(void)snprintf(why, sizeof(why), "%s", rig.tls->why);
	status = rig.status;
	tlsrig_end(&rig);
	tlscert_free(&cert);
	return status == 0 ? NULL : why;
}

static void assert_taken(const struct tlscert_wish *wish, const char *host, const char *peers)
{
	const char *why = meet(wish, host, peers);

	if (why)
		fail_msg("%s", why);
}

static void assert_refused(const struct tlscert_wish *wish, const char *host, const char *peers,
			   const char *expected)
{
	const char *why = meet(wish, host, peers);

	assert_non_null(why);
	if (strstr(why, expected) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", why, expected);
}

#define NAMES "none of the expected names"

TEST(certificate_has_to_be_good_now)
{
	assert_taken(&(struct tlscert_wish){ .names = "DNS:server.test", .p256 = true }, NULL,
		     NULL);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test", .until_s = YEAR_2025 },
		       NULL, NULL, "expired");
	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test", .from_s = YEAR_2030 },
		       NULL, NULL, "not yet valid");
}

TEST(certificate_has_to_be_of_the_authority_and_for_this_use)
{
	const struct tlsrig_certs *certs = tlsrig_certs();

	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test",
					       .issuer = &certs->stranger },
		       NULL, NULL, "unable to get local issuer");
	assert_refused(&(struct tlscert_wish){ .subject = "x",
					       .names = "DNS:server.test",
					       .usage = "clientAuth" },
		       NULL, NULL, "purpose");
	/* A certificate that is no authority cannot issue others. */
	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test",
					       .issuer = &certs->client },
		       NULL, NULL, "unable to get local issuer");
}

TEST(certificate_signed_by_itself_is_refused)
{
	struct tlscert own = tlscert_make(
		&(struct tlscert_wish){ .subject = "x", .names = "DNS:server.test" });
	struct tlsrig_setting setting = { .peer = &own };

	tlsrig_begin(&rig, &setting);
	tlsrig_shake(&rig);
	tlsrig_hang_up(&rig);
	assert_true(rig.status < 0);
	assert_non_null(strstr(rig.tls->why, "self-signed"));
	tlsrig_end(&rig);
	tlscert_free(&own);
}

TEST(only_alternative_names_count_and_whole_ones)
{
	assert_refused(&(struct tlscert_wish){ .names = "DNS:other.test" }, NULL, NULL, NAMES);
	assert_refused(&(struct tlscert_wish){ .subject = "server.test" }, NULL, NULL, NAMES);
	assert_refused(&(struct tlscert_wish){ .dns = { "server.test\0.evil.test", 22 } }, NULL,
		       NULL, NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test.evil.test" }, NULL, NULL,
		       NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:test" }, NULL, NULL, NAMES);
	assert_taken(&(struct tlscert_wish){ .names = "DNS:other.test,DNS:SERVER.test" }, NULL,
		     NULL);
}

TEST(wildcard_stands_for_one_whole_label)
{
	assert_taken(&(struct tlscert_wish){ .names = "DNS:*.b.test" }, "a.b.test", NULL);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:*.b.test" }, "a.a.b.test", NULL,
		       NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:*.b.test" }, "b.test", NULL, NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:s*.b.test" }, "s1.b.test", NULL,
		       NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:*.b.test" }, "*.b.test", NULL, NAMES);
}

TEST(address_is_compared_with_addresses_only)
{
	assert_taken(&(struct tlscert_wish){ .names = "IP:127.0.0.1" }, "127.0.0.1", NULL);
	assert_taken(&(struct tlscert_wish){ .names = "IP:::1" }, "::1", NULL);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:127.0.0.1" }, "127.0.0.1", NULL,
		       NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "IP:127.0.0.2" }, "127.0.0.1", NULL, NAMES);
}

TEST(host_without_a_name_is_never_right)
{
	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test" }, "", NULL, NAMES);
	assert_refused(&(struct tlscert_wish){ .names = "DNS:server.test" }, ".test", NULL, NAMES);
}

TEST(expected_names_take_the_place_of_the_host)
{
	const struct tlscert_wish wish = { .names = "DNS:a.test,URI:spiffe://a/b,IP:10.0.0.1" };

	assert_taken(&wish, "10.9.9.9", "dns:a.test");
	assert_taken(&wish, "10.9.9.9", "dns:z.test,uri:spiffe://a/b");
	assert_taken(&wish, "10.9.9.9", "ip:10.0.0.1");
	assert_refused(&wish, "a.test", "dns:z.test", NAMES);
	assert_refused(&wish, "a.test", "uri:spiffe://a/bc", NAMES);
	assert_refused(&wish, "a.test", "uri:spiffe://a/", NAMES);
	assert_refused(&wish, "a.test", "uri:SPIFFE://a/b", NAMES);
	assert_refused(&wish, "a.test", "dns:10.0.0.1", NAMES);
}

TEST(list_of_expected_names_that_checks_nothing_is_no_list)
{
	static const char *const lists[] = { "",
					     ",",
					     "dns:",
					     "ip:",
					     "ip:a",
					     "uri:",
					     "a.test",
					     "dns:*",
					     "dns:*.test",
					     "dns:.test",
					     "dns:a.test,dns:",
					     "dns:a.test:20880",
					     "DNS:a.test" };
	char why[SPOKEI_TLS_WHY];

	tlsrig_begin(&rig, &(struct tlsrig_setting){ .accepts = false });
	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		const struct spokei_tls_options options = { .ca = "authority", .peers = lists[i] };
		struct spokei_tls *tls = NULL;

		if (spokei_tls_new(rig.engine, &options, why, &tls) != SPOKE_EINVAL)
			fail_msg("\"%s\" is taken", lists[i]);
		assert_non_null(strstr(why, "tls.peers"));
	}
	tlsrig_end(&rig);
}

static const char *server_name(struct tlsrig *of)
{
	return SSL_get_servername(of->peer, TLSEXT_NAMETYPE_host_name);
}

TEST(server_name_is_sent_for_names_only)
{
	struct tlsrig_setting setting = { .host = "server.test" };

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_string_equal(server_name(&rig), "server.test");
	tlsrig_end(&rig);
	setting.host = "127.0.0.1";
	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_null(server_name(&rig));
	tlsrig_end(&rig);
}

/* --- certificates of those who connect */

static void assert_consumer(struct tlsrig_setting setting, const char *expected, int alert)
{
	setting.accepts = true;
	tlsrig_begin(&rig, &setting);
	tlsrig_shake(&rig);
	tlsrig_step(&rig);
	if (rig.peer_status == SSL_ERROR_NONE) { /* it is done before the provider has judged */
		unsigned char byte;

		(void)tlsrig_peer_read(&rig, &byte, 1);
	}
	if (expected) {
		assert_int_not_equal(rig.status, 0);
		if (strstr(rig.tls->why, expected) == NULL)
			fail_msg("\"%s\" does not say \"%s\"", rig.tls->why, expected);
		assert_int_equal(rig.alert, alert);
	} else {
		assert_int_equal(rig.status, 0);
	}
	tlsrig_end(&rig);
}

TEST(consumer_has_to_show_a_good_certificate_if_asked)
{
	const struct tlsrig_certs *certs = tlsrig_certs();
	struct tlscert stranger = tlscert_make(
		&(struct tlscert_wish){ .subject = "x", .issuer = &certs->stranger });
	const struct tlsrig_setting none = { .peer_has_none = true };
	struct tlsrig_setting setting = none;

	assert_consumer(setting, NULL, 0);
	setting.verify = SPOKE_TLS_VERIFY_OPTIONAL;
	assert_consumer(setting, NULL, 0);
	setting.verify = SPOKE_TLS_VERIFY_REQUIRED;
	assert_consumer(setting, "did not return a certificate", ALERT_CERTIFICATE_REQUIRED);
	setting = (struct tlsrig_setting){ .peer = &stranger, .verify = SPOKE_TLS_VERIFY_REQUIRED };
	assert_consumer(setting, "unable to get local issuer", ALERT_UNKNOWN_CA);
	setting.verify = SPOKE_TLS_VERIFY_OPTIONAL;
	assert_consumer(setting, "unable to get local issuer", ALERT_UNKNOWN_CA);
	setting = (struct tlsrig_setting){ .verify = SPOKE_TLS_VERIFY_REQUIRED };
	assert_consumer(setting, NULL, 0);
	tlscert_free(&stranger);
}

TEST(revoked_certificate_is_refused)
{
	const struct tlsrig_certs *certs = tlsrig_certs();
	struct tlsrig_setting setting = { .verify = SPOKE_TLS_VERIFY_REQUIRED,
					  .revoked = &certs->client };

	assert_consumer(setting, "revoked", ALERT_REVOKED);
	setting.revoked = &certs->server;
	assert_consumer(setting, NULL, 0);
	setting = (struct tlsrig_setting){ .revoked = &certs->server };
	tlsrig_begin(&rig, &setting);
	tlsrig_shake(&rig);
	tlsrig_hang_up(&rig);
	assert_true(rig.status < 0);
	assert_non_null(strstr(rig.tls->why, "revoked"));
	tlsrig_end(&rig);
}

TEST(consumer_is_told_the_alert_of_the_provider)
{
	for (unsigned wrong = 0; wrong < 2; wrong++) {
		tlsrig_begin(&rig, &(struct tlsrig_setting){ .accepts = false });
		SSL_set_verify(rig.peer, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
		if (wrong)
			X509_VERIFY_PARAM_set_time(SSL_get0_param(rig.peer), -86400);
		tlsrig_shake(&rig);
		assert_int_equal(rig.status, 0); /* a consumer is done before it is judged */
		tlsrig_pass(&rig);
		if (wrong)
			assert_non_null(rig.stream.kind->why(&rig.stream));
		assert_int_equal(rig.ended < 0, wrong);
		tlsrig_end(&rig);
	}
}

/* --- names */

static void assert_names(const struct tlscert_wish *wish, const char *const *names, size_t count)
{
	struct tlscert_wish of = *wish;
	const struct spoke_span *spans;
	struct tlscert cert;
	struct tlsrig_setting setting = { .accepts = true,
					  .verify = SPOKE_TLS_VERIFY_REQUIRED,
					  .peer = &cert };

	of.issuer = &tlsrig_certs()->authority;
	cert = tlscert_make(&of);
	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_int_equal(spokei_stream_names(&rig.stream, &spans), count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(spans[i].len, strlen(names[i]));
		assert_memory_equal(spans[i].data, names[i], spans[i].len);
	}
	tlsrig_end(&rig);
	tlscert_free(&cert);
}

TEST(peer_is_known_by_the_names_of_its_certificate)
{
	static const char *const names[] = { "dns:a.test", "uri:spiffe://a/b", "ip:10.0.0.1" };
	static const char *const addresses[] = { "ip:2001:db8::1", "ip:::1" };

	assert_names(&(struct tlscert_wish){ .subject = "cn",
					     .names = "DNS:a.test,URI:spiffe://a/b,IP:10.0.0.1,"
						      "email:a@b.test" },
		     names, 3);
	assert_names(&(struct tlscert_wish){ .names =
						     "IP:2001:db8:0:0:0:0:0:1,IP:0:0:0:0:0:0:0:1" },
		     addresses, 2);
	assert_names(&(struct tlscert_wish){ .subject = "cn" }, NULL, 0);
	assert_names(&(struct tlscert_wish){ .dns = { "a.test\0.evil", 12 } }, NULL, 0);
	assert_names(&(struct tlscert_wish){ .dns = { "a.test\nb", 8 } }, NULL, 0);
}

TEST(peer_without_a_certificate_has_no_name)
{
	const struct tlsrig_setting setting = { .accepts = true, .peer_has_none = true };
	const struct spoke_span *spans;

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_int_equal(spokei_stream_names(&rig.stream, &spans), 0);
	tlsrig_end(&rig);
}

TEST(certificate_that_nobody_has_asked_for_gives_no_name)
{
	const struct tlsrig_setting setting = { .accepts = true };
	const struct spoke_span *spans;

	tlsrig_begin(&rig, &setting);
	tlsrig_open(&rig);
	assert_int_equal(spokei_stream_names(&rig.stream, &spans), 0);
	tlsrig_end(&rig);
}
