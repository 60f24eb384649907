/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of settings. The table says of each its type, range, default, description, sections,
 * fields in options, and whether a reload applies it to running objects; it is constant, for any
 * thread. Every source of values fills or changes a struct spokei_key_values, the later source over
 * the earlier one. Numbers are in the unit of the key; for keys with names (cluster, loadbalance)
 * the number is the index in the catalog. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_CONFIG_KEYS_H
#define SPOKEI_CLUSTER_CONFIG_KEYS_H

#include "core/text/option.h"

struct spoke_engine;
struct spoke_url;

/* --- the table */

#define SPOKEI_TIMEOUT_NS UINT64_C(1000000000)
#define SPOKEI_TIMEOUT_MAX_NS UINT64_C(2147483647000000) /* 2^31 - 1 ms, as Java's int */
#define SPOKEI_RETRIES_MAX 100u
#define SPOKEI_PERIOD_MIN_NS UINT64_C(10000000)
#define SPOKEI_WEIGHT_MAX 1000000u
#define SPOKEI_ORIGIN_MAX 280u /* bytes of an origin of comet.origins */

/* The number of each setting: SPOKEI_KEY_TIMEOUT and so on. */
#define SETTING(key, ...) SPOKEI_KEY_##key,
enum spokei_key {
#include "cluster/config/rows.h"
	SPOKEI_KEYS,
};

enum {
	SPOKEI_KEYS_OF_METHODS = SPOKEI_KEY_HEARTBEAT, /* those before it are of calls */
	SPOKEI_KEYS_OF_URLS = SPOKEI_KEY_REGISTRY_URL,
};

/* Sections of a file, in the order in which they are listed. */
enum spokei_section {
	SPOKEI_IN_CONSUMER,
	SPOKEI_IN_SERVICE,
	SPOKEI_IN_METHOD,
	SPOKEI_IN_PROVIDER,
	SPOKEI_IN_REGISTRY,
	SPOKEI_IN_LEASE,
	SPOKEI_IN_COMET,
	SPOKEI_IN_ENGINE,
	SPOKEI_SECTIONS,
};

/* Values of the key "tls". */
enum spokei_tls_mode {
	SPOKEI_TLS_OFF,
	SPOKEI_TLS_ON,
	SPOKEI_TLS_OPTIONAL, /* of a provider: plain connections, too */
};

/* Structs with fields of keys: options of programs, then settings in force. */
enum spokei_fields_of {
	SPOKEI_AT_NONE,
	SPOKEI_AT_CONSUMER,
	SPOKEI_AT_METHOD,
	SPOKEI_AT_PROVIDER,
	SPOKEI_AT_TLS,
	SPOKEI_AT_LEASES,
	SPOKEI_AT_COMET,
	SPOKEI_AT_ENGINE,
	SPOKEI_AT_CALL,
	SPOKEI_AT_LINK,
	SPOKEI_AT_FILES, /* of TLS */
	SPOKEI_AT_HANDSHAKES,
	SPOKEI_AT_QUOTA,
	SPOKEI_AT_DIRECTORY,
	SPOKEI_AT_JOURNAL,
};

enum spokei_field_type {
	SPOKEI_FIELD_TEXT,
	SPOKEI_FIELD_BOOL,
	SPOKEI_FIELD_32, /* also an enum */
	SPOKEI_FIELD_64,
	SPOKEI_FIELD_OBJECT, /* a policy or a balancer, which has a name of the key */
};

#define SPOKEI_FIELDS_MAX 4u

/* A field of such a struct. */
struct spokei_field {
	uint8_t of;   /* enum spokei_fields_of */
	uint8_t type; /* enum spokei_field_type */
	bool inverts; /* true is "false" */
	uint16_t at;  /* offset in the struct */
	const char *name;
};

#define SPOKEI_CHECK_WHY 320u /* bytes of a sentence, with the NUL */

