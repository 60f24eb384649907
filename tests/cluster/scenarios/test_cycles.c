/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with a cycle of references, as a Java consumer sends them. */
#include "tests/cluster/scenarios/linkrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

#define HEAD 16u
#define CYCLE "\x79Q\x90" /* a list that contains itself */

static const char request_with_cycle[] = "\x05"
					 "2.0.2"
					 "\x09"
					 "demo.Echo"
					 "\x05"
					 "0.0.0"
					 "\x04"
					 "echo"
					 "\x10Ljava/util/List;" CYCLE "HZ";

/* A reply that the peer has read. */
struct kept {
	unsigned replies;
	int error;
	char text[80];
};

static void keep(void *arg, struct peer_conn *conn, const struct spokei_message *message)
{
	struct kept *kept = arg;

	(void)conn;
	kept->replies += message->kind == SPOKEI_REPLY;
	kept->error = message->error;
	(void)snprintf(kept->text, sizeof(kept->text), "%.*s", (int)message->error_text.len,
		       (const char *)message->error_text.data);
}

/* Sends a request with a cycle and reads the reply. */
static void request_cycle(const struct spoke_provider_options *options, struct kept *ret)
{
	unsigned char frame[HEAD + sizeof(request_with_cycle) - 1] = { 0xda, 0xbb, 0xc2 };

	linkrig_provide("dubbo", options);
	linkrig_connect();
	frame[11] = 7;
	frame[15] = sizeof(frame) - HEAD;
	memcpy(frame + HEAD, request_with_cycle, sizeof(frame) - HEAD);
	linkrig_write(frame, sizeof(frame));
	linkrig_pass(10 * MS);
	peer_read(&linkrig.conn, keep, ret);
}

FIXTURE(linkrig_set_up, linkrig_tear_down);

TEST(cycle_in_request_is_status_40_with_reason)
{
	struct kept kept = { 0 };

	request_cycle(&(struct spoke_provider_options){ 0 }, &kept);
	assert_int_equal(kept.error, SPOKE_EBADREQUEST);
	assert_string_equal(kept.text, spoke_strerror(SPOKE_ECYCLE));
	assert_int_equal(spoke_provider_connections(linkrig.provider), 1);
}

TEST(cycle_in_request_is_accepted_if_allowed)
{
	struct kept kept = { 0 };

	request_cycle(&(struct spoke_provider_options){ .values_cycles = true }, &kept);
	assert_int_equal(kept.error, 0);
	assert_int_equal(kept.replies, 1);
}
