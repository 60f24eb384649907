/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of configuration keys, and how URLs and options set them. Every source fills or changes a
 * struct spokei_key_values, the later source over the earlier one. Numbers are in the unit of the
 * key; for keys with names (cluster, loadbalance) the number is the index in the catalog. On the
 * engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_KEYS_H
#define SPOKEI_CLUSTER_CONFIG_KEYS_H

#include "cluster/config/table.h"

#include <spoke/url.h>

struct spoke_engine;

/* Sources of a value, in the order in which they are laid over one another. */
enum spokei_origin {
	SPOKEI_FROM_DEFAULT,
	SPOKEI_FROM_PROVIDER, /* the URL that a provider published */
	SPOKEI_FROM_FILE,
	SPOKEI_FROM_URL,
	SPOKEI_FROM_CODE, /* options of the program */
	SPOKEI_FROM_RULE, /* an operator's rule in the registry */
};

/* The value of each key, and its source. */
struct spokei_key_values {
	uint64_t of[SPOKEI_KEYS];        /* the default unless `said` */
	unsigned line[SPOKEI_KEYS];      /* of the file, for SPOKEI_FROM_FILE */
	unsigned char from[SPOKEI_KEYS]; /* enum spokei_origin */
	bool said[SPOKEI_KEYS];          /* a source has set the key */
};

/* Sets all defaults. */
void spokei_keys_preset(struct spokei_key_values *values);

/* Copies every key that `over` sets. */
void spokei_keys_lay(struct spokei_key_values *values, const struct spokei_key_values *over);

/* Copies the keys that a reload applies to running objects. */
void spokei_keys_renew(struct spokei_key_values *values, const struct spokei_key_values *read);

/* Sets a key, also to 0. `line` is that of the file, else 0. */
void spokei_keys_put(struct spokei_key_values *values, enum spokei_key key, uint64_t number,
		     enum spokei_origin from, unsigned line);

/* Sets a key from code; a `number` of 0 means "not set" and changes nothing. The range is not
 * checked. */
void spokei_keys_set(struct spokei_key_values *values, enum spokei_key key, uint64_t number);

/* Sets a key from code to 0, which spokei_keys_set() ignores. */
void spokei_keys_set_none(struct spokei_key_values *values, enum spokei_key key);

/*
 * Sets the keys that a URL contains for all methods. Checks the keys of single methods too. Returns
 * 0, or an error if a key is unknown or a value is invalid; the engine's newest event explains it.
 */
SPOKE_MUST_USE int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
				    struct spokei_key_values *values);

/* Sets the keys that a URL contains for one method. spokei_keys_read() has checked the URL. */
void spokei_keys_read_method(const struct spoke_url *url, const char *method,
			     enum spokei_origin from, struct spokei_key_values *values);

/* Sets the keys that a consumer takes from a provider's URL. Ignores invalid values. */
void spokei_keys_read_provided(const struct spoke_url *url, enum spokei_origin from,
			       struct spokei_key_values *values);

/* Sets a key from an option in code; 0 means "not set". Returns ERANGE, with an event, if the
 * option is outside the key's range. */
SPOKE_MUST_USE int spokei_keys_overrule(struct spoke_engine *engine,
					struct spokei_key_values *values, enum spokei_key key,
					uint64_t option);

/* Same for an interval, where SPOKE_OFF sets 0: no such check. */
SPOKE_MUST_USE int spokei_keys_overrule_interval(struct spoke_engine *engine,
						 struct spokei_key_values *values,
						 enum spokei_key key, uint64_t option);

/* Same for retries, where SPOKE_NONE sets 0. */
SPOKE_MUST_USE int spokei_keys_overrule_retries(struct spoke_engine *engine,
						struct spokei_key_values *values, uint32_t option);

/* Same for the serialization. Returns EINVAL, with an event, for a number that is none of enum
 * spoke_serialization. */
SPOKE_MUST_USE int spokei_keys_overrule_serialization(struct spoke_engine *engine,
						      struct spokei_key_values *values,
						      unsigned option);

/* Returns the name of a key in URLs. */
const char *spokei_keys_name(enum spokei_key key);

/* Returns whether a URL may contain this key although it is not read here: other code reads it, or
 * only Dubbo uses it. */
bool spokei_keys_is_other(const char *key);

/* Returns whether this key is one of the table whose value is a secret. */
bool spokei_keys_is_secret(const char *key);

#endif
