/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads the part of YAML in which rules for Dubbo are written: maps, lists and scalars, indented or
 * in braces and brackets, and comments. All else is an error: anchors, tags, escapes, texts of
 * several lines, several documents. Pure; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_YAML_H
#define SPOKEI_CORE_TEXT_YAML_H

#include <spoke/error.h>

#include <stddef.h>

#define SPOKEI_YAML_MAX 65536u  /* bytes of a text */
#define SPOKEI_YAML_NODES 1024u /* values of a text */
#define SPOKEI_YAML_DEPTH 16u   /* levels of maps and lists */

/* A value; the values that it contains follow it, each with the values inside it. */
struct spokei_yaml {
	enum spokei_yaml_kind {
		SPOKEI_YAML_SCALAR,
		SPOKEI_YAML_MAP,
		SPOKEI_YAML_LIST,
	} kind;
	unsigned size;    /* number of values, with this one */
	const char *key;  /* of an entry of a map; NULL: none */
	const char *text; /* of a scalar, "" if it is left out; NULL: map or list */
};

struct spokei_yaml_error {
	unsigned line; /* from 1 */
	const char *text;
};

/* Reads a text into `values`, the first of which is the whole document. Keys and scalars are copied
 * to `copies`, which is as large as the text with its NUL. Returns 0; or ESYNTAX or ETOOLARGE with
 * *ret_why. */
SPOKE_MUST_USE int spokei_yaml_read(const char *text, char *copies,
				    struct spokei_yaml values[SPOKEI_YAML_NODES],
				    struct spokei_yaml_error *ret_why);

/* Returns the value after `at` inside the map or list `in`, where `at` NULL means the first one;
 * NULL if there is none, or if `in` is a scalar. */
const struct spokei_yaml *spokei_yaml_next(const struct spokei_yaml *in,
					   const struct spokei_yaml *at);

/* Returns the last entry of a map with this key; NULL if there is none, or no map. */
const struct spokei_yaml *spokei_yaml_get(const struct spokei_yaml *map, const char *key);

#endif
