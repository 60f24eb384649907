/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Scenarios of a consumer and a provider in the virtual world, repeated with the next allocation or
 * system call failing, once or from then on. Every accepted call ends once, nothing leaks, and
 * after a single failure calls succeed again.
 *
 * Without SPOKE_TORTURE=all only a share of the failing calls is visited: of a scenario every
 * second or fourth one, from a first one that differs between scenarios, and between the errors of
 * a call.
 */
#include "tests/cluster/torture.h"
#include "tests/support/test.h"

#include "tests/support/scene.h"
#include "tests/transport/codec/textcodec.h"
#include "tests/transport/stream/strange.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define POINTS_MAX 2000 /* of one kind in a scenario */

/* The wire, codec and stream of both sides. */
struct tongue {
	const char *name;
	const char *scheme;
	const struct spokei_codec *codec;
	const struct spokei_stream_kind *stream;
};

static unsigned points;
static bool visits_all;
static unsigned shift; /* of the first failing call of a kind */

/* Returns false if spoke is built without TLS. */
static bool begin(const struct tongue *tongue)
{
	memset(&play, 0, sizeof(play));
	play.scheme = tongue->scheme;
	play.codec = tongue->codec;
	play.stream = tongue->stream;
	scene_open(&play.world, 11);
	for (unsigned i = 0; i < 2; i++) {
		spokei_world_process_init(&play.processes[i], &play.world);
		spokei_faults_init(&play.faulty[i], &play.processes[i].env);
	}
	return play.stream != &secure_stream || secure_begin(&play.secure, &play.world, "tls");
}

/* Waits for an endpoint for at most the longest backoff of a connector. */
static void wait_until_ready(void)
{
	const uint64_t end_ns = play.world.now_ns + 40 * SECOND;

	while (play.world.now_ns < end_ns && spoke_consumer_ready(play.consumer) == 0)
		torture_pass(100 * MS);
}

/* Waits until calls succeed again after the failure. */
static void recover(void)
{
	if (play.heartbeat_ns == 0) {
		torture_pass(40 * SECOND);
	} else {
		/* After this time it is known whether the link is still alive. */
		torture_pass(5 * play.heartbeat_ns);
		wait_until_ready();
		torture_pass(5 * play.heartbeat_ns);
		wait_until_ready();
	}
	assert_true(torture_call(play.echo));
	torture_pass(SECOND);
	assert_int_equal(play.errors[play.begun - 1], SPOKE_OK);
}

static void end(void)
{
	spoke_consumer_free(play.consumer);
	spoke_provider_free(play.provider);
	if (play.engines[CLIENT] || play.engines[SERVER])
		torture_pass(10 * MS);
	torture_answer_all();
	spoke_engine_free(play.engines[CLIENT]);
	spoke_engine_free(play.engines[SERVER]);
	assert_int_equal(play.ended, play.begun);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(play.faulty[i].blocks, 0);
		assert_int_equal(play.faulty[i].fds, 0);
		assert_int_equal(play.faulty[i].shares, 0);
		spokei_world_process_fini(&play.processes[i]);
	}
	spokei_world_fini(&play.world);
}

struct fault {
	enum spokei_faults_kind kind;
	int error;
};

/* The current case, which a failed assertion prints. */
static struct now_playing {
	const char *scenario;
	const struct tongue *tongue;
	unsigned side;
	const struct fault *fault;
	uint64_t nth;
	bool for_ever;
} now_playing;

STEP(tell_what_failed)
{
	if (now_playing.scenario) {
		print_message("last: %s, %s, %s, %s fails with %d at call %u%s\n",
			      now_playing.scenario, now_playing.tongue->name,
			      now_playing.side == CLIENT ? "client" : "server",
			      spokei_faults_kind_name(now_playing.fault->kind),
			      now_playing.fault->error, (unsigned)now_playing.nth,
			      now_playing.for_ever ? " and after" : "");
	}
}

FIXTURE(NULL, tell_what_failed);

/* Returns whether anything failed. */
static bool run_with(const struct scenario *scenario, const struct tongue *tongue, unsigned side,
		     const struct fault *fault, uint64_t nth, bool for_ever)
{
	bool failed;
	bool made;

	now_playing = (struct now_playing){ scenario->name, tongue, side, fault, nth, for_ever };
	assert_true(begin(tongue));
	spokei_faults_fail(&play.faulty[side], fault->kind, nth, fault->error, for_ever);
	scenario->run();
	failed = play.faulty[side].failed[fault->kind] > 0;
	made = play.consumer && play.provider && play.later;
	if ((!for_ever || play.heartbeat_ns) && failed && made && play.begun < CALLS) {
		char text[128];

		/* The owner knows of a provider that does not listen. */
		spokei_faults_heal(&play.faulty[side]);
		if (spoke_provider_address(play.provider, 0, text, sizeof(text)))
			recover();
	}
	end();
	return failed;
}

/* No kernel returns these errors for ever for a descriptor that is ready. Errors of lost
 * connections may repeat, because new connections follow. */
static bool passes(int error)
{
	return error == -EAGAIN || error == -EINTR;
}

