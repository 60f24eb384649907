/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the parts of Prometheus' text format 0.0.4: heads of families, labels, times,
 * histograms. */
#include "cluster/admin/metrics.h"
#include "core/text/utf8.h"

#include <spoke/histogram.h>

#include <stdio.h>
#include <string.h>

#define SECOND UINT64_C(1000000000)
#define BOUND 32u /* bytes of a bucket's bound */

void spokei_metrics_family(struct spokei_lines *lines, const char *name, const char *type,
			   const char *help)
{
	spokei_lines_put(lines, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

void spokei_metrics_seconds(struct spokei_lines *lines, uint64_t ns)
{
	spokei_lines_put(lines, " %" PRIu64 ".%09" PRIu64 "\n", ns / SECOND, ns % SECOND);
}

/* Writes one UTF-8 character of a label's value. Returns its size in bytes. */
static size_t put_character(struct spokei_lines *lines, const unsigned char *at, size_t len)
{
	size_t size = spokei_utf8_len(at, len);

	if (size == 0 || (*at < ' ' && *at != '\n') || *at == 0x7f)
		spokei_lines_bytes(lines, SPOKEI_UTF8_INSTEAD, sizeof(SPOKEI_UTF8_INSTEAD) - 1);
	else if (*at == '\n')
		spokei_lines_bytes(lines, "\\n", 2);
	else if (*at == '"' || *at == '\\')
		spokei_lines_put(lines, "\\%c", *at);
	else
		spokei_lines_bytes(lines, at, size);
	return size ? size : 1;
}

void spokei_metrics_label(struct spokei_lines *lines, const char *before, const char *name,
			  const char *value)
{
	const unsigned char *at = (const unsigned char *)value;
	size_t left = strlen(value);

	if (left > SPOKEI_METRICS_LABEL)
		left = SPOKEI_METRICS_LABEL;
	spokei_lines_put(lines, "%s%s=\"", before, name);
	while (left > 0) {
		size_t size = put_character(lines, at, left);

		at += size;
		left -= size;
	}
	spokei_lines_bytes(lines, "\"", 1);
}

/* --- histograms */

/* Bounds of buckets, in us. A bucket sums the histogram's buckets that lie entirely within it, so
 * values up to 1/32 below a bound may be counted in the next bucket. */
static const uint64_t bounds_us[] = { 50,     100,     250,     500,     1000,     2500,
				      5000,   10000,   25000,   50000,   100000,   250000,
				      500000, 1000000, 2500000, 5000000, 10000000, 60000000 };

/* Begins a line with labels. `bound`: of a bucket; NULL: the line has none. */
static void put_name(struct spokei_lines *lines, const char *name, const char *suffix,
		     const struct spokei_metrics_of *of, const char *bound)
{
	const char *before = "{";

	spokei_lines_put(lines, "%s%s", name, suffix);
	if (of) {
		spokei_metrics_label(lines, before, "service", of->service);
		spokei_metrics_label(lines, ",", "method", of->method);
		before = ",";
	}
	if (bound)
		spokei_metrics_label(lines, before, "le", bound);
	if (of || bound)
		spokei_lines_bytes(lines, "}", 1);
}

void spokei_metrics_histogram(struct spokei_lines *lines, const char *name,
			      const struct spokei_metrics_of *of,
			      const struct spoke_histogram *histogram)
{
	uint64_t sum = 0;
	size_t bucket = 0;

	for (size_t i = 0; i < sizeof(bounds_us) / sizeof(bounds_us[0]); i++) {
		uint64_t us = bounds_us[i];
		char bound[BOUND];

		while (bucket < SPOKE_HISTOGRAM_BUCKETS &&
		       spoke_histogram_bucket_end(bucket) <= us * 1000)
			sum += histogram->bucket[bucket++];
		(void)snprintf(bound, sizeof(bound), "%" PRIu64 ".%06" PRIu64, us / 1000000,
			       us % 1000000);
		put_name(lines, name, "_bucket", of, bound);
		spokei_lines_put(lines, " %" PRIu64 "\n", sum);
	}
	put_name(lines, name, "_bucket", of, "+Inf");
	spokei_lines_put(lines, " %" PRIu64 "\n", histogram->count);
	put_name(lines, name, "_sum", of, NULL);
	spokei_metrics_seconds(lines, histogram->sum);
	put_name(lines, name, "_count", of, NULL);
	spokei_lines_put(lines, " %" PRIu64 "\n", histogram->count);
}
