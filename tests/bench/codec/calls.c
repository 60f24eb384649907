/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures calls in Hessian 2 next to the same calls in msgpack: a consumer and a provider in one
 * process, on one engine, over a TCP socket. The provider echoes the first argument. The two
 * serializations take turns, and the time is that of the processor, so other processes disturb
 * little. The program fails if a call fails or has a wrong result.
 */
#include "tests/bench/common/order.h"

#include <spoke/consumer.h>
#include <spoke/engine.h>
#include <spoke/provider.h>
#include <spoke/value.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEEP 64u
#define ROUNDS 9u /* an odd number: the median counts */
#define WARM_CALLS 4096u
#define ARGS_MAX 4096u
#define SERVICE "demo.EchoService"
#define SECOND UINT64_C(1000000000)

/* What a call carries. */
struct shape {
	const char *name;
	void (*pack)(struct spoke_builder *builder);
	bool fails; /* the provider answers with an exception */
};

struct bench;

/* One of the two consumers. */
struct side {
	struct bench *bench;
	struct spoke_consumer *consumer;
	struct spoke_method *method;
	double per_second[ROUNDS];
};

struct bench {
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	struct side msgpack;
	struct side hessian2;
	const struct shape *shape;
	unsigned char memory[ARGS_MAX];
	struct spoke_span args;
	size_t value_len; /* of the first argument, in msgpack */
	size_t flying;
	size_t ended;
	size_t until; /* calls that have ended when no more are begun */
};

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("bench_codec_calls: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(1);
}

static void must(const char *what, int error)
{
	if (error)
		die("%s: %s", what, spoke_strerror(error));
}

/* --- shapes */

static void pack_text(struct spoke_builder *builder)
{
	spoke_pack_text(builder, "a text of thirty-two characters.");
}

static void pack_three(struct spoke_builder *builder)
{
	pack_text(builder);
	spoke_pack_i64(builder, 42000);
	spoke_pack_bool(builder, true);
}

static void pack_objects(struct spoke_builder *builder)
{
	spoke_pack_array(builder, 10);
	for (unsigned i = 0; i < 10; i++)
		pack_order(builder);
}

static void pack_map(struct spoke_builder *builder)
{
	static const char *const keys[] = { "one", "two",   "three", "four", "five",
					    "six", "seven", "eight", "nine", "ten" };

	spoke_pack_map(builder, 10);
	for (unsigned i = 0; i < 10; i++) {
		spoke_pack_text(builder, keys[i]);
		spoke_pack_i64(builder, 1000 * i);
	}
}

static void pack_bytes(struct spoke_builder *builder)
{
	char bytes[1024];

	memset(bytes, 0x5a, sizeof(bytes));
	spoke_pack_bin(builder, bytes, sizeof(bytes));
}

static const struct shape shapes[] = {
	{ "text", pack_text, false },     { "three", pack_three, false },
	{ "object", pack_order, false },  { "objects", pack_objects, false },
	{ "map", pack_map, false },       { "bytes", pack_bytes, false },
	{ "exception", pack_text, true },
};

#define SHAPES (sizeof(shapes) / sizeof(shapes[0]))

static void pack_args(struct bench *bench, const struct shape *shape)
{
	struct spoke_builder builder;
	struct spoke_cursor cursor;
	struct spoke_value value;

	spoke_builder_init_fixed(&builder, bench->memory, sizeof(bench->memory), NULL);
	shape->pack(&builder);
	must("arguments", spoke_builder_finish(&builder, &bench->args));
	cursor = spoke_cursor_bytes(bench->args);
	if (!spoke_cursor_next(&cursor, &value))
		die("%s: no argument", shape->name);
	bench->value_len = value.len;
	bench->shape = shape;
}

/* --- calls */

static void handle(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	const struct bench *bench = arg;
	struct spoke_value value;

	if (bench->shape->fails || !spoke_cursor_next(&args, &value))
		spoke_reply_error(request, 17, "the item is sold out");
	else
		spoke_reply(request, value);
}

static void call_done(void *arg, const struct spoke_result *result);

static void call(struct side *side)
{
	side->bench->flying++;
	must("call", spoke_call(side->method, side->bench->args, NULL, call_done, side, NULL));
}

static void call_done(void *arg, const struct spoke_result *result)
{
	struct side *side = arg;
	struct bench *bench = side->bench;
	/* A map has a longer head if it was read from Hessian 2, and an object may have one. */
	size_t more = side == &bench->hessian2 ? 24 : 0;

	if (bench->shape->fails ? result->error != SPOKE_EREMOTE : result->error != 0)
		die("%s: a call ended with %s", bench->shape->name, spoke_strerror(result->error));
	if (!bench->shape->fails && result->value.len - bench->value_len > more)
		die("%s: a call had a wrong result", bench->shape->name);
	bench->flying--;
	bench->ended++;
	if (bench->ended + bench->flying < bench->until)
		call(side);
}

