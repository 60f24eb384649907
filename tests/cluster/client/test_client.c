/* SPDX-License-Identifier: Apache-2.0 */
/* Blocking calls through a client: answers, errors with a cause, and the end. */
#include "tests/cluster/consumer/futurerig.h"

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

static void three_lines_ask_and_read(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	char text[8];
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_TCP);
	assert_int_equal(spoke_dial(rig.url, &client), SPOKE_OK);
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi", 42), &answer), SPOKE_OK);
	assert_int_equal(SPOKE_READ_ANSWER(&answer, SPOKE_TEXT(text)), SPOKE_OK);
	assert_string_equal(text, "hi");
	assert_string_equal(answer.why, "");
	assert_int_equal(spoke_future_result(answer.future)->attempts, 1);
	spoke_answer_free(&answer);
	spoke_answer_free(&answer);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

static void answer_outlives_its_client(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct spoke_span text;
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_UNIX);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("kept"), &answer), SPOKE_OK);
	spoke_client_free(client);
	assert_int_equal(SPOKE_READ_ANSWER(&answer, &text), SPOKE_OK);
	assert_memory_equal(text.data, "kept", 4);
	spoke_answer_free(&answer);
	rig_tear_down(&rig);
}

static void answer_of_another_type_has_a_sentence(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;
	int number;

	(void)state;
	rig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer), SPOKE_OK);
	assert_int_equal(SPOKE_READ_ANSWER(&answer, &number), SPOKE_ETYPE);
	assert_string_equal(answer.why, "integer wanted, text came");
	spoke_answer_free(&answer);
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), NULL), SPOKE_OK);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

/* --- errors */

static void handler_error_is_named(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;
	int number;

	(void)state;
	rig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "fail", SPOKE_NO_ARGS, &answer), SPOKE_EREMOTE);
	assert_non_null(strstr(answer.why, "it failed"));
	assert_int_equal(SPOKE_READ_ANSWER(&answer, &number), SPOKE_EREMOTE);
	assert_int_equal(spoke_future_result(answer.future)->error_code, 7);
	spoke_answer_free(&answer);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

static void invalid_url_answers_every_call_with_its_cause(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;

	(void)state;
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

static void absent_peer_is_an_error_of_the_call(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_UNIX);
	(void)snprintf(rig.url, sizeof(rig.url), "unix:%s/none?interface=demo.Future", rig.folder);
	client = dial(&rig, "");
	for (int i = 0; i < 3; i++) {
		assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer),
				 SPOKE_EUNAVAILABLE);
		assert_non_null(strstr(answer.why, "/none: No such file or directory (ENOENT)"));
		spoke_answer_free(&answer);
	}
	spoke_client_free(client);
	rig_tear_down(&rig);
}

static void silent_peer_ends_with_the_timeout(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "?hold.timeout=30ms&hold.retries=0");
	assert_int_equal(spoke_ask(client, "hold", SPOKE_NO_ARGS, &answer), SPOKE_ETIMEOUT);
	assert_non_null(strstr(answer.why, "written after"));
	spoke_answer_free(&answer);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

static void invalid_arguments_are_refused(void **state)
{
	const char *nothing = NULL;
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_TCP);
	client = dial(&rig, "");
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS(nothing), &answer), SPOKE_EINVAL);
	assert_true(strlen(answer.why) > 0);
	assert_null(answer.future);
	assert_int_equal(spoke_ask(client, NULL, SPOKE_NO_ARGS, &answer), SPOKE_EINVAL);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

static void number_of_methods_is_bounded(void **state)
{
	struct spoke_client *client;
	struct spoke_answer answer;
	struct rig rig;
	char name[16];

	(void)state;
	rig_set_up(&rig, RIG_UNIX);
	client = dial(&rig, "");
	for (unsigned i = 0; i < SPOKE_CLIENT_METHODS_MAX; i++) {
		(void)snprintf(name, sizeof(name), "m%u", i);
		assert_int_not_equal(spoke_ask(client, name, SPOKE_NO_ARGS, NULL), SPOKE_ELIMIT);
	}
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer), SPOKE_ELIMIT);
	assert_non_null(strstr(answer.why, "at most 1024 different methods"));
	assert_int_not_equal(spoke_ask(client, "m7", SPOKE_NO_ARGS, NULL), SPOKE_ELIMIT);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