static void torture_with(const struct scenario *scenario, const struct tongue *tongue,
			 const struct fault *fault, const bool meets[2], uint64_t step)
{
	for (unsigned i = 0; i < 4; i++) {
		unsigned side = i >> 1;
		bool for_ever = i & 1;
		uint64_t nth = 1 + ((size_t)(scenario - scenarios) + shift) % step;

		if (!meets[side] || (for_ever && passes(fault->error)))
			continue;
		while (run_with(scenario, tongue, side, fault, nth, for_ever)) {
			points++;
			nth += step;
			assert_in_range(nth, 1, POINTS_MAX);
		}
	}
}

static const struct tongue tongues[] = {
	{ "dubbo", "dubbo", NULL, NULL },
	{ "dubbo as text", "dubbo", &textcodec, NULL },
	{ "dubbo in hessian2", "dubbo", &spokei_codec_hessian2, NULL },
	{ "msgpack-rpc", "msgpack-rpc", NULL, NULL },
	{ "dubbo, strange", "dubbo", NULL, &strange_stream },
	{ "dubbo, shared memory", "dubbo", NULL, &spokei_stream_shm },
	{ "dubbo, TLS", "dubbo", NULL, &secure_stream },
};

/* Calls of each kind that a scenario makes in a tongue while nothing fails. */
struct demands {
	bool counted;
	bool absent; /* spoke is built without the tongue's stream */
	uint64_t calls[2][SPOKEI_FAULTS_KINDS];
};

static const struct demands *demands_of(const struct scenario *scenario,
					const struct tongue *tongue)
{
	static struct demands all[SCENARIOS][LENGTH(tongues)];
	struct demands *demands = &all[scenario - scenarios][tongue - tongues];

	if (demands->counted)
		return demands;
	demands->counted = true;
	demands->absent = !begin(tongue);
	if (!demands->absent)
		scenario->run();
	for (unsigned side = 0; side < 2; side++)
		memcpy(demands->calls[side], play.faulty[side].calls, sizeof(demands->calls[side]));
	end();
	return demands;
}

/* Runs the scenarios from `first` on with the faults that they meet. Unless `all` is set, each
 * fault meets one of the two wires in turn, and TLS, whose handshakes take long, few of them;
 * the other codecs and the second stream meet every fault. A `step` of 2 visits every second
 * failing call. */
static void torture(size_t first, const struct fault *faults, size_t count, bool all, uint64_t step)
{
	for (size_t i = LENGTH(tongues) * first; i < LENGTH(tongues) * (size_t)SCENARIOS; i++) {
		const struct scenario *scenario = &scenarios[i / LENGTH(tongues)];
		const struct tongue *tongue = &tongues[i % LENGTH(tongues)];
		bool lives = scenario >= &scenarios[LIVING]; /* Dubbo only: it has heartbeats */
		bool second = tongue == &tongues[3];
		bool secures = tongue->stream == &secure_stream;
		const struct demands *demands;
		const uint64_t every_nth = visits_all ? 1 : secures ? 4 : step;

		if (lives && second)
			continue;
		demands = demands_of(scenario, tongue);
		if (demands->absent)
			continue;
		for (size_t j = 0; j < count; j++) {
			const bool meets[2] = { demands->calls[CLIENT][faults[j].kind] > 0,
						demands->calls[SERVER][faults[j].kind] > 0 };
			const size_t turn = i / LENGTH(tongues) + j;
			const bool every = all || lives || tongue->codec || tongue->stream;

			if (secures ? all || turn % 64 == 0 : every || ((second + turn) & 1) == 0)
				torture_with(scenario, tongue, &faults[j], meets, every_nth);
		}
	}
	now_playing.scenario = NULL;
}

static void tell_points(void)
{
	print_message("%u points\n", points);
	points = 0;
}

TEST(any_allocation_may_fail)
{
	static const struct fault memory = { SPOKEI_FAULTS_MEMORY, -ENOMEM };

	torture(0, &memory, 1, true, 1);
	tell_points();
}

