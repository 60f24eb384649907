/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls through a client: answers, errors with a cause, and the end. */
#include "tests/cluster/consumer/futurerig.h"
#include "tests/support/test.h"

#include <spoke/client.h>

#include <stdio.h>

static struct spoke_client *dial(struct rig *rig, const char *query)
{
	struct spoke_client_options options = { .env = &rig->client_env };
	struct spoke_client *client;
	char url[256];

	(void)snprintf(url, sizeof(url), "%s%s", rig->url, query);
	assert_int_equal(spoke_dial_with(url, &options, &client), SPOKE_OK);
	assert_string_equal(spoke_client_why(client), "");
	return client;
}

/* --- answers */

TEST(three_lines_ask_and_read)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	char text[8];
	struct rig rig;

	futurerig_set_up(&rig, RIG_TCP);
	assert_int_equal(spoke_dial(rig.url, &client), SPOKE_OK);
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi", 42), &answer), SPOKE_OK);
	assert_int_equal(SPOKE_READ_ANSWER(&answer, SPOKE_TEXT(text)), SPOKE_OK);
	assert_string_equal(text, "hi");
	assert_string_equal(answer.why, "");
	assert_int_equal(spoke_future_result(answer.future)->attempts, 1);
	spoke_answer_free(&answer);
	spoke_answer_free(&answer);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

TEST(answer_outlives_its_client)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct spoke_span text;
	struct rig rig;

	futurerig_set_up(&rig, RIG_UNIX);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("kept"), &answer), SPOKE_OK);
	spoke_client_free(client);
	assert_int_equal(SPOKE_READ_ANSWER(&answer, &text), SPOKE_OK);
	assert_memory_equal(text.data, "kept", 4);
	spoke_answer_free(&answer);
	futurerig_tear_down(&rig);
}

TEST(answer_of_another_type_has_a_sentence)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;
	int number;

	futurerig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer), SPOKE_OK);
	assert_int_equal(SPOKE_READ_ANSWER(&answer, &number), SPOKE_ETYPE);
	assert_string_equal(answer.why, "integer wanted, text came");
	spoke_answer_free(&answer);
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), NULL), SPOKE_OK);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

/* --- errors */

TEST(handler_error_is_named)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;
	int number;

	futurerig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "fail", SPOKE_NO_ARGS, &answer), SPOKE_EREMOTE);
	assert_non_null(strstr(answer.why, "it failed"));
	assert_int_equal(SPOKE_READ_ANSWER(&answer, &number), SPOKE_EREMOTE);
	assert_int_equal(spoke_future_result(answer.future)->error_code, 7);
	spoke_answer_free(&answer);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

TEST(invalid_url_answers_every_call_with_its_cause)
{
	struct spoke_client *client;
	struct spoke_answer answer;

	assert_int_equal(spoke_dial("dubbo://127.0.0.1:1/demo.X?timeout=soon", &client),
			 SPOKE_ESYNTAX);
	assert_non_null(strstr(spoke_client_why(client), "timeout=soon"));
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer), SPOKE_ESYNTAX);
	assert_non_null(strstr(answer.why, "timeout=soon"));
	spoke_answer_free(&answer);
	spoke_client_free(client);
	assert_int_equal(spoke_dial(NULL, &client), SPOKE_EINVAL);
	assert_true(strlen(spoke_client_why(client)) > 0);
	spoke_client_free(client);
	spoke_client_free(NULL);
}

TEST(absent_peer_is_an_error_of_the_call)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;

	futurerig_set_up(&rig, RIG_UNIX);
	(void)snprintf(rig.url, sizeof(rig.url), "unix:%s/none?interface=demo.Future", rig.folder);
	client = dial(&rig, "");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer),
				 SPOKE_EUNAVAILABLE);
		assert_non_null(strstr(answer.why, "/none: No such file or directory (ENOENT)"));
		spoke_answer_free(&answer);
	}
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

