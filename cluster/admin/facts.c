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

/* Is there a value? */
static bool is_there(const struct spokei_fact_value *value)
{
	if (value->type == SPOKEI_FACT_TEXT)
		return value->text != NULL;
	return value->type != SPOKEI_FACT_SIGNED || (int64_t)value->number != INT64_MIN;
}

/* --- JSON */

static void show(struct spokei_json *json, const struct spokei_fact *fact,
		 const struct spokei_fact_value *value)
{
	if (value->type == SPOKEI_FACT_TEXT)
		spokei_json_put_text(json, fact->name, value->text);
	else if (value->type == SPOKEI_FACT_BOOL)
		spokei_json_put_bool(json, fact->name, value->number != 0);
	else if (fact->ms)
		spokei_json_put_ms(json, fact->name, value->number);
	else if (value->type == SPOKEI_FACT_SIGNED && (int64_t)value->number < 0)
		spokei_json_put_u64(json, fact->name, 0);
	else
		spokei_json_put_u64(json, fact->name, value->number);
}

void spokei_facts_show(struct spokei_json *json, const struct spokei_facts *facts,
		       const struct spokei_fact_value *values)
{
	for (size_t i = 0; i < facts->count; i++)
		if (facts->of[i].name && is_there(&values[i]))
			show(json, &facts->of[i], &values[i]);
}

void spokei_facts_object(struct spokei_json *json, const struct spokei_facts *facts,
			 const struct spokei_fact_value *values)
{
	spokei_json_open(json, '{');
	spokei_facts_show(json, facts, values);
	spokei_json_close(json, '}');
}

/* An object that is being written. */
struct object {
	struct spokei_json *json;
	const struct spokei_facts *facts;
};

static bool take_members(void *arg, const struct spokei_fact_value *values)
{
	const struct object *object = arg;

	spokei_facts_show(object->json, object->facts, values);
	return true;
}

void spokei_facts_find(struct spokei_json *json, const struct spokei_facts *facts,
		       spokei_facts_find_fn find, const void *of)
{
	struct object object = { json, facts };

	(void)find(of, take_members, &object);
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
			 const struct spokei_fact *fact, const struct spokei_fact_value *value)
{
	char number[NUMBER];
	const char *text = number;

	if (value->type == SPOKEI_FACT_TEXT)
		text = value->text;
	else
		(void)snprintf(number, sizeof(number), "%" PRIu64, value->number);
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
			put_label_of(metrics, &before, &facts->of[i], &labels->values[i]);
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

/* A family that is being written: of the fact at a place of its table. */
struct family {
	struct spokei_metrics *metrics;
	const struct spokei_facts *facts;
	size_t at;
	size_t lines;
};

static bool take_line(void *arg, const struct spokei_fact_value *values)
{
	struct family *family = arg;
	struct spokei_metrics *metrics = family->metrics;
	const struct spokei_fact *fact = &family->facts->of[family->at];
	const struct spokei_fact_value *value = &values[family->at];
	const struct spokei_labels labels = { family->facts, values, NULL, NULL };

	if (!is_there(value))
		return true;
	put_name(metrics, fact->family, "", &labels);
	if (fact->ns || fact->ms)
		put_seconds(metrics, value->number == UINT64_MAX ? 0 : value->number);
	else if (value->type == SPOKEI_FACT_SIGNED)
		put(metrics, " %" PRId64 "\n", (int64_t)value->number);
	else
		put_number(metrics, value->number);
	return ++family->lines < SPOKEI_FACTS_ROWS;
}

void spokei_facts_families(struct spokei_metrics *metrics, const struct spokei_facts *facts,
			   spokei_facts_find_fn find, const void *of)
{
	for (size_t i = 0; i < facts->count; i++) {
		const struct spokei_fact *fact = &facts->of[i];
		struct family family = { .metrics = metrics, .facts = facts, .at = i };

		if (fact->family == NULL)
			continue;
		spokei_metrics_family(metrics, fact->family, fact->counts ? "counter" : "gauge",
				      fact->help);
		(void)find(of, take_line, &family);
	}
}

/* --- histograms */

/* Bounds of buckets, in us. A bucket sums the histogram's buckets that lie entirely within it, so
 * values up to 1/32 below a bound may be counted in the next bucket. */
static const uint64_t bounds_us[] = { 50,     100,     250,     500,     1000,     2500,
				      5000,   10000,   25000,   50000,   100000,   250000,
				      500000, 1000000, 2500000, 5000000, 10000000, 60000000 };

void spokei_metrics_histogram(struct spokei_metrics *metrics, const char *family,
			      const struct spokei_facts *facts,
			      const struct spokei_fact_value *values,
			      const struct spoke_histogram *histogram)
{
	const struct spokei_labels labels = { facts, values, NULL, NULL };
	const struct spokei_labels last = { facts, values, "le", "+Inf" };
	uint64_t sum = 0;
	size_t bucket = 0;

	for (size_t i = 0; i < sizeof(bounds_us) / sizeof(bounds_us[0]); i++) {
		uint64_t us = bounds_us[i];
		char bound[NUMBER + 8];
		const struct spokei_labels of_bucket = { facts, values, "le", bound };

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
