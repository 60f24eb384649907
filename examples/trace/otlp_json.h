/* SPDX-License-Identifier: Apache-2.0 */
/* Writes spans as JSON, as OTLP defines it. Pure; any thread. */
#ifndef EXAMPLES_TRACE_OTLP_JSON_H
#define EXAMPLES_TRACE_OTLP_JSON_H

#include <spoke/trace.h>

#include <stdbool.h>
#include <stddef.h>

/* A text that is written to its end; `full`: something did not fit. */
struct otlp_text {
	char *at;
	size_t len;
	size_t size;
	bool full;
};

/* Appends a piece of JSON. */
__attribute__((format(printf, 2, 3))) void otlp_put(struct otlp_text *text, const char *format,
						    ...);

/* Appends an attribute and a comma. */
void otlp_put_attribute(struct otlp_text *text, const char *key, const void *bytes, size_t len);

/* Ends a list, whose elements each end in a comma. */
void otlp_end_list(struct otlp_text *text);

/* Appends a span. */
void otlp_put_span(struct otlp_text *text, const struct spoke_trace_span *span);

#endif
