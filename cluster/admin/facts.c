/* SPDX-License-Identifier: Apache-2.0 */
/* Prints tables of facts, as JSON and in the text format of Prometheus. */
#include "cluster/admin/facts.h"

#include "core/text/encoding.h"

#include <spoke/histogram.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PIECE 1024u /* bytes of formatted text at once; the rest is cut */
#define NUMBER 24u  /* bytes of a number as text */
#define SECOND UINT64_C(1000000000)

static const void *member_at(const struct spokei_fact *fact, const void *row)
{
	return (const char *)row + fact->at;
}

static uint64_t number_at(const struct spokei_fact *fact, const void *row)
{
	const void *at = member_at(fact, row);

	switch (fact->type) {
	case SPOKEI_FACT_BOOL:
		return *(const bool *)at;
	case SPOKEI_FACT_U32:
		return *(const uint32_t *)at;
	case SPOKEI_FACT_U64:
	case SPOKEI_FACT_I64:
		return *(const uint64_t *)at;
	case SPOKEI_FACT_TEXT:
	case SPOKEI_FACT_CHARS:
		break;
	}
	return 0;
}

static bool is_text(const struct spokei_fact *fact)
{
	return fact->type == SPOKEI_FACT_TEXT || fact->type == SPOKEI_FACT_CHARS;
}

/* Returns NULL if there is none. */
static const char *text_at(const struct spokei_fact *fact, const void *row)
{
	const void *at = member_at(fact, row);

	return fact->type == SPOKEI_FACT_CHARS ? at : *(const char *const *)at;
}

/* Has the row a value? */
static bool is_there(const struct spokei_fact *fact, const void *row)
{
	if (is_text(fact))
		return text_at(fact, row) != NULL;
	return fact->type != SPOKEI_FACT_I64 || (int64_t)number_at(fact, row) != INT64_MIN;
}

/* --- JSON */

static void show(struct spokei_json *json, const struct spokei_fact *fact, const void *row)
{
	uint64_t number;

	if (is_text(fact)) {
		spokei_json_put_text(json, fact->name, text_at(fact, row));
		return;
	}
	number = number_at(fact, row);
	if (fact->type == SPOKEI_FACT_BOOL)
		spokei_json_put_bool(json, fact->name, number != 0);
	else if (fact->ms)
		spokei_json_put_ms(json, fact->name, number);
	else if (fact->type == SPOKEI_FACT_I64 && (int64_t)number < 0)
		spokei_json_put_u64(json, fact->name, 0);
	else
		spokei_json_put_u64(json, fact->name, number);
}

void spokei_facts_show(struct spokei_json *json, const struct spokei_facts *facts, const void *row)
{
	for (size_t i = 0; i < facts->count; i++)
		if (facts->of[i].name && is_there(&facts->of[i], row))
			show(json, &facts->of[i], row);
}

void spokei_facts_object(struct spokei_json *json, const struct spokei_facts *facts,
			 const void *row)
{
	spokei_json_open(json, '{');
	spokei_facts_show(json, facts, row);
	spokei_json_close(json, '}');
}

/* --- metrics */

static void put_bytes(struct spokei_metrics *metrics, const void *bytes, size_t len)
{
	if (metrics->error == SPOKE_OK)
		metrics->error = spokei_buffer_append(metrics->out, bytes, len);
}

SPOKEI_PRINTF(2, 3)
static void put(struct spokei_metrics *metrics, const char *format, ...)
{
	char piece[PIECE];
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(piece, sizeof(piece), format, args);
	va_end(args);
	if (len >= (int)sizeof(piece))
		len = (int)sizeof(piece) - 1;
	if (len > 0)
		put_bytes(metrics, piece, (size_t)len);
}

void spokei_metrics_family(struct spokei_metrics *metrics, const char *name, const char *type,
			   const char *help)
{
	put(metrics, "# HELP %s %s.\n# TYPE %s %s\n", name, help, name, type);
}

static void put_seconds(struct spokei_metrics *metrics, uint64_t ns)
{
	put(metrics, " %" PRIu64 ".%09" PRIu64 "\n", ns / SECOND, ns % SECOND);
}

static void put_number(struct spokei_metrics *metrics, uint64_t number)
{
	put(metrics, " %" PRIu64 "\n", number);
}

/* Writes one UTF-8 character of a label's value. Returns its size in bytes. */
static size_t put_character(struct spokei_metrics *metrics, const unsigned char *at, size_t len)
{
	size_t size = spokei_utf8_len(at, len);

	if (size == 0 || (*at < ' ' && *at != '\n') || *at == 0x7f)
		put_bytes(metrics, SPOKEI_UTF8_INSTEAD, sizeof(SPOKEI_UTF8_INSTEAD) - 1);
	else if (*at == '\n')
		put_bytes(metrics, "\\n", 2);
	else if (*at == '"' || *at == '\\')
		put(metrics, "\\%c", *at);
	else
		put_bytes(metrics, at, size);
	return size ? size : 1;
}

/* Writes a label. `*before` is what separates it from the text before it. */
static void put_label(struct spokei_metrics *metrics, const char **before, const char *name,
		      const char *value)
{
	const unsigned char *at = (const unsigned char *)value;
	size_t left = strlen(value);

	if (left > SPOKEI_FACTS_LABEL)
		left = SPOKEI_FACTS_LABEL;
	put(metrics, "%s%s=\"", *before, name);
	*before = ",";
	while (left > 0) {
		size_t size = put_character(metrics, at, left);

		at += size;
		left -= size;
	}
	put_bytes(metrics, "\"", 1);
}

