/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures reading and printing JSON, next to jansson and, if it is installed, yyjson: the same
 * documents, in turns, on one core. Each round reads or prints a document until the time of its row
 * is over; the medians of the rounds and of their ratios count. spoke keeps its two buffers, yyjson
 * its pool, and jansson its output; jansson allocates its trees, which it cannot avoid.
 */
#include "core/json/json.h"
#include "core/value/builder.h"
#include "tests/bench/json/yyjson.h"

#include <spoke/host.h>

#include <jansson.h>

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ROUNDS 9
#define DOCUMENT_MAX 262144u

struct document {
	const char *name;
	char text[DOCUMENT_MAX];
	char copy[DOCUMENT_MAX]; /* reading overwrites it */
	char out[DOCUMENT_MAX];  /* of jansson */
	size_t len;
	struct spokei_buffer values;
	struct spokei_buffer scratch;
	struct spokei_buffer printed;
	struct spoke_value value;
	json_t *tree;
	struct yyjson *yyjson; /* NULL: it is not installed */
};

static volatile size_t sum; /* keeps the compiler from leaving work out */

static void die(const char *why)
{
	(void)fprintf(stderr, "bench_json: %s\n", why);
	exit(1);
}

/* --- documents */

__attribute__((format(printf, 2, 3))) static void add(struct document *document, const char *format,
						      ...)
{
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(document->text + document->len, DOCUMENT_MAX - document->len, format, args);
	va_end(args);
	if (len < 0 || (size_t)len >= DOCUMENT_MAX - document->len)
		die("a document is too long");
	document->len += (size_t)len;
}

static void make_echo(struct document *document)
{
	add(document, "[\"world\"]");
}

static void make_order(struct document *document)
{
	add(document, "{\"id\":184467440737,\"customer\":{\"name\":\"Ada Lovelace\",\"mail\":"
		      "\"ada@example.org\",\"since\":1815,\"vip\":true},\"currency\":\"EUR\","
		      "\"items\":[");
	for (unsigned i = 0; i < 8; i++) {
		add(document,
		    "%s{\"sku\":\"AB-%04u\",\"title\":\"Analytical engine, part %u\",\"count\":%u,"
		    "\"price\":%u.%02u,\"gift\":%s}",
		    i ? "," : "", i * 733, i, i % 3 + 1, 10 + i * 7, i * 13 % 100,
		    i % 2 ? "true" : "false");
	}
	add(document, "],\"total\":512.25,\"note\":null,\"address\":{\"street\":"
		      "\"St James's Square 12\",\"city\":\"London\",\"zip\":\"SW1Y 4JH\"}}");
}

static void make_records(struct document *document)
{
	add(document, "[");
	for (unsigned i = 0; i < 1000; i++) {
		add(document,
		    "%s{\"id\":%u,\"name\":\"user %u\",\"mail\":\"user%u@example.org\",\"on\":%s,"
		    "\"balance\":%u.%02u,\"roles\":[\"reader\",\"writer\"]}",
		    i ? "," : "", i * 7919, i, i, i % 3 ? "true" : "false", i * 13, i % 100);
	}
	add(document, "]");
}

static void make_integers(struct document *document)
{
	uint64_t number = 1;

	add(document, "[");
	for (unsigned i = 0; document->len < 100000; i++) {
		number = number * UINT64_C(6364136223846793005) + 1442695040888963407;
		add(document, "%s%s%llu", i ? "," : "", number >> 63 ? "-" : "",
		    (unsigned long long)(number >> (8 + number % 53)));
	}
	add(document, "]");
}

static void make_prices(struct document *document)
{
	add(document, "[");
	for (unsigned i = 0; document->len < 100000; i++)
		add(document, "%s%u.%02u", i ? "," : "", i * 37 % 10007, i * 7 % 100);
	add(document, "]");
}

static void make_doubles(struct document *document)
{
	double number = 0.1234567890123;

	add(document, "[");
	for (unsigned i = 0; i < 5000; i++) {
		number = number * 1.61803398875;
		if (number > 1000)
			number /= 1234.5;
		add(document, "%s%.17g", i ? "," : "", number);
	}
	add(document, "]");
}

static void make_texts(struct document *document)
{
	add(document, "[");
	for (unsigned i = 0; i < 1000; i++) {
		add(document,
		    "%s\"line %u: a text with \\\"quotes\\\", a tab\\t, umlauts \xc3\xa4\xc3\xb6"
		    " and \\u20ac, and some more words that need no escape at all\"",
		    i ? "," : "", i);
	}
	add(document, "]");
}

/* --- rows */

static void read_spoke(struct document *document)
{
	struct spoke_json_error error;
	struct spoke_span args;
	size_t count;

	spokei_buffer_clear(&document->scratch);
	memcpy(document->copy, document->text, document->len);
	if (spokei_json_read_args(document->copy, document->len, NULL, &document->scratch, &args,
				  &count, &error))
		die(error.what);
	sum += args.len + count;
}

