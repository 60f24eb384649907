/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts that people and machines read. One row of a table says where a fact lies, and how the
 * status and the metrics call it. JSON and Prometheus' text format 0.0.4 are printers over such
 * tables. A family's name begins with spoke_; a counter's ends in _total; times are in seconds. The
 * lines of a family have all labels of its table. On the engine's thread.
 *
 *     #define TICKET_ROWS(FACT)                                            \
 *             FACT(number, LABEL("consumer"))                              \
 *             FACT(retry->tasks, NAME("tickets"), GAUGE("spoke_tickets", "calls that wait"))
 *     SPOKEI_FACTS(of_tickets, TICKET_ROWS);
 *
 * Where the names of the expressions are declared, SPOKEI_FACT_VALUES(TICKET_ROWS) are the values.
 * So a row is all that a fact needs: without a value, or a family without help, none compiles.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_FACTS_H
#define SPOKEI_CLUSTER_ADMIN_FACTS_H

#include "core/base/log.h"
#include "core/json/document.h"

#include <inttypes.h>
#include <stddef.h>

#define SPOKEI_FACTS_ROWS 400u   /* lines of a family, at most */
#define SPOKEI_FACTS_LABEL 1024u /* bytes of a label's value; longer ones are cut */

struct spoke_histogram;

struct spokei_fact {
	const char *name;   /* of a member of the status; NULL: it has none */
	const char *label;  /* of the lines in the metrics; NULL: no label */
	const char *family; /* in the metrics; NULL: none */
	const char *help;   /* of the family; without the full stop */
	bool counts;        /* the family is a counter, else a gauge */
	bool ns;            /* a time, which the status has in ns, and the metrics in seconds */
	bool ms; /* the same, in ms in the status, where UINT64_MAX is null; in the metrics 0 */
	bool optional; /* a label that is left out if it is 0 or empty */
};

/* A table. */
struct spokei_facts {
	const struct spokei_fact *of;
	size_t count;
};

#define SPOKEI_FACT(value, ...) { __VA_ARGS__ },

#define SPOKEI_FACTS(table, ROWS)                                                                  \
	static const struct spokei_fact table##_rows[] = { ROWS(SPOKEI_FACT) };                    \
	static const struct spokei_facts table = { table##_rows, sizeof(table##_rows) /            \
									 sizeof(table##_rows[0]) }

/* --- the details of a row, in any order */

#define NAME(name_of) .name = (name_of)
#define MS(name_of) .name = (name_of), .ms = true
#define NS .ns = true
#define LABEL(name_of) .label = (name_of)
#define OPTIONAL .optional = true
#define GAUGE(name_of, help_of) .family = (name_of), .help = (help_of)
#define COUNTER(name_of, help_of) .family = (name_of), .help = (help_of), .counts = true

/* --- values */

enum spokei_fact_type {
	SPOKEI_FACT_NUMBER,
	SPOKEI_FACT_SIGNED, /* INT64_MIN: there is none; the status has 0 for negative numbers */
	SPOKEI_FACT_BOOL,
	SPOKEI_FACT_TEXT,
};

struct spokei_fact_value {
	enum spokei_fact_type type;
	uint64_t number;
	const char *text; /* borrowed; NULL: there is none */
};

/* The value of a row, by its type. */
#define SPOKEI_FACT_VALUE(value, ...)                                                              \
	_Generic((value),                                                                          \
		bool: spokei_fact_bool,                                                            \
		int64_t: spokei_fact_signed,                                                       \
		char *: spokei_fact_text,                                                          \
		const char *: spokei_fact_text,                                                    \
		default: spokei_fact_number)(value),

/* The values of a table, where the names of its rows' expressions are declared. */
#define SPOKEI_FACT_VALUES(ROWS) ((const struct spokei_fact_value[]){ ROWS(SPOKEI_FACT_VALUE) })

static inline struct spokei_fact_value spokei_fact_number(uint64_t number)
{
	return (struct spokei_fact_value){ SPOKEI_FACT_NUMBER, number, NULL };
}

static inline struct spokei_fact_value spokei_fact_signed(int64_t number)
{
	return (struct spokei_fact_value){ SPOKEI_FACT_SIGNED, (uint64_t)number, NULL };
}

static inline struct spokei_fact_value spokei_fact_bool(bool is)
{
	return (struct spokei_fact_value){ SPOKEI_FACT_BOOL, is, NULL };
}

static inline struct spokei_fact_value spokei_fact_text(const char *text)
{
	return (struct spokei_fact_value){ SPOKEI_FACT_TEXT, 0, text };
}

/* Takes the values of a table. Returns whether it wants more of them. */
typedef bool (*spokei_facts_take_fn)(void *arg, const struct spokei_fact_value *values);

/* Finds values, until no more are wanted. Returns whether more are wanted. */
typedef bool (*spokei_facts_find_fn)(const void *of, spokei_facts_take_fn take, void *arg);

/* --- JSON */

/* Writes the members of a table into the present object of the status. */
void spokei_facts_show(struct spokei_json *json, const struct spokei_facts *facts,
		       const struct spokei_fact_value *values);

/* The same, with the values that a function finds. */
void spokei_facts_find(struct spokei_json *json, const struct spokei_facts *facts,
		       spokei_facts_find_fn find, const void *of);

/* Writes an object that has nothing but the members of a table. */
void spokei_facts_object(struct spokei_json *json, const struct spokei_facts *facts,
			 const struct spokei_fact_value *values);

/* --- metrics */

struct spokei_metrics {
	struct spokei_buffer *out; /* borrowed */
	int error;                 /* the first one; nothing more is written */
};

/* Writes all families of a table, with a line for all values that a function finds. */
void spokei_facts_families(struct spokei_metrics *metrics, const struct spokei_facts *facts,
			   spokei_facts_find_fn find, const void *of);

/* Begins a family; `type` is e.g. "counter". */
void spokei_metrics_family(struct spokei_metrics *metrics, const char *name, const char *type,
			   const char *help);

/* The labels of a line: those of a table, and one more. */
struct spokei_labels {
	const struct spokei_facts *facts; /* NULL: only the one more */
	const struct spokei_fact_value *values;
	const char *extra; /* its name; NULL: none */
	const char *value;
};

/* Writes a line. `labels` may be NULL. */
void spokei_metrics_line(struct spokei_metrics *metrics, const char *family,
			 const struct spokei_labels *labels, uint64_t value);

/* Writes the lines of a histogram of times, with the labels of a table. `facts` may be NULL. */
void spokei_metrics_histogram(struct spokei_metrics *metrics, const char *family,
			      const struct spokei_facts *facts,
			      const struct spokei_fact_value *values,
			      const struct spoke_histogram *histogram);

#endif
