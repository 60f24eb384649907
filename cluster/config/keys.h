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

/* The value of each key. */
struct spokei_key_values {
	uint64_t of[SPOKEI_KEYS]; /* the default unless `said` */
	bool said[SPOKEI_KEYS];   /* a source has set the key */
};

/* Sets all defaults. */
void spokei_keys_preset(struct spokei_key_values *values);

/* Copies every key that `over` sets. */
void spokei_keys_lay(struct spokei_key_values *values, const struct spokei_key_values *over);

/* Sets a key; a `number` of 0 means "not set" and changes nothing. The range is not checked. */
void spokei_keys_set(struct spokei_key_values *values, enum spokei_key key, uint64_t number);

/* Sets a key to 0, which spokei_keys_set() ignores. */
void spokei_keys_set_none(struct spokei_key_values *values, enum spokei_key key);

/*
 * Sets the keys that a URL contains for all methods. Checks the keys of single methods too. Returns
 * 0, or an error if a key is unknown or a value is invalid; the engine's newest event explains it.
 */
SPOKE_MUST_USE int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
				    struct spokei_key_values *values);

/* Sets the keys that a URL contains for one method. spokei_keys_read() has checked the URL. */
void spokei_keys_read_method(const struct spoke_url *url, const char *method,
			     struct spokei_key_values *values);

/* Sets the keys that a consumer takes from a provider's URL. Ignores invalid values. */
void spokei_keys_read_provided(const struct spoke_url *url, struct spokei_key_values *values);

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

#endif
