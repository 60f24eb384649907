/* SPDX-License-Identifier: Apache-2.0 */
/* Requests as the URLs of providers ask for them: token, path and group. */
#include "tests/cluster/endpoints/dirrig.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static const struct spoke_consumer_options presets;

static void start(unsigned count, const char *parameters,
		  const struct spoke_consumer_options *options)
{
	for (unsigned i = 0; i < count; i++)
		dirrig_start(i);
	dirrig_consume(parameters, options);
	dirrig_beat(MS);
}

static void list_one(const char *url)
{
	LIST(url);
	dirrig_pass(10 * MS);
}

static bool has_sent(unsigned side, const char *text)
{
	return strstr(dirrig.sides[side].attachments, text) != NULL;
}

/* --- token */

FIXTURE(dirrig_set_up, dirrig_tear_down);

TEST(request_without_token_is_forbidden)
{
	dirrig.sides[0].token = "s3cretary";
	start(1, "", &presets);
	list_one(A);
	assert_int_equal(dirrig_call(), SPOKE_EFORBIDDEN);
	assert_int_equal(dirrig_served(0), 0);
}

TEST(consumer_sends_token_of_the_list)
{
	dirrig.sides[0].token = "s3cretary";
	start(1, "", &presets);
	list_one(A "?token=s3cretary");
	assert_int_equal(dirrig_call(), 0);
	assert_int_equal(dirrig_call(), 0);
	assert_true(has_sent(0, "\"token\": \"s3cretary\""));
}

TEST(wrong_tokens_are_refused)
{
	static const char *const wrong[] = {
		A "?token=s3cretarY",          A "?token=s3cretar", A "?token=s3cretaryy",
		A "?token=s3cretarys3cretary", A "?token=x",        A "?token=",
	};

	dirrig.sides[0].token = "s3cretary";
	start(1, "", &presets);
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		list_one(wrong[i]);
		assert_int_equal(dirrig_call(), SPOKE_EFORBIDDEN);
	}
	assert_int_equal(dirrig_served(0), 0);
	list_one(A "?token=s3cretary");
	assert_int_equal(dirrig_call(), 0);
}

TEST(each_provider_gets_its_own_token)
{
	dirrig.sides[0].token = "first-token";
	dirrig.sides[1].token = "second-token";
	start(3, "", &presets);
	LIST(A "?token=first-token", B "?token=second-token", C);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 6; i++)
		assert_int_equal(dirrig_call(), 0);
	assert_true(has_sent(0, "first-token"));
	assert_true(has_sent(1, "second-token"));
	assert_false(has_sent(2, "token"));
}

TEST(changed_token_replaces_endpoint)
{
	dirrig.sides[0].token = "new-token";
	start(1, "", &presets);
	list_one(A "?token=old-token&timestamp=1");
	assert_int_equal(dirrig_call(), SPOKE_EFORBIDDEN);
	list_one(A "?token=new-token&timestamp=2");
	assert_int_equal(dirrig_call(), 0);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_READY);
}

/* A provider that is killed and started again is listed twice for a while. */
TEST(newest_of_two_tokens_of_one_address_wins)
{
	static const char before[] = A "?token=old-token&timestamp=1";
	static const char after[] = A "?token=new-token&timestamp=2";

	dirrig.sides[0].token = "new-token";
	start(1, "", &presets);
	LIST(before, after);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	LIST(after, before);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	LIST(before);
	LIST(before, after);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 1);
}

/* Both URLs are listed until the session of the killed provider ends. */
TEST(double_listing_keeps_the_connection)
{
	static const char old_token[] = A "?token=old-token&timestamp=1";
	static const char old_heartbeat[] = A "?token=new-token&timestamp=1&heartbeat=5000";
	static const char after[] = A "?token=new-token&timestamp=2";
	uint64_t opened;

	dirrig.sides[0].token = "new-token";
	start(1, "", &presets);
	list_one(after);
	assert_int_equal(dirrig_call(), 0);
	opened = spoke_stat_get(dirrig.sides[0].engine, SPOKE_STAT_ACCEPTED);
	LIST(old_token, after);
	assert_int_equal(dirrig_info(0).state, SPOKE_ENDPOINT_READY);
	LIST(after, old_heartbeat);
	LIST(old_heartbeat, old_token, after);
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	assert_int_equal(spoke_stat_get(dirrig.sides[0].engine, SPOKE_STAT_ACCEPTED), opened);
	assert_int_equal(dirrig_info(0).calls, 2);
}

TEST(last_of_two_tokens_of_equal_age_wins)
{
	dirrig.sides[0].token = "new-token";
	start(1, "", &presets);
	LIST(A "?token=old-token", A "?token=new-token");
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), 0);
	LIST(A "?token=new-token", A "?token=old-token");
	dirrig_pass(10 * MS);
	assert_int_equal(dirrig_call(), SPOKE_EFORBIDDEN);
}

