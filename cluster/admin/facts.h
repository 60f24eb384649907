/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Facts that people and machines read. One row of a table says where a fact lies, and how the
 * status and the metrics call it. JSON and Prometheus' text format 0.0.4 are printers over such
 * tables. A family's name begins with spoke_; a counter's ends in _total; times are in seconds. The
 * lines of a family have all labels of its table. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_ADMIN_FACTS_H
#define SPOKEI_CLUSTER_ADMIN_FACTS_H

#include "core/base/log.h"
#include "core/json/document.h"

#include <inttypes.h>
#include <stddef.h>

#define SPOKEI_FACTS_ROWS 400u   /* lines of a family, at most */
#define SPOKEI_FACTS_LABEL 1024u /* bytes of a label's value; longer ones are cut */

struct spoke_engine;
struct spoke_histogram;

/* The type of a member; SPOKEI_FACT_AT finds it. */
enum spokei_fact_type {
	SPOKEI_FACT_BOOL,
	SPOKEI_FACT_U32,
	SPOKEI_FACT_U64,
	SPOKEI_FACT_I64,  /* INT64_MIN: there is none; the status has 0 for negative numbers */
	SPOKEI_FACT_TEXT, /* a pointer; NULL: there is none */
	SPOKEI_FACT_CHARS,
};

struct spokei_fact {
	const char *name;   /* of a member of the status; NULL: it has none */
	const char *label;  /* of the lines in the metrics; NULL: no label */
	const char *family; /* in the metrics; NULL: none */
	const char *help;   /* of the family; without the full stop */
	size_t at;          /* in the row */
	enum spokei_fact_type type;
	bool counts; /* the family is a counter, else a gauge */
	bool ns;     /* a time, which the status has in ns, and the metrics in seconds */
	bool ms;     /* the same, in ms in the status, where UINT64_MAX is null; in the metrics 0 */
	bool optional; /* a label that is left out if it is 0 or empty */
};

/* A row of a table: the member of a struct where the fact lies, and its names. */
#define SPOKEI_FACT(type_of_row, member, ...)                                                        \
	{                                                                                            \
		.at = offsetof(type_of_row, member),                                               \
		.type = _Generic(((type_of_row *)NULL)->member,                                    \
				 bool: SPOKEI_FACT_BOOL,                                           \
				 unsigned: SPOKEI_FACT_U32,                                        \
				 unsigned long: sizeof(long) == 4 ? SPOKEI_FACT_U32                \
								  : SPOKEI_FACT_U64,               \
				 unsigned long long: SPOKEI_FACT_U64,                              \
				 long: SPOKEI_FACT_I64,                                            \
				 long long: SPOKEI_FACT_I64,                                       \
				 const char *: SPOKEI_FACT_TEXT,                                   \
				 char *: SPOKEI_FACT_CHARS),                                       \
		__VA_ARGS__ \
	}

/* A table. */
struct spokei_facts {
	const struct spokei_fact *of;
	size_t count;
};

#define SPOKEI_FACTS(array)                                                                        \
	{                                                                                          \
		(array), sizeof(array) / sizeof((array)[0])                                        \
	}

/* Writes the members of a row into the present object of the status. */
void spokei_facts_show(struct spokei_json *json, const struct spokei_facts *facts, const void *row);

/* Writes an object that has nothing but the members of a row. */
void spokei_facts_object(struct spokei_json *json, const struct spokei_facts *facts,
			 const void *row);

/* --- metrics */

struct spokei_metrics {
	struct spokei_buffer *out; /* borrowed */
	int error;                 /* the first one; nothing more is written */
};

/* Takes each row of a table. */
typedef void (*spokei_facts_take_fn)(void *arg, const void *row);
typedef void (*spokei_facts_each_fn)(const struct spoke_engine *engine, spokei_facts_take_fn take,
				     void *arg);

/* Writes all families of a table, with a line for each row. */
void spokei_facts_families(struct spokei_metrics *metrics, const struct spokei_facts *facts,
			   const struct spoke_engine *engine, spokei_facts_each_fn each);

/* The same of a table with one row. */
void spokei_facts_families_of(struct spokei_metrics *metrics, const struct spokei_facts *facts,
			      const void *row);

/* Begins a family; `type` is e.g. "counter". */
void spokei_metrics_family(struct spokei_metrics *metrics, const char *name, const char *type,
			   const char *help);

/* The labels of a line: those of a row, and one more. */
struct spokei_labels {
	const struct spokei_facts *facts; /* NULL: only the one more */
	const void *row;
	const char *extra; /* its name; NULL: none */
	const char *value;
};

/* Writes a line. `labels` may be NULL. */
void spokei_metrics_line(struct spokei_metrics *metrics, const char *family,
			 const struct spokei_labels *labels, uint64_t value);

/* Writes the lines of a histogram of times, with the labels of a row. `facts` may be NULL. */
void spokei_metrics_histogram(struct spokei_metrics *metrics, const char *family,
			      const struct spokei_facts *facts, const void *row,
			      const struct spoke_histogram *histogram);

#endif
