/* SPDX-License-Identifier: Apache-2.0 */
/* Gateways of three engines that have joined: pushes to one reach the users of all. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum {
	OTHERS = 2,
	LARGE = 1 << 20,
};

/* The gateways beside that of the rig, at the ports 8081 and 8082. */
static struct other {
	struct spokei_world_process process;
	struct spokei_faults faulty;
	struct spoke_engine *engine;
	struct spoke_comet *comet;
} others[OTHERS];

static void make(struct other *other, const char *listen)
{
	struct spoke_engine_options engine = { .env = &other->faulty.env };
	const struct spoke_comet_options options = {
		.listen = listen,
		.query_user = true,
		.shared = true,
		.message_max = 8 * LARGE,
		.any_client = true,
	};

	spokei_world_process_init(&other->process, &cometrig.world);
	spokei_faults_init(&other->faulty, &other->process.env);
	assert_int_equal(spoke_engine_new(&engine, &other->engine), SPOKE_OK);
	assert_int_equal(spoke_comet_new(other->engine, &options, &other->comet), SPOKE_OK);
}

/* Makes three gateways that have not joined. */
static void make_all(void)
{
	struct spoke_comet_options options = cometrig_begin();

	memset(others, 0, sizeof(others));
	options.shared = true;
	options.message_max = 8 * LARGE;
	cometrig_make(&options);
	make(&others[0], "127.0.0.1:8081");
	make(&others[1], "127.0.0.1:8082");
}

STEP(set_up)
{
	make_all();
	for (unsigned i = 0; i < OTHERS; i++)
		assert_int_equal(spoke_comet_join(others[i].comet, cometrig.comet), SPOKE_OK);
}

STEP(set_up_apart)
{
	make_all();
}

static void end_other(struct other *other)
{
	spoke_engine_free(other->engine);
	other->engine = NULL;
	other->comet = NULL;
}

/* Pushes that are on their way are freed where they arrive. */
STEP(tear_down)
{
	for (unsigned i = 0; i < OTHERS; i++)
		end_other(&others[i]);
	spoke_engine_free(cometrig.engine);
	cometrig.engine = NULL;
	for (unsigned i = 0; i < OTHERS; i++) {
		assert_int_equal(others[i].faulty.blocks, 0);
		assert_int_equal(others[i].process.user.fds, 0);
		spokei_world_process_fini(&others[i].process);
	}
	cometrig_close();
}

FIXTURE(set_up, tear_down);

/* Opens a stream of events at a gateway; reads its first event. */
static int open_at(const char *at, const char *query)
{
	int fd = scene_connect(&cometrig.client.env, at);
	char text[256];

	cometrig_run(MS);
	(void)snprintf(text, sizeof(text),
		       "GET /spoke/events?%s HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", query);
	cometrig_send(fd, text);
	assert_has(cometrig_read(fd, NULL), "event: hello");
	return fd;
}

static int push_at(struct spoke_comet *comet, const char *user, const char *data,
		   struct spoke_comet_result *result)
{
	const struct spoke_comet_message message = { .event = spoke_comet_text("e"),
						     .data = spoke_comet_text(data) };

	return user ? spoke_comet_push(comet, spoke_comet_text(user), &message, result)
		    : spoke_comet_push_all(comet, &message, result);
}

/* Fails the allocation number *nth of a push, and counts it on. */
static int push_at_nth(uint64_t *nth, const char *data)
{
	int error;

	spokei_faults_fail(&cometrig.faulty, SPOKEI_FAULTS_MEMORY, (*nth)++, -ENOMEM, false);
	error = push_at(cometrig.comet, "ann", data, NULL);
	spokei_faults_heal(&cometrig.faulty);
	assert_true(*nth < 20);
	return error;
}

static uint64_t figure_of(const struct other *other, enum spoke_comet_figure figure)
{
	return spoke_comet_figure(other->comet, figure);
}

