/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures the codecs on recorded bodies: translates all bodies of a file to values and back, over
 * and over. The msgpack rows do the same work on the same values: a check when they are read, a
 * copy when they are written.
 */
#include "tests/transport/codec/bodies.h"

#include <spoke/host.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define BODIES_MAX 1024u
#define LINE_MAX_BYTES 262144
#define PARTS 5u /* of the measured time; the best one counts */
#define NS 1e9

struct body {
	enum spokei_codec_part part;
	struct spoke_span raw;    /* in Hessian 2 */
	struct spoke_span values; /* in msgpack */
	size_t written;           /* bytes of the values when they are written in Hessian 2 */
};

struct bench {
	struct body bodies[BODIES_MAX];
	size_t count;
	struct spokei_buffer scratch;
	struct spokei_buffer out;
	double seconds; /* of one row */
};

static const struct spoke_value_limits limits = { .cycles = true };

__attribute__((format(printf, 1, 2), noreturn)) static void die(const char *format, ...)
{
	va_list args;

	va_start(args, format);
	(void)fputs("bench_codec: ", stderr);
	(void)vfprintf(stderr, format, args);
	(void)fputc('\n', stderr);
	va_end(args);
	exit(1);
}

/* --- bodies */

static struct spoke_span copy_of(const void *bytes, size_t len)
{
	unsigned char *copy = malloc(len + 1);

	if (copy == NULL)
		die("no memory");
	memcpy(copy, bytes, len);
	return (struct spoke_span){ copy, len };
}

static struct spoke_span from_hex(char *hex)
{
	static const char digits[] = "0123456789abcdef";
	size_t len = strspn(hex, digits) / 2;

	for (size_t i = 0; i < len; i++)
		hex[i] = (char)((strchr(digits, hex[2 * i]) - digits) << 4 |
				(strchr(digits, hex[2 * i + 1]) - digits));
	return copy_of(hex, len);
}

/* Empties the scratch, and gives back what earlier bodies have spent of its maximum. */
static void renew_scratch(struct bench *bench)
{
	spokei_buffer_truncate(&bench->scratch, 0);
	bench->scratch.max = SPOKE_VALUE_BYTES_MAX;
}

/* Translates a body once, and requires that the way back gives the same values. */
static void add_body(struct bench *bench, enum spokei_codec_part part, struct spoke_span raw)
{
	struct body *body = &bench->bodies[bench->count++];
	struct spoke_span values;

	if (bench->count == BODIES_MAX)
		die("too many bodies");
	renew_scratch(bench);
	spokei_buffer_truncate(&bench->out, 0);
	if (body_read(&spokei_codec_hessian2, &limits, part, raw, &bench->scratch, &values) != 0)
		die("body %zu cannot be read", bench->count);
	*body = (struct body){ .part = part, .raw = raw };
	body->values = copy_of(values.data, values.len);
	if (body_write(&spokei_codec_hessian2, part, body->values, &bench->out) != 0)
		die("body %zu cannot be written", bench->count);
	body->written = spokei_buffer_len(&bench->out);
	renew_scratch(bench);
	if (body_read(&spokei_codec_hessian2, &limits, part,
		      (struct spoke_span){ spokei_buffer_data(&bench->out), body->written },
		      &bench->scratch, &values) != 0 ||
	    values.len != body->values.len ||
	    memcmp(values.data, body->values.data, values.len) != 0)
		die("body %zu is not written as it was read", bench->count);
}

static void read_bodies(struct bench *bench, const char *path)
{
	static char line[LINE_MAX_BYTES];
	FILE *file = fopen(path, "r");

	if (file == NULL)
		die("%s: cannot be read", path);
	while (fgets(line, sizeof(line), file)) {
		char *hex = strchr(line, ' ');

		if (hex == NULL)
			die("%s: not a line of bodies.awk", path);
		add_body(bench, line[2] == 'q' ? SPOKEI_CODEC_REQUEST : SPOKEI_CODEC_REPLY,
			 from_hex(hex + 1));
	}
	(void)fclose(file);
}