/* The function that callgrind counts. */
void codec_calls_measured(struct side *side, size_t calls);

__attribute__((noinline)) void codec_calls_measured(struct side *side, size_t calls)
{
	struct bench *bench = side->bench;

	bench->ended = 0;
	bench->until = calls;
	while (bench->flying < DEEP && bench->flying < calls)
		call(side);
	while (bench->flying > 0)
		must("turn", spoke_engine_turn(bench->engine, true));
}

/* --- measuring */

static double cpu_seconds(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Returns calls per second of the processor. */
static double measure(struct side *side, double seconds)
{
	double start = cpu_seconds();
	size_t calls = 0;
	double taken;

	do {
		codec_calls_measured(side, WARM_CALLS);
		calls += WARM_CALLS;
		taken = cpu_seconds() - start;
	} while (taken < seconds);
	return (double)calls / taken;
}

static int compare(const void *a, const void *b)
{
	const double *left = a;
	const double *right = b;

	return (*left > *right) - (*left < *right);
}

static double median(double *numbers)
{
	qsort(numbers, ROUNDS, sizeof(*numbers), compare);
	return numbers[ROUNDS / 2];
}

static void compare_sides(struct bench *bench, double seconds)
{
	double ratio[ROUNDS];

	codec_calls_measured(&bench->msgpack, WARM_CALLS);
	codec_calls_measured(&bench->hessian2, WARM_CALLS);
	for (unsigned i = 0; i < ROUNDS; i++) {
		bench->msgpack.per_second[i] = measure(&bench->msgpack, seconds / ROUNDS / 2);
		bench->hessian2.per_second[i] = measure(&bench->hessian2, seconds / ROUNDS / 2);
		ratio[i] = bench->hessian2.per_second[i] / bench->msgpack.per_second[i];
	}
	(void)printf("%s\t%.0f\t%.0f\t%.3f\n", bench->shape->name,
		     median(bench->msgpack.per_second), median(bench->hessian2.per_second),
		     median(ratio));
	(void)fflush(stdout);
}

/* --- set-up and main loop */

static void open_provider(struct bench *bench)
{
	static const struct spoke_service_options service = { .name = SERVICE };
	struct spoke_handler handler = { .method = "echo", .handle = handle, .arg = bench };

	must("provider", spoke_provider_new(bench->engine, NULL, &bench->provider));
	must("service", spoke_provider_add(bench->provider, &service, &handler, 1));
	must("listen", spoke_provider_listen(bench->provider, "dubbo://127.0.0.1:0"));
}

static void open_side(struct bench *bench, struct side *side,
		      enum spoke_serialization serialization)
{
	char address[64];
	char url[128];
	struct spoke_consumer_options options = {
		.url = url,
		.timeout_ns = 10 * SECOND,
		.serialization = serialization,
	};

	side->bench = bench;
	(void)spoke_provider_address(bench->provider, 0, address, sizeof(address));
	(void)snprintf(url, sizeof(url), "dubbo://%s/%s", address, SERVICE);
	must("consumer", spoke_consumer_new(bench->engine, &options, &side->consumer));
	must("method", spoke_consumer_method(side->consumer, "echo", NULL, &side->method));
	while (spoke_consumer_ready(side->consumer) == 0)
		must("turn", spoke_engine_turn(bench->engine, true));
}

/* Runs a shape in one serialization, for callgrind. */
static void count(struct side *side, size_t calls)
{
	struct bench *bench = side->bench;

	bench->ended = 0;
	codec_calls_measured(side, calls);
	(void)printf("%zu calls\n", bench->ended);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	double seconds;

	if (argc != 2 && argc != 3 && argc != 5)
		die("usage: bench_codec_calls <seconds of a shape> [<shape> [msgpack|hessian2 "
		    "<calls>]]");
	seconds = strtod(argv[1], NULL);
	must("engine", spoke_engine_new(NULL, &bench.engine));
	open_provider(&bench);
	open_side(&bench, &bench.msgpack, SPOKE_SERIALIZATION_MSGPACK);
	open_side(&bench, &bench.hessian2, SPOKE_SERIALIZATION_HESSIAN2);
	for (size_t i = 0; i < SHAPES; i++) {
		if (argc > 2 && strcmp(argv[2], shapes[i].name) != 0)
			continue;
		pack_args(&bench, &shapes[i]);
		if (argc == 5)
			count(strcmp(argv[3], "msgpack") == 0 ? &bench.msgpack : &bench.hessian2,
			      strtoul(argv[4], NULL, 10));
		else
			compare_sides(&bench, seconds);
	}
	spoke_engine_free(bench.engine);
	return 0;
}