/* The text of a file that a row checks. */
struct spokei_check {
	const struct spoke_env *env;
	enum spokei_key key;
	enum spokei_section section;
	char *why; /* room of SPOKEI_CHECK_WHY bytes for a sentence */
};

/* The sentence of a check without memory: this very string. */
extern const char spokei_check_no_memory[];

struct spokei_key_row {
	struct spokei_option option;
	unsigned sections;  /* bits 1 << section: where the key may stand */
	bool live;          /* a reload applies the key to running objects */
	bool of_urls;       /* allowed in URLs, but read by other code */
	bool is_url;        /* the value is a URL or a list of URLs */
	bool secret;        /* no message shows the value */
	bool none_in_code;  /* SPOKE_NONE sets 0 */
	const char *preset; /* text of a default that is not a number, else NULL */
	const char *words;  /* of a name: the enum of code, whose 0 is "not set" and 1 the first */
	/* Of a name: the object that it names; NULL: none are. */
	const void *(*object)(unsigned index);
	/* Checks of a value, and of each URL of a value, beyond its form; NULL: none. They return
	 * NULL, or a sentence, which may be in of->why. */
	const char *(*check)(const struct spokei_check *of, const char *value);
	const char *(*check_url)(const struct spokei_check *of, const struct spoke_url *url);
	struct spokei_field fields[SPOKEI_FIELDS_MAX];
};

/* Returns the row of a key. */
const struct spokei_key_row *spokei_key_row(enum spokei_key key);

/* Returns the field of a key in a struct of options; NULL: it has none. */
const struct spokei_field *spokei_key_field(enum spokei_key key, enum spokei_fields_of of);

/* Returns whether the field is a pointer, to a text or an object; else it is a number. */
bool spokei_field_is_pointer(const struct spokei_field *field);

/* Reads and writes a number in `options`. */
uint64_t spokei_field_get(const struct spokei_field *field, const void *options);
void spokei_field_set(const struct spokei_field *field, void *options, uint64_t number);

/* The same for a pointer, which is borrowed; NULL: there is none. */
const void *spokei_field_pointer(const struct spokei_field *field, const void *options);
void spokei_field_set_pointer(const struct spokei_field *field, void *options, const void *to);

/* Writes a value as a file would contain it, or the text of a default that is not a number
 * (`preset`). For texts: "". */
void spokei_key_print(enum spokei_key key, uint64_t number, bool preset, char *out, size_t size);

/* Returns whether the value of a key is a text or a list. */
bool spokei_key_is_text(enum spokei_key key);

/* Returns the name of a key in files: in [registry], [lease] and [comet] without the prefix, e.g.
 * "registry.". */
const char *spokei_key_in_file(enum spokei_key key);

/* Finds a key by its name in URLs, or by that in a section of files. Returns SPOKEI_KEYS if there
 * is none. */
enum spokei_key spokei_key_find(const char *name);
enum spokei_key spokei_key_find_in(enum spokei_section section, const char *name);

/* Returns the first word of a section's heading, e.g. "consumer" or "service". */
const char *spokei_section_word(enum spokei_section section);

/* Returns whether a heading of this kind contains a name, e.g. "service.NAME". */
bool spokei_section_is_named(enum spokei_section section);

/* Writes sections, of which `left` has the bits, each between `before` and `behind`, e.g.
 * "[consumer], [service.NAME]". */
void spokei_sections_print(unsigned left, const char *before, const char *behind, char *out,
			   size_t size);

/* --- values */

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
	uint64_t of[SPOKEI_KEYS];        /* the default, if no source sets the key */
	const char *text[SPOKEI_KEYS];   /* of a text that is no secret; NULL: none */
	const void *object[SPOKEI_KEYS]; /* of a name: the program's own object; NULL: none */
	unsigned line[SPOKEI_KEYS];      /* of the file, for SPOKEI_FROM_FILE */
	unsigned char from[SPOKEI_KEYS]; /* enum spokei_origin */
};

/* Values that are kept: only of keys that a source has set, in their order, because an owner has
 * hundreds of keys and sets few. Texts are borrowed. */
