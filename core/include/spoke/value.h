/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values: what calls carry. A value is msgpack in memory; it is checked once and then read in
 * place, without copies, without an object tree and without allocation. Views are small, passed by
 * value, and point into the checked bytes: they live exactly as long as those.
 *
 * All functions for reading bear bytes that were never checked: they then tell less, but touch
 * nothing outside of the view. Stateless; any thread. A builder belongs to one thread at a time.
 */
#ifndef SPOKE_VALUE_H
#define SPOKE_VALUE_H

#include <spoke/env.h>

SPOKE_BEGIN_DECLS

struct spokei_buffer;

/* Bytes that belong to somebody else. */
struct spoke_span {
	const void *data;
	size_t len;
};

enum spoke_value_type {
	SPOKE_VALUE_NONE, /* there is no value, or no readable one */
	SPOKE_VALUE_NIL,
	SPOKE_VALUE_BOOL,
	SPOKE_VALUE_INT,    /* -2^63 to 2^64 - 1 */
	SPOKE_VALUE_DOUBLE, /* packed in 4 or 8 bytes */
	SPOKE_VALUE_STR,    /* should be UTF-8; nobody has looked */
	SPOKE_VALUE_BIN,
	SPOKE_VALUE_ARRAY,
	SPOKE_VALUE_MAP,
	SPOKE_VALUE_EXT,
};

/* One value. { 0 } is no value: its type is NONE, and every getter says SPOKE_ETYPE. */
struct spoke_value {
	const unsigned char *data; /* its first byte */
	size_t len;                /* its bytes, with all that it contains */
};

#define SPOKE_VALUE_DEPTH_MAX 32u             /* arrays and maps inside each other */
#define SPOKE_VALUE_ITEMS_MAX 65536u          /* values in all, keys and containers included */
#define SPOKE_VALUE_OBJECT_BYTES_MAX 4194304u /* what a tree of them would take in memory */
#define SPOKE_VALUE_OBJECT_BYTES 24u          /* ... for each value */
#define SPOKE_VALUE_BYTES_MAX 8388608u        /* packed */

/* What is accepted and what is built. All fields may be 0: the macro above stands at each. */
struct spoke_value_limits {
	uint32_t depth_max;      /* at most SPOKE_VALUE_DEPTH_MAX */
	uint32_t items_max;      /* beyond: SPOKE_ETOOLARGE */
	size_t object_bytes_max; /* beyond: SPOKE_ETOOLARGE */
	size_t bytes_max;        /* beyond: SPOKE_ETOOLARGE */
};

/*
 * Says whether the bytes are exactly one value within the limits (NULL: all defaults), and gives a
 * view of it. Allocates nothing; what a header claims and the bytes cannot keep costs no more than
 * the header. Returns 0, SPOKE_ETRUNCATED, SPOKE_ETRAILING, SPOKE_ECORRUPT, SPOKE_EDEPTH,
 * SPOKE_ETOOLARGE, or SPOKE_EINVAL for limits that cannot be.
 */
SPOKE_API SPOKE_MUST_USE int spoke_value_check(const void *bytes, size_t len,
					       const struct spoke_value_limits *limits,
					       struct spoke_value *ret_value);

/* A place in a row of values: of an array, of a map (key, value, key, value), or of bytes. */
struct spoke_cursor {
	const unsigned char *at;
	const unsigned char *end;
	uint64_t left; /* values not yet read; of bytes: UINT64_MAX */
};

/* As spoke_value_check(), for any number of values one after another, none included; `ret_count`
 * may be NULL. */
SPOKE_API SPOKE_MUST_USE int spoke_values_check(const void *bytes, size_t len,
						const struct spoke_value_limits *limits,
						struct spoke_cursor *ret_values, size_t *ret_count);

/* --- reading one value: 0, SPOKE_ETYPE, or SPOKE_ERANGE where it says so; nothing is written then
 */

SPOKE_API enum spoke_value_type spoke_value_type(struct spoke_value value);