static void put_label_of(struct spokei_metrics *metrics, const char **before,
			 const struct spokei_fact *fact, const void *row)
{
	char number[NUMBER];
	const char *text = number;

	if (is_text(fact))
		text = text_at(fact, row);
	else
		(void)snprintf(number, sizeof(number), "%" PRIu64, number_at(fact, row));
	if (text == NULL || (fact->optional && (*text == '\0' || strcmp(text, "0") == 0)))
		return;
	put_label(metrics, before, fact->label, text);
}

/* Begins a line: its name, and the labels, if any. */
static void put_name(struct spokei_metrics *metrics, const char *name, const char *suffix,
		     const struct spokei_labels *labels)
{
	const struct spokei_facts *facts = labels ? labels->facts : NULL;
	const char *before = "{";

	put(metrics, "%s%s", name, suffix);
	for (size_t i = 0; facts && i < facts->count; i++)
		if (facts->of[i].label)
			put_label_of(metrics, &before, &facts->of[i], labels->row);
	if (labels && labels->extra)
		put_label(metrics, &before, labels->extra, labels->value);
	if (*before == ',')
		put_bytes(metrics, "}", 1);
}

void spokei_metrics_line(struct spokei_metrics *metrics, const char *family,
			 const struct spokei_labels *labels, uint64_t value)
{
	put_name(metrics, family, "", labels);
	put_number(metrics, value);
}

/* A family that is being written. */
struct family {
	struct spokei_metrics *metrics;
	const struct spokei_facts *facts;
	const struct spokei_fact *fact;
	size_t rows;
};

static void put_row(void *arg, const void *row)
{
	struct family *family = arg;
	struct spokei_metrics *metrics = family->metrics;
	const struct spokei_fact *fact = family->fact;
	const struct spokei_labels labels = { family->facts, row, NULL, NULL };
	uint64_t number;

	if (!is_there(fact, row) || family->rows++ >= SPOKEI_FACTS_ROWS)
		return;
	put_name(metrics, fact->family, "", &labels);
	number = number_at(fact, row);
	if (fact->ns || fact->ms)
		put_seconds(metrics, number == UINT64_MAX ? 0 : number);
	else if (fact->type == SPOKEI_FACT_I64)
		put(metrics, " %" PRId64 "\n", (int64_t)number);
	else
		put_number(metrics, number);
}

/* Begins the family of a fact. Returns false if it has none. */
static bool begin(struct family *family, size_t at)
{
	const struct spokei_fact *fact = &family->facts->of[at];

	family->fact = fact;
	family->rows = 0;
	if (fact->family == NULL)
		return false;
	spokei_metrics_family(family->metrics, fact->family, fact->counts ? "counter" : "gauge",
			      fact->help);
	return true;
}

void spokei_facts_families(struct spokei_metrics *metrics, const struct spokei_facts *facts,
			   const struct spoke_engine *engine, spokei_facts_each_fn each)
{
	struct family family = { .metrics = metrics, .facts = facts };

	for (size_t i = 0; i < facts->count; i++)
		if (begin(&family, i))
			each(engine, put_row, &family);
}

void spokei_facts_families_of(struct spokei_metrics *metrics, const struct spokei_facts *facts,
			      const void *row)
{
	struct family family = { .metrics = metrics, .facts = facts };

	for (size_t i = 0; i < facts->count; i++)
		if (begin(&family, i))
			put_row(&family, row);
}

/* --- histograms */

/* Bounds of buckets, in us. A bucket sums the histogram's buckets that lie entirely within it, so
 * values up to 1/32 below a bound may be counted in the next bucket. */
static const uint64_t bounds_us[] = { 50,     100,     250,     500,     1000,     2500,
				      5000,   10000,   25000,   50000,   100000,   250000,
				      500000, 1000000, 2500000, 5000000, 10000000, 60000000 };

void spokei_metrics_histogram(struct spokei_metrics *metrics, const char *family,
			      const struct spokei_facts *facts, const void *row,
			      const struct spoke_histogram *histogram)
{
	const struct spokei_labels labels = { facts, row, NULL, NULL };
	const struct spokei_labels last = { facts, row, "le", "+Inf" };
	uint64_t sum = 0;
	size_t bucket = 0;

	for (size_t i = 0; i < sizeof(bounds_us) / sizeof(bounds_us[0]); i++) {
		uint64_t us = bounds_us[i];
		char bound[NUMBER + 8];
		const struct spokei_labels of_bucket = { facts, row, "le", bound };

		while (bucket < SPOKE_HISTOGRAM_BUCKETS &&
		       spoke_histogram_bucket_end(bucket) <= us * 1000)
			sum += histogram->bucket[bucket++];
		(void)snprintf(bound, sizeof(bound), "%" PRIu64 ".%06" PRIu64, us / 1000000,
			       us % 1000000);
		put_name(metrics, family, "_bucket", &of_bucket);
		put_number(metrics, sum);
	}
	put_name(metrics, family, "_bucket", &last);
	put_number(metrics, histogram->count);
	put_name(metrics, family, "_sum", &labels);
	put_seconds(metrics, histogram->sum);
	put_name(metrics, family, "_count", &labels);
	put_number(metrics, histogram->count);
}
