/* SPDX-License-Identifier: Apache-2.0 */
/* The consequence of each error reply, and the text that users see. */
#include "cluster/lease/script.h"
#include "tests/support/test.h"

#include <stdlib.h>

#include <string.h>

#define OLD "ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): "

static struct spoke_span span(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

TEST(error_codes_have_their_consequences)
{
	static const struct {
		const char *text;
		enum spokei_refusal refusal;
	} rows[] = {
		{ "BUSY Redis is busy running a script.", SPOKEI_REFUSAL_AGAIN },
		{ "LOADING Redis is loading the dataset in memory", SPOKEI_REFUSAL_AGAIN },
		{ "OOM command not allowed when used memory > 'maxmemory'.", SPOKEI_REFUSAL_AGAIN },
		{ "MISCONF Redis is configured to save RDB snapshots", SPOKEI_REFUSAL_AGAIN },
		{ "MASTERDOWN Link with MASTER is down", SPOKEI_REFUSAL_AGAIN },
		{ "TRYAGAIN Multiple keys request during rehashing", SPOKEI_REFUSAL_AGAIN },
		{ "CLUSTERDOWN The cluster is down", SPOKEI_REFUSAL_AGAIN },
		{ "NOREPLICAS Not enough good replicas to write.", SPOKEI_REFUSAL_AGAIN },
		{ "NOSCRIPT No matching script.", SPOKEI_REFUSAL_RELOAD },
		{ "READONLY You can't write against a read only replica.",
		  SPOKEI_REFUSAL_ELSEWHERE },
		{ "READONLY", SPOKEI_REFUSAL_ELSEWHERE },
		{ "WRONGTYPE Operation against a key", SPOKEI_REFUSAL_REFUSED },
		{ "NOPERM this user has no permissions", SPOKEI_REFUSAL_REFUSED },
		{ "NOAUTH Authentication required.", SPOKEI_REFUSAL_REFUSED },
		{ "MOVED 3999 127.0.0.1:6381", SPOKEI_REFUSAL_REFUSED },
		{ "ERR unknown command", SPOKEI_REFUSAL_REFUSED },
		{ "BUSYGROUP Consumer Group name already exists", SPOKEI_REFUSAL_REFUSED },
		{ "BUS", SPOKEI_REFUSAL_REFUSED },
		{ "", SPOKEI_REFUSAL_REFUSED },
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(spokei_refusal_of(span(rows[i].text)), rows[i].refusal);
}

TEST(error_inside_of_a_script_error_counts)
{
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:3: @user_script: 3: -READONLY "
						    "You can't")),
			 SPOKEI_REFUSAL_ELSEWHERE);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1: OOM command not allowed")),
			 SPOKEI_REFUSAL_AGAIN);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1: WRONGTYPE Operation")),
			 SPOKEI_REFUSAL_REFUSED);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1")), SPOKEI_REFUSAL_REFUSED);
	assert_int_equal(spokei_refusal_of(span(OLD "@user_script:1: ")), SPOKEI_REFUSAL_REFUSED);
}

static void assert_shown(const char *text, const char *expected)
{
	struct spoke_span shown = spokei_refusal_text(span(text));

	assert_int_equal(shown.len, strlen(expected));
	assert_memory_equal(shown.data, expected, shown.len);
}

TEST(shown_text_is_that_of_the_failed_command)
{
	assert_shown("WRONGTYPE Operation", "WRONGTYPE Operation");
	assert_shown(OLD "@user_script:1: -WRONGTYPE Operation", "WRONGTYPE Operation");
	assert_shown(OLD "@user_script:1: ", OLD "@user_script:1: ");
	assert_shown("MOVED 3999 127.0.0.1:6381",
		     "the store is a node of a Redis cluster, which is not supported");
	assert_shown("ASK 3999 127.0.0.1:6381",
		     "the store is a node of a Redis cluster, which is not supported");
}