TEST(any_system_call_may_fail)
{
	static const struct fault faults[] = {
		{ SPOKEI_FAULTS_CONNECT, -ECONNREFUSED }, { SPOKEI_FAULTS_CONNECT, -EMFILE },
		{ SPOKEI_FAULTS_CONNECT, -ENETUNREACH },  { SPOKEI_FAULTS_FINISH, -ECONNREFUSED },
		{ SPOKEI_FAULTS_FINISH, -ETIMEDOUT },     { SPOKEI_FAULTS_LISTEN, -EADDRINUSE },
		{ SPOKEI_FAULTS_LISTEN, -EMFILE },        { SPOKEI_FAULTS_ACCEPT, -ECONNABORTED },
		{ SPOKEI_FAULTS_ACCEPT, -EMFILE },        { SPOKEI_FAULTS_ACCEPT, -ENOBUFS },
		{ SPOKEI_FAULTS_READ, -ECONNRESET },      { SPOKEI_FAULTS_READ, -EAGAIN },
		{ SPOKEI_FAULTS_READ, -EINTR },           { SPOKEI_FAULTS_READ, -ENOMEM },
		{ SPOKEI_FAULTS_WRITE, -ECONNRESET },     { SPOKEI_FAULTS_WRITE, -EPIPE },
		{ SPOKEI_FAULTS_WRITE, -EAGAIN },         { SPOKEI_FAULTS_WRITE, -EINTR },
		{ SPOKEI_FAULTS_WRITE, -ENOBUFS },        { SPOKEI_FAULTS_SPARE, -EMFILE },
		{ SPOKEI_FAULTS_LOCAL, -ENOBUFS },        { SPOKEI_FAULTS_PEER, -ENOTCONN },
		{ SPOKEI_FAULTS_PARSE, -EINVAL },         { SPOKEI_FAULTS_RESOLVE, -ENOENT },
		{ SPOKEI_FAULTS_LOOP_OPEN, -EMFILE },     { SPOKEI_FAULTS_SHARE, -EMFILE },
		{ SPOKEI_FAULTS_SHARE, -EAGAIN },         { SPOKEI_FAULTS_SHARED, -EAGAIN },
		{ SPOKEI_FAULTS_SHARED, -ENOMEM },
	};

	torture(0, faults, LENGTH(faults), false, 2);
	tell_points();
}

/* Each system call fails with each error, in scenarios that resolve names, drain and send
 * heartbeats. Of four calls of a kind each error visits one, and four errors visit all of them. */
TEST(any_system_call_may_fail_with_any_error)
{
	static const struct {
		enum spokei_faults_kind kind;
		int errors[16];
	} kinds[] = {
		{ SPOKEI_FAULTS_CONNECT,
		  { ECONNREFUSED, ENETUNREACH, EHOSTUNREACH, ETIMEDOUT, EADDRNOTAVAIL, EADDRINUSE,
		    EACCES, EPERM, EMFILE, ENFILE, ENOBUFS, ENOMEM, EAFNOSUPPORT } },
		{ SPOKEI_FAULTS_FINISH,
		  { ECONNREFUSED, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ENETDOWN,
		    ENOMEM } },
		{ SPOKEI_FAULTS_LISTEN,
		  { EADDRINUSE, EADDRNOTAVAIL, EACCES, EMFILE, ENFILE, ENOBUFS, ENOMEM } },
		{ SPOKEI_FAULTS_ACCEPT,
		  { EAGAIN, EINTR, ECONNABORTED, EMFILE, ENFILE, ENOBUFS, ENOMEM, EPROTO, EPERM,
		    ENETDOWN, EHOSTUNREACH, ETIMEDOUT } },
		{ SPOKEI_FAULTS_READ,
		  { EAGAIN, EINTR, ECONNRESET, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH, ECONNREFUSED,
		    EPIPE, EIO, ENOMEM, ENOBUFS } },
		{ SPOKEI_FAULTS_WRITE,
		  { EAGAIN, EINTR, ECONNRESET, EPIPE, ETIMEDOUT, EHOSTUNREACH, ENETUNREACH,
		    ENETDOWN, ENOBUFS, ENOMEM, EIO, EMSGSIZE } },
		{ SPOKEI_FAULTS_SHUT, { ENOTCONN, ENOBUFS, ECONNRESET } },
		{ SPOKEI_FAULTS_SPARE, { EMFILE, ENFILE, ENOMEM } },
		{ SPOKEI_FAULTS_LOCAL, { ENOBUFS, ENOTCONN } },
		{ SPOKEI_FAULTS_PEER, { ENOTCONN, ENOBUFS, EINVAL } },
		{ SPOKEI_FAULTS_PARSE, { EINVAL } },
		{ SPOKEI_FAULTS_RESOLVE, { ENOENT, EAGAIN, ENOMEM, EIO, ETIMEDOUT, ENETUNREACH } },
		{ SPOKEI_FAULTS_GUARD, { ENOPROTOOPT, EINVAL, ENOMEM, ENOBUFS } },
		{ SPOKEI_FAULTS_LOOP_OPEN, { EMFILE, ENFILE, ENOMEM } },
		{ SPOKEI_FAULTS_SHARE,
		  { EMFILE, ENFILE, ENOMEM, EAGAIN, EINTR, EPIPE, ECONNRESET, ETOOMANYREFS } },
		{ SPOKEI_FAULTS_SHARED, { EAGAIN, EINTR, ECONNRESET, EBADMSG, ENOMEM, EPERM } },
	};

	for (size_t i = 0; i < LENGTH(kinds); i++) {
		for (size_t k = 0; k < LENGTH(kinds[i].errors) && kinds[i].errors[k]; k++) {
			const struct fault fault = { kinds[i].kind, -kinds[i].errors[k] };

			shift = k % 4;
			torture(NAMED, &fault, 1, false, 4);
		}
	}
	shift = 0;
	tell_points();
}

STEP(read_environment)
{
	const char *asked = getenv("SPOKE_TORTURE");

	visits_all = asked && strcmp(asked, "all") == 0;
}

GROUP(read_environment, NULL);