TEST(push_to_one_gateway_reaches_users_of_all)
{
	struct spoke_comet *const comets[] = { cometrig.comet, others[0].comet, others[1].comet };
	struct spoke_comet_result result;
	int fds[3];

	fds[0] = open_at("127.0.0.1:8080", "user=ann");
	fds[1] = open_at("127.0.0.1:8081", "user=ann");
	fds[2] = open_at("127.0.0.1:8082", "user=bob");
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(push_at(comets[i], "ann", "own", &result), SPOKE_OK);
		/* The result is about this gateway. */
		assert_int_equal(result.connections, i < 2 ? 1 : 0);
		cometrig_run(MS);
		assert_int_equal(push_at(comets[i], NULL, "all", NULL), SPOKE_OK);
		cometrig_run(MS);
		assert_has(cometrig_stream(fds[0]), " e own\n");
		assert_has(cometrig.lines, " e all\n");
		assert_has(cometrig_stream(fds[1]), " e own\n");
		assert_has(cometrig.lines, " e all\n");
		assert_null(strstr(cometrig_stream(fds[2]), "own"));
		assert_has(cometrig.lines, " e all\n");
	}
}

TEST(push_many_and_keep_reach_users_of_all)
{
	const struct spoke_span users[] = { spoke_comet_text("ann"), spoke_comet_text(""),
					    spoke_comet_text("bob"), spoke_comet_text("eve") };
	const struct spoke_comet_message message = { .event = spoke_comet_text("e"),
						     .data = spoke_comet_text("x"),
						     .keep = true };
	char query[64];
	char id[SPOKE_COMET_ID];
	int ann;
	int bob;

	ann = open_at("127.0.0.1:8081", "user=ann");
	bob = open_at("127.0.0.1:8082", "user=bob");
	assert_int_equal(spoke_comet_push_many(cometrig.comet, users, 4, &message, NULL),
			 SPOKE_EINVAL);
	assert_string_equal(cometrig_stream(ann), "1 e x\n");
	assert_string_equal(cometrig_stream(bob), "1 e x\n");
	/* A user that comes within the time may come to any of them. */
	(void)spokei_comet_print_id(others[1].comet, 0, id);
	(void)snprintf(query, sizeof(query), "user=eve&last=%s", id);
	(void)open_at("127.0.0.1:8082", query);
	assert_has(cometrig_lines(cometrig.got), "1 e x\n");
	assert_int_equal(figure_of(&others[1], SPOKE_COMET_FIGURE_WRITTEN), 2);
}

TEST(kick_closes_connections_in_all)
{
	int fds[2];

	fds[0] = open_at("127.0.0.1:8080", "user=ann");
	fds[1] = open_at("127.0.0.1:8081", "user=ann");
	assert_int_equal(spoke_comet_kick(others[1].comet, spoke_comet_text("ann"), "enough"), 0);
	cometrig_run(MS);
	for (unsigned i = 0; i < 2; i++)
		assert_has(cometrig_stream(fds[i]),
			   "closed {\"code\":4004,\"reason\":\"enough\"}\nend\n");
}

TEST(refused_push_reaches_nobody)
{
	const struct spoke_comet_message message = { .event = spoke_comet_text("hello") };
	int fd = open_at("127.0.0.1:8081", "user=ann");

	assert_int_equal(spoke_comet_push_all(cometrig.comet, &message, NULL), SPOKE_EINVAL);
	cometrig_run(MS);
	assert_string_equal(cometrig_stream(fd), "");
}

/* An engine that does not turn, because its thread hangs. */
TEST(pushes_beyond_the_bound_of_a_hanging_engine_are_refused)
{
	static char large[LARGE + 1];
	int fd = open_at("127.0.0.1:8080", "user=ann");
	unsigned count = 0;
	uint64_t pushed;

	memset(large, 'x', LARGE);
	while (push_at(cometrig.comet, "bob", large, NULL) == SPOKE_OK)
		assert_true(++count < 100);
	/* 4 MiB, with what a push has beside its data. */
	assert_int_equal(count, 3);
	pushed = cometrig_figure(SPOKE_COMET_FIGURE_PUSHED);
	assert_int_equal(push_at(cometrig.comet, "ann", large, NULL), SPOKE_ELIMIT);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_PUSHED), pushed);
	assert_int_equal(cometrig_figure(SPOKE_COMET_FIGURE_BYTES), 0);
	assert_string_equal(cometrig_stream(fd), "");
	/* Now all have turned. */
	assert_int_equal(push_at(cometrig.comet, "ann", "small", NULL), SPOKE_OK);
	cometrig_run(MS);
	assert_has(cometrig_stream(fd), " e small\n");
	assert_int_equal(figure_of(&others[0], SPOKE_COMET_FIGURE_PUSHED), count + 1);
}

