/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Measures reading and printing JSON, next to jansson: the same documents, in turns, on one core.
 * Each round reads or prints a document until a tenth of the time of its row is over; the median of
 * the rounds counts.
 */
#include <spoke/host.h>
#include <spoke/json.h>

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
	size_t len;
	struct spoke_builder values;
	struct spoke_value value;
	json_t *tree;
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

static void make_args(struct document *document)
{
	add(document, "[\"world\",42,true]");
}

static void make_record(struct document *document)
{
	add(document,
	    "{\"id\":184467440737,\"name\":\"Ada Lovelace\",\"active\":true,\"score\":12.5,"
	    "\"tags\":[\"a\",\"b\",\"c\"],\"address\":{\"street\":\"St James's Square\","
	    "\"number\":12,\"city\":\"London\",\"zip\":null}}");
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
	struct spoke_builder builder;
	size_t count;

	memcpy(document->copy, document->text, document->len);
	spoke_builder_init(&builder, spoke_host_env(), NULL);
	if (spoke_json_read(document->copy, document->len, &builder, &count, &error))
		die(error.what);
	sum += builder.len;
	spoke_builder_fini(&builder);
}

static void read_jansson(struct document *document)
{
	json_t *tree = json_loadb(document->text, document->len, JSON_REJECT_DUPLICATES, NULL);

	if (tree == NULL)
		die("jansson cannot read a document");
	sum += json_array_size(tree);
	json_decref(tree);
}

static void count_bytes(void *arg, const void *bytes, size_t len)
{
	(void)arg;
	sum += len + *(const unsigned char *)bytes;
}

static void print_spoke(struct document *document)
{
	spoke_json_print(document->value, SPOKE_JSON_LINE, count_bytes, NULL);
}

static int count_chunk(const char *bytes, size_t len, void *arg)
{
	count_bytes(arg, bytes, len);
	return 0;
}

static void print_jansson(struct document *document)
{
	if (json_dump_callback(document->tree, count_chunk, NULL, JSON_COMPACT))
		die("jansson cannot print a document");
}

/* --- measuring */

static double now(void)
{
	struct timespec time;

	(void)clock_gettime(CLOCK_MONOTONIC, &time);
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

/* Returns the median ratio of the rounds: jansson's time to spoke's. */
static void row(struct document *document, const char *what,
		void (*spoke)(struct document *document),
		void (*jansson)(struct document *document), double seconds)
{
	double ours[ROUNDS];
	double theirs[ROUNDS];
	double ratios[ROUNDS];

	for (int i = 0; i < ROUNDS; i++) {
		ours[i] = measure(spoke, document, seconds);
		theirs[i] = measure(jansson, document, seconds);
		ratios[i] = ours[i] / theirs[i];
	}
	qsort(ours, ROUNDS, sizeof(ours[0]), compare);
	qsort(theirs, ROUNDS, sizeof(theirs[0]), compare);
	qsort(ratios, ROUNDS, sizeof(ratios[0]), compare);
	printf("%s\t%zu\t%s\t%.1f\t%.1f\t%.2f\n", document->name, document->len, what,
	       ours[ROUNDS / 2] / 1e6, theirs[ROUNDS / 2] / 1e6, ratios[ROUNDS / 2]);
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*make)(struct document *document);
	} kinds[] = {
		{ "args", make_args },       { "record", make_record }, { "records", make_records },
		{ "doubles", make_doubles }, { "texts", make_texts },
	};
	static struct document document;
	double seconds = argc > 1 && strcmp(argv[1], "--quick") == 0 ? 0.02 : 0.2;

	printf("document\tbytes\trow\tspoke_MB_per_s\tjansson_MB_per_s\tratio\n");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct spoke_json_error error;
		size_t count;

		memset(&document, 0, sizeof(document));
		document.name = kinds[i].name;
		kinds[i].make(&document);
		memcpy(document.copy, document.text, document.len);
		spoke_builder_init(&document.values, spoke_host_env(), NULL);
		document.tree = json_loadb(document.text, document.len, 0, NULL);
		if (document.tree == NULL ||
		    spoke_json_read(document.copy, document.len, &document.values, &count,
				    &error) ||
		    spoke_builder_finish_value(&document.values, &document.value))
			die("a document is invalid");
		row(&document, "read", read_spoke, read_jansson, seconds);
		row(&document, "print", print_spoke, print_jansson, seconds);
		json_decref(document.tree);
		spoke_builder_fini(&document.values);
	}
	return 0;
}