/* "map" and so on; never NULL. */
SPOKE_API const char *spoke_value_type_name(enum spoke_value_type type);

SPOKE_API bool spoke_value_is_nil(struct spoke_value value);

SPOKE_API SPOKE_MUST_USE int spoke_value_bool(struct spoke_value value, bool *ret);

/* Integers of any width; SPOKE_ERANGE: it does not fit. A double is no integer, not even 1.0. */
SPOKE_API SPOKE_MUST_USE int spoke_value_i64(struct spoke_value value, int64_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_u64(struct spoke_value value, uint64_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_i32(struct spoke_value value, int32_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_u32(struct spoke_value value, uint32_t *ret);

/* Also NaN and the infinities. An integer is taken if a double can hold it, else SPOKE_ERANGE. */
SPOKE_API SPOKE_MUST_USE int spoke_value_double(struct spoke_value value, double *ret);

/* The content, in place, without an end mark; it may contain NUL and need not be UTF-8. */
SPOKE_API SPOKE_MUST_USE int spoke_value_str(struct spoke_value value, struct spoke_span *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_bin(struct spoke_value value, struct spoke_span *ret);

/* A str or a bin: peers from before bin was invented send the one for the other. */
SPOKE_API SPOKE_MUST_USE int spoke_value_bytes(struct spoke_value value, struct spoke_span *ret);

SPOKE_API SPOKE_MUST_USE int spoke_value_ext(struct spoke_value value, int8_t *ret_type,
					     struct spoke_span *ret);

/* How many values, or how many pairs. */
SPOKE_API SPOKE_MUST_USE int spoke_value_array_len(struct spoke_value value, size_t *ret);
SPOKE_API SPOKE_MUST_USE int spoke_value_map_len(struct spoke_value value, size_t *ret);

/* The same bytes. The same number packed in another width is not equal. */
SPOKE_API bool spoke_value_equal(struct spoke_value a, struct spoke_value b);

/*
 * The value of the first pair of a map whose key is this str, by going through the map. Returns 0,
 * SPOKE_ETYPE if it is no map, or SPOKE_ENOENT. `key` is borrowed for the call.
 */
SPOKE_API SPOKE_MUST_USE int spoke_value_get(struct spoke_value map, const char *key,
					     struct spoke_value *ret);

/* --- reading many */

SPOKE_API SPOKE_MUST_USE int spoke_cursor_array(struct spoke_value array, struct spoke_cursor *ret);
SPOKE_API SPOKE_MUST_USE int spoke_cursor_map(struct spoke_value map, struct spoke_cursor *ret);

/* Over bytes that hold values one after another. */
SPOKE_API struct spoke_cursor spoke_cursor_bytes(struct spoke_span bytes);

/* The next value; false at the end, and where bytes nobody has checked cannot be read on. */
SPOKE_API SPOKE_MUST_USE bool spoke_cursor_next(struct spoke_cursor *cursor,
						struct spoke_value *ret);

/* The next pair of a map; false at the end. */
SPOKE_API SPOKE_MUST_USE bool spoke_cursor_next_pair(struct spoke_cursor *cursor,
						     struct spoke_value *ret_key,
						     struct spoke_value *ret_value);

/* What the cursor has not read yet, as bytes. */
SPOKE_API struct spoke_span spoke_cursor_rest(const struct spoke_cursor *cursor);

/*
 * Writes the value for a log: much like JSON, printable, in one line, cut with "..." where `size`
 * (with the end mark) or the depth does not suffice. Bytes that are no text are shown as \xff.
 * Returns the length of the text.
 */
SPOKE_API size_t spoke_value_print(struct spoke_value value, char *text, size_t size);

/* --- building */

/*
 * Packs values one after another, each in the fewest bytes. An error stays: the functions after it
 * do nothing, and finishing reports it. All fields are the builder's; between init and fini it must
 * not be copied.
 */
struct spoke_builder {
	unsigned char *bytes; /* what was packed; NULL while there is no memory */
	size_t len;
	size_t capacity;
	size_t max;                   /* bytes it may become */
	const struct spoke_env *env;  /* whose memory it is; NULL: the caller's or the buffer's */
	struct spokei_buffer *buffer; /* to whose end it is written; NULL: to none */
	size_t start;                 /* ... behind so many bytes */
	size_t committed;             /* ... and so many bytes the buffer knows of */
	size_t count;                 /* values finished that are in no other */
	int error;
	uint32_t items;                       /* values that may still be announced */
	uint32_t depth;                       /* arrays and maps that are open */
	uint32_t left;                        /* values that the innermost still takes */
	uint32_t open[SPOKE_VALUE_DEPTH_MAX]; /* left, of those around it */
	struct spoke_value_limits limits;
};

/* Builds in memory of the environment (borrowed while the builder is used), which grows with what
 * is packed. `limits`: borrowed for the call; NULL: all defaults. Undo with fini. */
SPOKE_API void spoke_builder_init(struct spoke_builder *builder, const struct spoke_env *env,
				  const struct spoke_value_limits *limits);

/* Builds in the caller's memory (borrowed while the builder or what it built is used); what does
 * not fit is SPOKE_ETOOLARGE. Nothing to undo. */
SPOKE_API void spoke_builder_init_fixed(struct spoke_builder *builder, void *memory, size_t size,
					const struct spoke_value_limits *limits);

/* Forgets what was packed, and the error; keeps memory and limits. */
SPOKE_API void spoke_builder_reset(struct spoke_builder *builder);

/* Gives the environment's memory back. */
SPOKE_API void spoke_builder_fini(struct spoke_builder *builder);

/*
 * What was packed, any number of values; it stays the builder's, until reset or fini. Returns 0 or
 * what went wrong first: SPOKE_ENOMEM, SPOKE_EDEPTH, SPOKE_ETOOLARGE (items or bytes),
 * SPOKE_ETRUNCATED (an array or map was given less than announced), SPOKE_EINVAL (the limits, or a
 * NULL that should be bytes), or what spoke_pack_raw() found. Nothing may be packed after it.
 */
SPOKE_API SPOKE_MUST_USE int spoke_builder_finish(struct spoke_builder *builder,
						  struct spoke_span *ret_values);

/* The same for what has to be one value: SPOKE_ETRUNCATED if there is none, SPOKE_ETRAILING if
 * there are more, be it that an array or map was given more than announced. */
SPOKE_API SPOKE_MUST_USE int spoke_builder_finish_value(struct spoke_builder *builder,
							struct spoke_value *ret_value);

SPOKE_API void spoke_pack_nil(struct spoke_builder *builder);
SPOKE_API void spoke_pack_bool(struct spoke_builder *builder, bool value);
SPOKE_API void spoke_pack_i64(struct spoke_builder *builder, int64_t value);
SPOKE_API void spoke_pack_u64(struct spoke_builder *builder, uint64_t value);
SPOKE_API void spoke_pack_double(struct spoke_builder *builder, double value);
SPOKE_API void spoke_pack_float(struct spoke_builder *builder, float value);
SPOKE_API void spoke_pack_str(struct spoke_builder *builder, const char *text, size_t len);

/* A str that ends at NUL. */
SPOKE_API void spoke_pack_text(struct spoke_builder *builder, const char *text);
SPOKE_API void spoke_pack_bin(struct spoke_builder *builder, const void *bytes, size_t len);
SPOKE_API void spoke_pack_ext(struct spoke_builder *builder, int8_t type, const void *bytes,
			      size_t len);

/* Announces `count` values, or pairs; exactly so many have to follow. */
SPOKE_API void spoke_pack_array(struct spoke_builder *builder, size_t count);
SPOKE_API void spoke_pack_map(struct spoke_builder *builder, size_t count);

/* Any number of values that are packed already; they are checked, under the builder's limits. More
 * than the array or map around them still takes is SPOKE_ETRAILING. */
SPOKE_API void spoke_pack_raw(struct spoke_builder *builder, struct spoke_span values);

SPOKE_END_DECLS

#endif