/* --- work */

typedef void work_fn(struct bench *bench, const struct body *body);

static void decode_hessian2(struct bench *bench, const struct body *body)
{
	struct spoke_span values;

	renew_scratch(bench);
	if (body_read(&spokei_codec_hessian2, &limits, body->part, body->raw, &bench->scratch,
		      &values) != 0 ||
	    values.len != body->values.len)
		die("a body was read in another way");
}

static void encode_hessian2(struct bench *bench, const struct body *body)
{
	spokei_buffer_truncate(&bench->out, 0);
	if (body_write(&spokei_codec_hessian2, body->part, body->values, &bench->out) != 0 ||
	    spokei_buffer_len(&bench->out) != body->written)
		die("a body was written in another way");
}

static void decode_msgpack(struct bench *bench, const struct body *body)
{
	struct spoke_cursor values;

	(void)bench;
	if (spoke_values_check(body->values.data, body->values.len, &limits, &values, NULL) != 0)
		die("values are not valid");
}

static void encode_msgpack(struct bench *bench, const struct body *body)
{
	spokei_buffer_truncate(&bench->out, 0);
	if (spokei_buffer_append(&bench->out, body->values.data, body->values.len) != 0)
		die("no memory");
}

static const struct row {
	const char *name;
	work_fn *work;
	bool raw; /* counts the bytes of the untranslated body */
} rows[] = {
	{ "hessian2 decode", decode_hessian2, true },
	{ "hessian2 encode", encode_hessian2, true },
	{ "msgpack decode", decode_msgpack, false },
	{ "msgpack encode", encode_msgpack, false },
};

#define ROWS (sizeof(rows) / sizeof(rows[0]))

/* The function that callgrind counts. */
void codec_measured(struct bench *bench, const struct row *row);

__attribute__((noinline)) void codec_measured(struct bench *bench, const struct row *row)
{
	for (size_t i = 0; i < bench->count; i++)
		row->work(bench, &bench->bodies[i]);
}

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
	return (double)time.tv_sec * NS + (double)time.tv_nsec;
}

static void measure(struct bench *bench, const struct row *row)
{
	size_t bytes = 0;
	double best = 0;

	for (size_t i = 0; i < bench->count; i++)
		bytes += row->raw ? bench->bodies[i].raw.len : bench->bodies[i].values.len;
	codec_measured(bench, row);
	for (unsigned part = 0; part < PARTS; part++) {
		double start = now();
		double rounds = 0;
		double ns;

		do {
			codec_measured(bench, row);
			rounds++;
			ns = now() - start;
		} while (ns < bench->seconds * NS / PARTS);
		if ((double)bytes * rounds * 1000 / ns > best)
			best = (double)bytes * rounds * 1000 / ns;
	}
	(void)printf("%s\t%zu\t%zu\t%.1f\n", row->name, bench->count, bytes, best);
}

int main(int argc, char **argv)
{
	static struct bench bench;
	size_t only = ROWS;

	if (argc != 3 && argc != 4)
		die("usage: bench_codec <bodies> <seconds of a row> [<number of the row, to run it "
		    "once>]");
	bench.seconds = strtod(argv[2], NULL);
	if (argc == 4)
		only = strtoul(argv[3], NULL, 10);
	spokei_buffer_init(&bench.scratch, spoke_host_env(), SPOKE_VALUE_BYTES_MAX);
	spokei_buffer_init(&bench.out, spoke_host_env(), SPOKE_VALUE_BYTES_MAX);
	read_bodies(&bench, argv[1]);
	for (size_t i = 0; i < ROWS && only == ROWS; i++)
		measure(&bench, &rows[i]);
	if (only < ROWS) {
		codec_measured(&bench, &rows[only]);
		(void)printf("%zu bodies\n", bench.count);
	}
	return 0;
}