/* Whichever memory is lacking: a call is refused, or it has the token. */
TEST(call_after_enomem_sends_token)
{
	const struct spoke_span none = { NULL, 0 };

	start(1, "", &presets);
	list_one(A);
	assert_int_equal(dirrig_call(), 0);
	for (unsigned nth = 1; nth <= 4; nth++) {
		char url[64];
		char token[40];
		int error;

		(void)snprintf(url, sizeof(url), A "?token=s3cretary%u", nth);
		(void)snprintf(token, sizeof(token), "\"token\": \"s3cretary%u\"", nth);
		list_one(url);
		spokei_faults_fail(&dirrig.faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = spoke_call(dirrig.echo, none, NULL, NULL, NULL, NULL);
		spokei_faults_heal(&dirrig.faulty);
		if (error == SPOKE_OK) {
			dirrig_pass(110 * MS);
		} else {
			assert_int_equal(error, SPOKE_ENOMEM);
			assert_int_equal(dirrig_call(), 0);
		}
		assert_true(has_sent(0, token));
	}
}

TEST(token_of_excessive_length_is_not_sent)
{
	char url[600];
	int len = snprintf(url, sizeof(url), "%s?token=", A);

	memset(url + len, 'x', 257);
	url[len + 257] = '\0';
	start(1, "", &presets);
	list_one(url);
	assert_int_equal(dirrig_call(), 0);
	assert_false(has_sent(0, "token"));
	url[len + 256] = '\0';
	list_one(url);
	assert_int_equal(dirrig_call(), 0);
	assert_true(has_sent(0, "token"));
}

TEST(attachments_of_call_are_sent_with_token)
{
	static const unsigned char own[] = "\x82\xa1k\xa1v\xa5token\xa4mine";
	struct spoke_call_options options = {
		.attachments = { own, sizeof(own) - 1 },
	};
	const struct spoke_span none = { NULL, 0 };

	start(1, "", &presets);
	list_one(A "?token=listed");
	assert_int_equal(spoke_call(dirrig.echo, none, &options, NULL, NULL, NULL), 0);
	dirrig_pass(10 * MS);
	assert_true(has_sent(0, "\"k\": \"v\""));
	assert_true(has_sent(0, "mine"));
	assert_false(has_sent(0, "listed"));
	assert_int_equal(dirrig_call(), 0);
	assert_true(has_sent(0, "listed"));
	assert_false(has_sent(0, "mine"));
}

TEST(invalid_tokens_of_providers_are_rejected)
{
	static const char *const bad[] = {
		"",        "a b and more", "caf\xc3\xa9-caf\xc3\xa9", "tab\ttab-tab",
		"short12", "good-token,",
	};
	char lengthy[300];

	dirrig_consume("", &presets);
	memset(lengthy, 'x', 257);
	lengthy[257] = '\0';
	for (size_t i = 0; i <= sizeof(bad) / sizeof(bad[0]); i++) {
		struct spoke_provider_options options = { .token = lengthy };
		struct spoke_provider *provider;

		if (i > 0)
			options.token = bad[i - 1];
		assert_int_equal(spoke_provider_new(dirrig.engine, &options, &provider),
				 SPOKE_EINVAL);
	}
}

TEST(token_false_means_none)
{
	dirrig.sides[0].token = "false";
	start(1, "", &presets);
	list_one(A);
	assert_int_equal(dirrig_call(), 0);
}

TEST(random_token_is_required)
{
	dirrig.sides[0].token = "true";
	start(1, "", &presets);
	list_one(A "?token=true");
	assert_int_equal(dirrig_call(), SPOKE_EFORBIDDEN);
}

/* --- path */

#define AT_PATH "dubbo://127.0.0.1:20880/shop/echo?interface=demo.Echo"

TEST(requests_name_path_of_provider)
{
	dirrig.sides[0].service = "shop/echo";
	start(2, "", &presets);
	LIST(AT_PATH, B);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), 0);
	assert_int_equal(dirrig_served(0), 2);
	assert_int_equal(dirrig_served(1), 2);
	assert_true(has_sent(0, "\"path\": \"shop/echo\""));
	assert_true(has_sent(0, "\"interface\": \"demo.Echo\""));
	assert_false(has_sent(1, "path"));
}

TEST(unsent_requests_name_path_of_their_provider)
{
	dirrig.sides[0].service = "shop/echo";
	start(2, "", &presets);
	LIST(AT_PATH, B);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_try(SECOND), 0);
	dirrig_pass(20 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig.calls[i].error, 0);
	assert_int_equal(dirrig_served(0), 2);
}

/* --- group */

TEST(consumer_of_several_groups_calls_each)
{
	dirrig.sides[0].group = "g1";
	dirrig.sides[1].group = "g2";
	dirrig.sides[2].group = "g3";
	start(4, "?group=g1,g2", &presets);
	LIST(A "?group=g1", B "?group=g2", C "?group=g3", D);
	dirrig_pass(10 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_call(), 0);
	assert_int_equal(dirrig_served(0), 2);
	assert_int_equal(dirrig_served(1), 2);
	assert_int_equal(spoke_consumer_endpoints(dirrig.consumer, NULL, 0), 2);
}

TEST(unsent_requests_name_group_of_their_provider)
{
	dirrig.sides[0].group = "g1";
	dirrig.sides[1].group = "g2";
	start(2, "?group=*", &presets);
	LIST(A "?group=g1", B "?group=g2");
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig_try(SECOND), 0);
	dirrig_pass(20 * MS);
	for (int i = 0; i < 4; i++)
		assert_int_equal(dirrig.calls[i].error, 0);
	assert_int_equal(dirrig_served(0), 2);
	assert_int_equal(dirrig_served(1), 2);
}
