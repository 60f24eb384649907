/* SPDX-License-Identifier: Apache-2.0 */
/* Tests the HTTP client of `spoke top`. */
#include "core/virtual/world.h"
#include "examples/spoke/http_get.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OK "HTTP/1.1 200 OK\r\n"

/* --- parsing answers */

struct read_case {
	const char *answer;
	bool over;
	const char *what; /* result of http_answer_read() */
	const char *body;
};

static const struct read_case cases[] = {
	{ OK "Content-Length: 2\r\n\r\n{}", false, "", "{}" },
	{ OK "content-length:2\r\n\r\n{}and more", false, "", "{}" },
	{ OK "X: y\r\nContent-Length:  2\r\nZ: \r\n\r\n{}", false, "", "{}" },
	{ OK "\r\n{\"a\":1}", true, "", "{\"a\":1}" },
	{ OK "Content-Length: 0\r\n\r\n", false, "", "" },
	{ OK "\r\n{\"a\":1}", false, NULL, NULL },
	{ OK "Content-Length: 9\r\n\r\n{}", false, NULL, NULL },
	{ OK "Content-Length: 9\r\n\r\n{}", true, "incomplete answer", NULL },
	{ OK "Content-Len", false, NULL, NULL },
	{ OK "Content-Len", true, "not an HTTP server", NULL },
	{ "", true, "connection closed without an answer", NULL },
	{ "SSH-2.0\r\n\r\n", false, "not an HTTP server", NULL },
	{ "HTTP/1.1 503 Service Unavailable\r\n\r\n", true,
	  "HTTP status is not 200; is this the address of an admin page?", NULL },
	{ "HTTP/1.1 401 Unauthorized\r\n\r\n", true,
	  "the page requires its token; see --token-file", NULL },
	{ "HTTP/1.1 404 Not Found\r\n\r\n", true,
	  "HTTP status 404: no admin page, or its process has no provider", NULL },
	{ "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n", false, "", "" },
	{ OK "Content-Length: -1\r\n\r\n{}", true, "invalid Content-Length or Transfer-Encoding",
	  NULL },
	{ OK "Content-Length: 99999999999\r\n\r\n{}", true,
	  "invalid Content-Length or Transfer-Encoding", NULL },
	{ OK "Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ", true,
	  "invalid Content-Length or Transfer-Encoding", NULL },
	{ OK "Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true,
	  "invalid Content-Length or Transfer-Encoding", NULL },
};

TEST(answer_is_parsed_or_rejected)
{
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const struct read_case *one = &cases[i];
		char *bytes = strdup(one->answer);
		char *body = NULL;
		size_t len = 0;
		const char *what;

		assert_non_null(bytes);
		what = http_answer_read(bytes, strlen(bytes), one->over, &body, &len);
		if (one->what == NULL)
			assert_null(what);
		else
			assert_string_equal(what, one->what);
		if (one->body) {
			assert_string_equal(body, one->body);
			assert_int_equal(len, strlen(one->body));
		}
		free(bytes);
	}
}

/* --- over a network */

struct stage {
	struct spokei_world world;
	struct spokei_world_process client;
	struct spokei_world_process page;
	struct spoke_engine *engine;
	struct spoke_address at;
	struct http_get get;
	int listener;
	unsigned answers;
	char what[128];
	char body[128];
};

static void done(struct http_get *get, const char *what, char *body, size_t len)
{
	struct stage *stage = spoke_container_of(get, struct stage, get);

	stage->answers++;
	(void)snprintf(stage->what, sizeof(stage->what), "%s", what ? what : "");
	(void)snprintf(stage->body, sizeof(stage->body), "%.*s", (int)len, body ? body : "");
}

static void go(struct stage *stage, uint64_t ns)
{
	spokei_world_run(&stage->world, stage->world.now_ns + ns);
}