struct spokei_kept_values {
	unsigned count;
	struct spokei_kept_value {
		uint64_t number;
		const void *to; /* a text, or an object; NULL: none */
		unsigned line;
		uint8_t key;  /* enum spokei_key */
		uint8_t from; /* enum spokei_origin */
	} set[];
};

_Static_assert(SPOKEI_KEYS <= UINT8_MAX, "a kept value has its key");

/* Keeps values; *ret replaces NULL or others, which are freed. Without memory they stay, and
 * SPOKE_ENOMEM is returned. */
SPOKE_MUST_USE int spokei_keys_keep(const struct spoke_env *env,
				    const struct spokei_key_values *values,
				    struct spokei_kept_values **ret);
void spokei_keys_drop(const struct spoke_env *env, struct spokei_kept_values *kept);

/* Returns a kept value; NULL: no source has set the key. `kept` may be NULL. */
const struct spokei_kept_value *spokei_keys_kept(const struct spokei_kept_values *kept,
						 enum spokei_key key);

/* Sets the kept values over others. `kept` may be NULL. */
void spokei_keys_lay(const struct spokei_kept_values *kept, struct spokei_key_values *values);

/* Sets all defaults. */
void spokei_keys_preset(struct spokei_key_values *values);

/* Sets a key, also to 0. `line` is that of the file, else 0. */
void spokei_keys_put(struct spokei_key_values *values, enum spokei_key key, uint64_t number,
		     enum spokei_origin from, unsigned line);

/* Sets a key that is a text, which is borrowed. */
void spokei_keys_put_text(struct spokei_key_values *values, enum spokei_key key, const char *text,
			  enum spokei_origin from, unsigned line);

/* Returns the number of a key that fits into 32 bits. */
static inline uint32_t spokei_keys_u32(const struct spokei_key_values *values, enum spokei_key key)
{
	return (uint32_t)values->of[key];
}

/* Returns the text of a key; "" if there is none. */
static inline const char *spokei_keys_text(const struct spokei_key_values *values,
					   enum spokei_key key)
{
	return values->text[key] ? values->text[key] : "";
}

/* Sets a key from code; a `number` of 0 means "not set" and changes nothing. The range is not
 * checked. */
void spokei_keys_set(struct spokei_key_values *values, enum spokei_key key, uint64_t number);

/*
 * Sets the keys that a URL contains for all methods. Checks the keys of single methods too. Returns
 * 0, or an error if a key is unknown or a value is invalid; the engine's newest event explains it.
 */
SPOKE_MUST_USE int spokei_keys_read(struct spoke_engine *engine, const struct spoke_url *url,
				    struct spokei_key_values *values);

/*
 * Sets the keys whose field in a struct of options is neither 0 nor NULL; SPOKE_OFF and SPOKE_NONE
 * set 0 where that is allowed. Texts are borrowed. `section` has the keys, for checks of texts;
 * `options` may be NULL. Returns 0, ERANGE, EINVAL or ENOMEM, with an event.
 */
SPOKE_MUST_USE int spokei_keys_read_code(struct spoke_engine *engine,
					 struct spokei_key_values *values,
					 enum spokei_section section, enum spokei_fields_of of,
					 const void *options);

/* Writes why a number is not in the range of its key. */
void spokei_key_print_refusal(enum spokei_key key, uint64_t number,
			      char why[SPOKEI_OPTION_WHY_MAX]);

/* Writes the keys that may stand in one of the sections to their fields in a struct. */
void spokei_keys_fill(const struct spokei_key_values *values, unsigned sections,
		      enum spokei_fields_of of, void *settings);

/* Returns the name of a key in URLs. */
const char *spokei_keys_name(enum spokei_key key);

/* Returns whether a URL may contain this key although it is not read here: other code reads it, or
 * only Dubbo uses it. */
bool spokei_keys_is_other(const char *name);

/* Returns whether this key is one of the table whose value is a secret. */
bool spokei_keys_is_secret(const char *name);

#endif