/* --- the environment */

static void missing_memory_is_reported_at_every_place(void **state)
{
	struct rig rig;
	int left = 0;

	(void)state;
	rig_set_up(&rig, RIG_UNIX);
	for (int nth = 1; left == 0; nth++) {
		struct spoke_client_options options = { .env = &rig.client_env };
		struct spoke_client *client;
		struct spoke_answer answer;
		int error;

		rig_fail_memory(nth);
		error = spoke_dial_with(rig.url, &options, &client);
		if (error == SPOKE_OK)
			error = spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer);
		else
			assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), &answer),
					 SPOKE_ENOMEM);
		left = rig_fail_memory(0);
		if (left)
			assert_int_equal(error, SPOKE_OK);
		else /* without memory for a connection there is none for now */
			assert_true(error == SPOKE_ENOMEM || error == SPOKE_EUNAVAILABLE);
		assert_int_equal(answer.error, error);
		assert_true((error == SPOKE_OK) == (answer.why[0] == '\0'));
		spoke_answer_free(&answer);
		spoke_client_free(client);
	}
	rig_tear_down(&rig);
}

static void environment_without_threads_is_refused(void **state)
{
	struct spoke_client *client;
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_UNIX);
	{
		struct spoke_env env = rig.client_env;
		struct spoke_client_options options = { .env = &env };

		env.threads = NULL;
		assert_int_equal(spoke_dial_with(rig.url, &options, &client), SPOKE_EUNSUPPORTED);
		assert_non_null(strstr(spoke_client_why(client), "no threads"));
		spoke_client_free(client);
	}
	rig_tear_down(&rig);
}

static void settings_file_with_errors_is_the_cause(void **state)
{
	struct spoke_client_options options = { .config = "/nonexistent/spoke.conf" };
	struct spoke_client *client;

	(void)state;
	assert_int_equal(spoke_dial_with("consumer://any/demo.X", &options, &client), SPOKE_ENOENT);
	assert_non_null(strstr(spoke_client_why(client), "/nonexistent/spoke.conf"));
	spoke_client_free(client);
	options = (struct spoke_client_options){ .log = "loud" };
	assert_int_equal(spoke_dial_with("dubbo://127.0.0.1:1/demo.X", &options, &client),
			 SPOKE_EINVAL);
	spoke_client_free(client);
}

static void forked_child_cannot_ask(void **state)
{
	struct spoke_client *client;
	struct rig rig;

	(void)state;
	rig_set_up(&rig, RIG_UNIX);
	client = dial(&rig, "");
	rig.forks++;
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), NULL), SPOKE_EFORKED);
	rig.forks--;
	assert_int_equal(spoke_ask(client, "echo", SPOKE_ARGS("hi"), NULL), SPOKE_OK);
	spoke_client_free(client);
	rig_tear_down(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(three_lines_ask_and_read),
		cmocka_unit_test(answer_outlives_its_client),
		cmocka_unit_test(answer_of_another_type_has_a_sentence),
		cmocka_unit_test(handler_error_is_named),
		cmocka_unit_test(invalid_url_answers_every_call_with_its_cause),
		cmocka_unit_test(absent_peer_is_an_error_of_the_call),
		cmocka_unit_test(silent_peer_ends_with_the_timeout),
		cmocka_unit_test(invalid_arguments_are_refused),
		cmocka_unit_test(number_of_methods_is_bounded),
		cmocka_unit_test(missing_memory_is_reported_at_every_place),
		cmocka_unit_test(environment_without_threads_is_refused),
		cmocka_unit_test(settings_file_with_errors_is_the_cause),
		cmocka_unit_test(forked_child_cannot_ask),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