static void set_up(struct stage *stage)
{
	*stage = (struct stage){ .listener = -1 };
	scene_open(&stage->world, 7);
	stage->engine = scene_engine(&stage->world, &stage->client, NULL, NULL);
	spokei_world_process_init(&stage->page, &stage->world);
	assert_int_equal(stage->page.env.net->parse(stage->page.env.ctx, "mem:page", &stage->at),
			 0);
	assert_int_equal(stage->page.env.net->listen(stage->page.env.ctx, &stage->at, 8,
						     &stage->listener),
			 0);
	stage->get.engine = stage->engine;
	stage->get.env = &stage->client.env;
	stage->get.done = done;
}

static void tear_down(struct stage *stage)
{
	http_get_end(&stage->get);
	scene_leave(&stage->client, NULL, &stage->engine);
	scene_kill(&stage->page);
	spokei_world_fini(&stage->world);
}

static int ask(struct stage *stage)
{
	int fd;

	assert_null(http_get_begin(&stage->get, &stage->at, "page", "/status", 100 * MS));
	assert_int_equal(stage->answers, 0);
	go(stage, MS);
	fd = scene_accept(&stage->page.env, stage->listener);
	assert_true(fd >= 0);
	return fd;
}

static void answer(struct stage *stage, int fd, const char *text, size_t len)
{
	scene_write(&stage->page.env, fd, text, len);
	go(stage, MS);
}

TEST(answer_split_at_any_byte_gives_the_body)
{
	static const char text[] = OK "Content-Length: 7\r\n\r\n{\"a\":1}";

	for (size_t cut = 1; cut < sizeof(text) - 1; cut++) {
		struct stage stage;
		char request[128] = "";
		int fd;

		set_up(&stage);
		fd = ask(&stage);
		assert_true(stage.page.env.net->read(stage.page.env.ctx, fd, request,
						     sizeof(request) - 1) > 0);
		assert_string_equal(request, "GET /status HTTP/1.1\r\nHost: page\r\n"
					     "Connection: close\r\n\r\n");
		answer(&stage, fd, text, cut);
		assert_int_equal(stage.answers, 0);
		answer(&stage, fd, text + cut, sizeof(text) - 1 - cut);
		assert_int_equal(stage.answers, 1);
		assert_string_equal(stage.what, "");
		assert_string_equal(stage.body, "{\"a\":1}");
		tear_down(&stage);
	}
}

TEST(server_that_does_not_answer_is_given_up)
{
	struct stage stage;
	int fd;

	set_up(&stage);
	fd = ask(&stage);
	answer(&stage, fd, OK, strlen(OK));
	go(&stage, 200 * MS);
	assert_int_equal(stage.answers, 1);
	assert_string_equal(stage.what, "timeout");
	assert_true(stage.get.timed_out);
	tear_down(&stage);
}

TEST(refused_connection_is_reported)
{
	struct stage stage;

	set_up(&stage);
	spokei_vnet_route(stage.world.net, "mem:page", SPOKEI_VNET_REFUSE);
	assert_null(http_get_begin(&stage.get, &stage.at, "page", "/status", 100 * MS));
	go(&stage, MS);
	assert_int_equal(stage.answers, 1);
	assert_string_equal(stage.what, strerror(ECONNREFUSED));
	tear_down(&stage);
}

TEST(answer_without_end_is_rejected_at_limit)
{
	static const char line[256] = OK "\r\n";
	struct stage stage;
	uint64_t sent = 0;
	int fd;

	set_up(&stage);
	fd = ask(&stage);
	answer(&stage, fd, line, strlen(line));
	while (stage.answers == 0) {
		static char spaces[65536];
		struct iovec part = { spaces, sizeof(spaces) };
		ssize_t taken = stage.page.env.net->write(stage.page.env.ctx, fd, &part, 1);

		sent += taken > 0 ? (uint64_t)taken : 0;
		assert_true(sent <= 2 * HTTP_GET_MAX);
		go(&stage, MS / 10);
	}
	assert_string_equal(stage.what, "answer too long");
	tear_down(&stage);
}