TEST(push_larger_than_the_bound_goes_alone)
{
	static char large[6 * LARGE + 1];

	memset(large, 'x', 6 * LARGE);
	assert_int_equal(push_at(cometrig.comet, "bob", large, NULL), SPOKE_OK);
	assert_int_equal(push_at(cometrig.comet, "bob", "x", NULL), SPOKE_ELIMIT);
	cometrig_run(MS);
	assert_int_equal(push_at(cometrig.comet, "bob", "x", NULL), SPOKE_OK);
}

/* Each end of a parcel gives its room back. A push larger than the bound needs all of the room. */
TEST(room_is_whole_after_each_end_of_a_push)
{
	static char large[6 * LARGE + 1];
	static char half[LARGE / 2 + 1];
	uint64_t nth = 1;

	memset(large, 'x', 6 * LARGE);
	memset(half, 'x', LARGE / 2);
	/* Taken, refused for want of room at one of two, and kicked. */
	assert_int_equal(push_at(others[1].comet, NULL, half, NULL), SPOKE_OK);
	while (push_at(cometrig.comet, "bob", half, NULL) == SPOKE_OK)
		continue;
	(void)spoke_comet_kick(cometrig.comet, spoke_comet_text("bob"), half);
	cometrig_run(MS);
	/* Without memory here, and there. */
	while (push_at_nth(&nth, half) == SPOKE_ENOMEM)
		continue;
	spokei_faults_fail(&others[0].faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	cometrig_run(MS);
	spokei_faults_heal(&others[0].faulty);
	assert_int_equal(push_at(cometrig.comet, "bob", large, NULL), SPOKE_OK);
	assert_int_equal(push_at(others[1].comet, "bob", large, NULL), SPOKE_ELIMIT);
	cometrig_run(MS);
	assert_int_equal(push_at(others[1].comet, "bob", large, NULL), SPOKE_OK);
}

/* A drained engine does not turn any more, and its gateway is not freed yet. */
TEST(gateway_that_has_drained_takes_no_room)
{
	static char large[LARGE + 1];

	memset(large, 'x', LARGE);
	assert_int_equal(spoke_engine_drain(others[0].engine, SECOND), SPOKE_OK);
	assert_int_equal(push_at(cometrig.comet, "bob", large, NULL), SPOKE_OK);
	cometrig_run(2 * SECOND);
	for (unsigned i = 0; i < 10; i++) {
		assert_int_equal(push_at(cometrig.comet, "bob", large, NULL), SPOKE_OK);
		assert_int_equal(spoke_engine_turn(others[1].engine, false), SPOKE_OK);
	}
	assert_int_equal(figure_of(&others[1], SPOKE_COMET_FIGURE_PUSHED), 11);
}

TEST(push_without_memory_reaches_nobody)
{
	int fd = open_at("127.0.0.1:8081", "user=ann");
	uint64_t nth = 1;
	int error;

	while ((error = push_at_nth(&nth, "x")) != SPOKE_OK) {
		cometrig_run(MS);
		assert_int_equal(error, SPOKE_ENOMEM);
		assert_string_equal(cometrig_stream(fd), "");
	}
	/* A message, and a parcel for each of the others. */
	assert_int_equal(nth, 5);
	assert_string_equal(cometrig_stream(fd), "1 e x\n");
}

TEST(gateway_without_memory_for_a_push_tells_its_users_lost)
{
	int ann = open_at("127.0.0.1:8081", "user=ann");
	int bob = open_at("127.0.0.1:8081", "user=bob");

	assert_int_equal(push_at(cometrig.comet, "ann", "x", NULL), SPOKE_OK);
	spokei_faults_fail(&others[0].faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	cometrig_run(MS);
	spokei_faults_heal(&others[0].faulty);
	assert_string_equal(cometrig_stream(ann), "1 lost {}\n");
	assert_string_equal(cometrig_stream(bob), "");
	assert_int_equal(push_at(cometrig.comet, NULL, "x", NULL), SPOKE_OK);
	spokei_faults_fail(&others[0].faulty, SPOKEI_FAULTS_MEMORY, 1, -ENOMEM, false);
	cometrig_run(MS);
	spokei_faults_heal(&others[0].faulty);
	assert_string_equal(cometrig_stream(ann), "2 lost {}\n");
	assert_string_equal(cometrig_stream(bob), "2 lost {}\n");
}

TEST(gateway_that_has_ended_is_left_out)
{
	int fd = open_at("127.0.0.1:8082", "user=ann");

	assert_int_equal(push_at(cometrig.comet, "ann", "1", NULL), SPOKE_OK);
	/* With a push on its way to it. */
	end_other(&others[0]);
	assert_int_equal(push_at(cometrig.comet, "ann", "2", NULL), SPOKE_OK);
	cometrig_run(MS);
	assert_string_equal(cometrig_stream(fd), "1 e 1\n2 e 2\n");
	/* The first may end, too. */
	spoke_comet_free(cometrig.comet);
	cometrig_run(MS);
	assert_int_equal(push_at(others[1].comet, "ann", "3", NULL), SPOKE_OK);
	assert_string_equal(cometrig_stream(fd), "3 e 3\n");
}

TEST(pushes_on_their_way_outlive_their_sender)
{
	int fd = open_at("127.0.0.1:8080", "user=ann");

	assert_int_equal(push_at(others[0].comet, "ann", "1", NULL), SPOKE_OK);
	end_other(&others[0]);
	assert_string_equal(cometrig_stream(fd), "1 e 1\n");
}

TEST(joins_that_are_not_allowed_are_explained, .set_up = set_up_apart, .tear_down = tear_down)
{
	struct spoke_comet_options options = { .listen = "127.0.0.1:8083", .query_user = true };
	struct spoke_comet *third;
	struct spoke_comet *alone;

	assert_int_equal(spoke_comet_new(others[0].engine, &options, &alone), SPOKE_OK);
	options.listen = "127.0.0.1:8084";
	options.shared = true;
	assert_int_equal(spoke_comet_new(others[0].engine, &options, &third), SPOKE_OK);
	assert_int_equal(spoke_comet_join(third, others[0].comet), SPOKE_EINVAL);
	assert_has(spoke_engine_why(others[0].engine), "on the same engine");
	assert_int_equal(spoke_comet_join(alone, cometrig.comet), SPOKE_EINVAL);
	assert_has(spoke_engine_why(others[0].engine), "set the option shared");
	assert_int_equal(spoke_comet_join(cometrig.comet, alone), SPOKE_EINVAL);
	assert_int_equal(spoke_comet_join(others[0].comet, cometrig.comet), SPOKE_OK);
	assert_int_equal(spoke_comet_join(others[0].comet, cometrig.comet), SPOKE_ESTATE);
	/* One that was joined, and one that joins one that has joined. */
	assert_int_equal(spoke_comet_join(cometrig.comet, others[1].comet), SPOKE_ESTATE);
	assert_int_equal(spoke_comet_join(others[1].comet, others[0].comet), SPOKE_ESTATE);
	/* It has stayed as it was. */
	assert_int_equal(spoke_comet_join(others[1].comet, cometrig.comet), SPOKE_OK);
	assert_int_equal(push_at(others[1].comet, NULL, "x", NULL), SPOKE_OK);
	cometrig_run(MS);
	assert_int_equal(figure_of(&others[0], SPOKE_COMET_FIGURE_PUSHED), 1);
}

TEST(circle_has_a_bound, .set_up = set_up_apart, .tear_down = tear_down)
{
	struct spoke_comet_options options = { .query_user = true, .shared = true };
	struct spoke_comet *comet;

	for (unsigned i = 1; i < SPOKE_COMET_JOINED_MAX; i++) {
		assert_int_equal(spoke_comet_new(others[0].engine, &options, &comet), SPOKE_OK);
		assert_int_equal(spoke_comet_join(comet, cometrig.comet), SPOKE_OK);
		spoke_comet_free(comet);
		cometrig_run(MS);
	}
	assert_int_equal(spoke_comet_join(others[0].comet, cometrig.comet), SPOKE_ELIMIT);
	/* Another one is open. */
	assert_int_equal(spoke_comet_join(others[0].comet, others[1].comet), SPOKE_OK);
}

TEST(gateway_is_made_or_not_without_memory, .set_up = set_up_apart, .tear_down = tear_down)
{
	struct spoke_comet_options options = { .query_user = true, .shared = true };
	struct spoke_comet *comet;
	uint64_t nth;
	int error = SPOKE_ENOMEM;

	for (nth = 1; error; nth++) {
		spokei_faults_fail(&others[0].faulty, SPOKEI_FAULTS_MEMORY, nth, -ENOMEM, false);
		error = spoke_comet_new(others[0].engine, &options, &comet);
		spokei_faults_heal(&others[0].faulty);
		assert_true(error == SPOKE_OK || error == SPOKE_ENOMEM);
		assert_true(nth < 50);
	}
	assert_true(nth > 3);
}
