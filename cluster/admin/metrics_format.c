/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the parts of Prometheus' text format 0.0.4: heads of families, labels, times. */
#include "cluster/admin/metrics.h"
#include "core/text/utf8.h"

#include <string.h>

#define SECOND UINT64_C(1000000000)

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