static void read_jansson(struct document *document)
{
	json_t *tree = json_loadb(document->text, document->len, JSON_REJECT_DUPLICATES, NULL);

	if (tree == NULL)
		die("jansson cannot read a document");
	sum += json_array_size(tree);
	json_decref(tree);
}

static void read_yyjson(struct document *document)
{
	sum += yyjson_run_read(document->yyjson, document->text, document->len);
}

static void print_spoke(struct document *document)
{
	spokei_buffer_clear(&document->printed);
	if (spokei_json_append(&document->printed, document->value))
		die("out of memory");
	sum += spokei_buffer_len(&document->printed);
}

static void print_jansson(struct document *document)
{
	sum += json_dumpb(document->tree, document->out, DOCUMENT_MAX, JSON_COMPACT);
}

static void print_yyjson(struct document *document)
{
	sum += yyjson_run_print(document->yyjson);
}

/* --- measuring */

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Returns the bytes per second of one round. */
static double measure(void (*run)(struct document *document), struct document *document,
		      double seconds)
{
	double begun = now();
	double took = 0;
	size_t count = 0;

	while (took < seconds) {
		for (size_t i = 0; i < 1 + 20000 / document->len; i++, count++)
			run(document);
		took = now() - begun;
	}
	return (double)(count * document->len) / took;
}

static int compare(const void *a, const void *b)
{
	double first = *(const double *)a;
	double second = *(const double *)b;

	return (first > second) - (first < second);
}

static double median(double numbers[ROUNDS])
{
	qsort(numbers, ROUNDS, sizeof(numbers[0]), compare);
	return numbers[ROUNDS / 2];
}

#define LIBRARIES 3

struct row {
	const char *name;
	void (*run[LIBRARIES])(struct document *document); /* spoke, jansson, yyjson */
};

static void print_row(struct document *document, const struct row *row, double seconds)
{
	double speeds[LIBRARIES][ROUNDS];
	double ratios[LIBRARIES][ROUNDS];
	int count = document->yyjson ? 3 : 2;

	for (int round = 0; round < ROUNDS; round++) {
		for (int i = 0; i < count; i++)
			speeds[i][round] = measure(row->run[i], document, seconds);
		for (int i = 0; i < count; i++)
			ratios[i][round] = speeds[0][round] / speeds[i][round];
	}
	printf("%s\t%zu\t%s", document->name, document->len, row->name);
	for (int i = 0; i < count; i++)
		printf("\t%.1f", median(speeds[i]) / 1e6);
	for (int i = 1; i < count; i++)
		printf("\t%.2f", median(ratios[i]));
	printf("\n");
	(void)fflush(stdout);
}

static void start(struct document *document)
{
	struct spoke_json_error error;
	struct spoke_builder builder;
	size_t count;

	memcpy(document->copy, document->text, document->len);
	spokei_buffer_init(&document->values, spoke_host_env(), SIZE_MAX / 2);
	spokei_buffer_init(&document->scratch, spoke_host_env(), SIZE_MAX / 2);
	spokei_buffer_init(&document->printed, spoke_host_env(), SIZE_MAX / 2);
	spokei_builder_init_buffer(&builder, &document->values, NULL);
	document->tree = json_loadb(document->text, document->len, 0, NULL);
	document->yyjson = yyjson_make(document->text, document->len);
	if (document->tree == NULL ||
	    spoke_json_read(document->copy, document->len, &builder, &count, &error) ||
	    spoke_builder_finish_value(&builder, &document->value))
		die("a document is invalid");
}

static void stop(struct document *document)
{
	spokei_buffer_fini(&document->values);
	spokei_buffer_fini(&document->scratch);
	spokei_buffer_fini(&document->printed);
	json_decref(document->tree);
	yyjson_drop(document->yyjson);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(struct document *document);
	} kinds[] = {
		{ "echo", make_echo },       { "order", make_order },
		{ "records", make_records }, { "integers", make_integers },
		{ "prices", make_prices },   { "doubles", make_doubles },
		{ "texts", make_texts },
	};
	static const struct row rows[] = {
		{ "read", { read_spoke, read_jansson, read_yyjson } },
		{ "print", { print_spoke, print_jansson, print_yyjson } },
	};
	static struct document document;
	double seconds = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 0.02 : 0.2;

	printf("document\tbytes\trow\tspoke_MB_per_s\tjansson_MB_per_s\tyyjson_MB_per_s\t"
	       "to_jansson\tto_yyjson\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		memset(&document, 0, sizeof(document));
		document.name = kinds[i].name;
		kinds[i].make(&document);
		start(&document);
		for (size_t row = 0; row < sizeof(rows) / sizeof(rows[0]); row++)
			print_row(&document, &rows[row], seconds);
		stop(&document);
	}
	return 0;
}