TEST(silent_peer_ends_with_the_timeout)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;

	futurerig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "?hold.timeout=30ms&hold.retries=0");
	assert_int_equal(spoke_ask(client, "hold", SPOKE_NO_ARGS, &answer), SPOKE_ETIMEOUT);
	assert_non_null(strstr(answer.why, "written after"));
	spoke_answer_free(&answer);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

TEST(invalid_arguments_are_refused)
{
	const char *nothing = NULL;
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;

	futurerig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS(nothing), &answer), SPOKE_EINVAL);
	assert_true(strlen(answer.why) > 0);
	assert_null(answer.future);
	assert_int_equal(spoke_ask(client, NULL, SPOKE_NO_ARGS, &answer), SPOKE_EINVAL);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

TEST(number_of_methods_is_bounded)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;
	char name[16];

	futurerig_set_up(&rig, RIG_UNIX);
	client = dial(&rig, "");
	for (unsigned i = 0; i < SPOKE_CLIENT_METHODS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		assert_int_not_equal(spoke_ask(client, name, SPOKE_NO_ARGS, NULL), SPOKE_ELIMIT);
	}
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer), SPOKE_ELIMIT);
	assert_non_null(strstr(answer.why, "at most 1024 different methods"));
	assert_int_not_equal(spoke_ask(client, "m7", SPOKE_NO_ARGS, NULL), SPOKE_ELIMIT);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}

/* --- the environment */

TEST(missing_memory_is_reported_at_every_place)
{
	struct rig rig;
	int left = 0;

	futurerig_set_up(&rig, RIG_UNIX);
	for (int nth = 1; left == 0; nth++) {
		struct spoke_client_options options = { .env = &rig.client_env };
		struct spoke_client *client;
		struct spoke_answer answer;
		int error;

		futurerig_fail_memory(nth);
		error = spoke_dial_with(rig.url, &options, &client);
		if (error == SPOKE_OK)
			error = spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer);
		else
			assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer),
					 SPOKE_ENOMEM);
		left = futurerig_fail_memory(0);
		if (left)
			assert_int_equal(error, SPOKE_OK);
		else /* without memory for a connection there is none for now */
			assert_true(error == SPOKE_ENOMEM || error == SPOKE_EUNAVAILABLE);
		assert_int_equal(answer.error, error);
		assert_true((error == SPOKE_OK) == (answer.why[0] == '\0'));
		spoke_answer_free(&answer);
		spoke_client_free(client);
	}
	futurerig_tear_down(&rig);
}

TEST(environment_without_threads_is_refused)
{
	struct spoke_client *client;
	struct rig rig;

	futurerig_set_up(&rig, RIG_UNIX);
	{
		struct spoke_env env = rig.client_env;
		struct spoke_client_options options = { .env = &env };

		env.threads = NULL;
		assert_int_equal(spoke_dial_with(rig.url, &options, &client), SPOKE_EUNSUPPORTED);
		assert_non_null(strstr(spoke_client_why(client), "no threads"));
		spoke_client_free(client);
	}
	futurerig_tear_down(&rig);
}

TEST(settings_file_with_errors_is_the_cause)
{
	struct spoke_client_options options = { .config = "/nonexistent/spoke.conf" };
	struct spoke_client *client;

	assert_int_equal(spoke_dial_with("consumer://any/demo.X", &options, &client), SPOKE_ENOENT);
	assert_non_null(strstr(spoke_client_why(client), "/nonexistent/spoke.conf"));
	spoke_client_free(client);
	options = (struct spoke_client_options){ .log = "loud" };
	assert_int_equal(spoke_dial_with("dubbo://127.0.0.1:1/demo.X", &options, &client),
			 SPOKE_EINVAL);
	spoke_client_free(client);
}

TEST(forked_child_cannot_ask)
{
	struct spoke_client *client;
	struct rig rig;

	futurerig_set_up(&rig, RIG_UNIX);
	client = dial(&rig, "");
	rig.forks++;
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), NULL), SPOKE_EFORKED);
	rig.forks--;
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), NULL), SPOKE_OK);
	spoke_client_free(client);
	futurerig_tear_down(&rig);
}
