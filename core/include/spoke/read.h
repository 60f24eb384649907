/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading in a line: values go into variables of C and C++, by the types of the pointers.
 *
 *     struct spoke_reader args = spoke_request_reader(request);
 *     char name[64];
 *     uint32_t count;
 *     bool flag;
 *
 *     if (SPOKE_READ(&args, SPOKE_TEXT(name), &count, &flag))
 *             spoke_reader_why(&args, text, sizeof(text));
 *
 * The sentence is e.g. "argument 2: integer wanted, text came". SPOKE_READ_REQUEST() of
 * <spoke/provider.h> answers the request with it. After an error no variable has changed.
 *
 * The compiler accepts pointers to bool, to integers of every type but char, to float and double,
 * to struct spoke_span (a text in place) and to struct spoke_value (anything), and the results of
 * the macros SPOKE_TEXT(), SPOKE_BYTES(), SPOKE_OPTIONAL() and SPOKE_SKIP. One SPOKE_READ() takes 1
 * to SPOKE_ARGS_MAX of them; more do not compile. Integers must fit their variable.
 *
 * Safe on hostile and on unchecked values. Stateless but for the reader; any thread.
 */
#ifndef SPOKE_READ_H
#define SPOKE_READ_H

#include <spoke/args.h>

SPOKE_BEGIN_DECLS

/* Kinds of targets. */
enum spoke_into_kind {
	SPOKE_INTO_BOOL,
	SPOKE_INTO_INT,   /* signed, of `size` bytes */
	SPOKE_INTO_UINT,  /* unsigned, of `size` bytes */
	SPOKE_INTO_FLOAT, /* float or double, by `size` */
	SPOKE_INTO_SPAN,  /* a str in place */
	SPOKE_INTO_TEXT,  /* a str, copied with a NUL into `size` bytes */
	SPOKE_INTO_BYTES, /* a str or bin in place */
	SPOKE_INTO_VALUE, /* any value in place */
	SPOKE_INTO_SKIP,  /* any value, which is not kept */
	SPOKE_INTO_MAP,   /* of SPOKE_READ_MAP() itself; no target */
};

/* The target of one value: a variable of the caller, borrowed for the call. */
struct spoke_into {
	void *to;
	size_t size; /* bytes at `to` */
	enum spoke_into_kind kind;
	bool optional;   /* nil or no value is no error, and leaves the variable as it is */
	const char *key; /* for SPOKE_READ_MAP() */
};

/* Reads values in order. Made by the functions below; kept by the caller. */
struct spoke_reader {
	struct spoke_cursor values; /* the next ones */
	/* Set by the user: more values than wanted, and unknown or repeated keys of a map, are no
	 * errors. The rest can be read by a further SPOKE_READ(). */
	bool lenient;
	const char *noun; /* for a value in the sentence, e.g. "argument" */
	/* The failure, for spoke_reader_why(). */
	int error;
	size_t index; /* number of the value or pair, from 1 on */
	struct spoke_into wanted;
	struct spoke_value came; /* the value, or an unknown key; { 0 }: none */
	bool surplus;            /* there were more values, or an unknown or repeated key */
};

/* Returns a reader of a sequence of values, e.g. of an array or of arguments. `noun` names a value
 * in the sentence, e.g. "argument"; borrowed. */
SPOKE_API struct spoke_reader spoke_reader_values(struct spoke_cursor values, const char *noun);

/* Returns a reader of exactly one value, e.g. the result of a call. */
SPOKE_API struct spoke_reader spoke_reader_of(struct spoke_value value);

/*
 * Reads the next values into `count` targets; called by SPOKE_READ(). Returns 0, or the error of
 * the first value that does not fit: ETYPE, ERANGE (a number for its variable, or a text for its
 * buffer), ETRUNCATED (too few values), ETRAILING (too many), EINVAL (a target). After an error
 * neither the variables nor the position have changed.
 */
SPOKE_API SPOKE_MUST_USE int spoke_read(struct spoke_reader *reader, const struct spoke_into *into,
					size_t count);

/* Reads the next value, a map, into `count` targets by their keys, at most SPOKE_ARGS_MAX; called
 * by SPOKE_READ_MAP(). Returns like spoke_read(), and ENOENT (no such key) or EEXIST (a repeated
 * one). The name of a Java class is no unknown key. */
SPOKE_API SPOKE_MUST_USE int spoke_read_map(struct spoke_reader *reader,
					    const struct spoke_into *into, size_t count);

/* Writes a sentence about the last failure, e.g. "argument 2: integer wanted, text came". Content
 * of a peer is escaped and cut. Returns the length of the text, which is cut to `size` with the
 * NUL. Not after the bytes of the values have ended. */
SPOKE_API size_t spoke_reader_why(const struct spoke_reader *reader, char *text, size_t size);

/* Makes a target. */
static inline struct spoke_into spoke_into_of(void *to, size_t size, enum spoke_into_kind kind)
{
	struct spoke_into into;

	into.to = to;
	into.size = size;
	into.kind = kind;
	into.optional = false;
	into.key = NULL;
	return into;
}

/* Returns a target that may stay as it is. */
static inline struct spoke_into spoke_into_optional(struct spoke_into into)
{
	into.optional = true;
	return into;
}

/* Returns a target with the key of its value in a map. */
static inline struct spoke_into spoke_into_keyed(const char *key, struct spoke_into into)
{
	into.key = key;
	return into;
}

SPOKE_END_DECLS

/* A target that takes a value and forgets it, and one for a str or a bin in place. */
#define SPOKE_SKIP spoke_into_of(NULL, 0, SPOKE_INTO_SKIP)
#define SPOKE_BYTES(span) spoke_into_bytes(span)

/* A target that stays as it is if the value is nil, or absent. Absent arguments are the last ones.
 */
#define SPOKE_OPTIONAL(target) spoke_into_optional(SPOKE_INTO(target))

/* Makes a target for a str or a bin in place. */
static inline struct spoke_into spoke_into_bytes(struct spoke_span *span)
{
	return spoke_into_of(span, sizeof(*span), SPOKE_INTO_BYTES);
}

#ifndef __cplusplus

/* Returns a target that exists already. */
static inline struct spoke_into spoke_into_same(struct spoke_into into, size_t size)
{
	(void)size;
	return into;
}

/* Makes a target for a bool. */
static inline struct spoke_into spoke_into_bool(bool *to, size_t size)
{
	return spoke_into_of(to, size, SPOKE_INTO_BOOL);
}

/* Makes a target for a signed integer of `size` bytes. */
static inline struct spoke_into spoke_into_int(void *to, size_t size)
{
	return spoke_into_of(to, size, SPOKE_INTO_INT);
}

/* Makes a target for an unsigned integer of `size` bytes. */
static inline struct spoke_into spoke_into_uint(void *to, size_t size)
{
	return spoke_into_of(to, size, SPOKE_INTO_UINT);
}

/* Makes a target for a float or a double, by its size. */
static inline struct spoke_into spoke_into_float(void *to, size_t size)
{
	return spoke_into_of(to, size, SPOKE_INTO_FLOAT);
}

/* Makes a target for a text in place. */
static inline struct spoke_into spoke_into_span(struct spoke_span *to, size_t size)
{
	return spoke_into_of(to, size, SPOKE_INTO_SPAN);
}

/* Makes a target for any value. */
static inline struct spoke_into spoke_into_value(struct spoke_value *to, size_t size)
{
	return spoke_into_of(to, size, SPOKE_INTO_VALUE);
}

/* One target, by the type of the pointer. */
#define SPOKE_INTO(x)                                                                              \
	_Generic((x), _Bool *: spoke_into_bool, signed char *: spoke_into_int,                     \
		 short *: spoke_into_int, int *: spoke_into_int, long *: spoke_into_int,           \
		 long long *: spoke_into_int, unsigned char *: spoke_into_uint,                    \
		 unsigned short *: spoke_into_uint, unsigned int *: spoke_into_uint,               \
		 unsigned long *: spoke_into_uint, unsigned long long *: spoke_into_uint,          \
		 float *: spoke_into_float, double *: spoke_into_float,                            \
		 struct spoke_span *: spoke_into_span, struct spoke_value *: spoke_into_value,     \
		 struct spoke_into: spoke_into_same)((x), SPOKE_INTO_SIZE(x))
/* Bytes of the variable; any number for a target that exists. */
#define SPOKE_INTO_SIZE(x) sizeof(*_Generic((x), struct spoke_into : (char *)NULL, default : (x)))

/* A target for a text that ends with a NUL: an array of char, which takes sizeof(array) - 1 bytes.
 * A text that contains a NUL is refused. A pointer does not compile. */
#define SPOKE_TEXT(array)                                                                          \
	spoke_into_of(_Generic(&(array), char(*)[sizeof(array)]                                    \
			       : (array)),                                                         \
		      sizeof(array), SPOKE_INTO_TEXT)

/* Arrays of targets, and of targets with their keys. */
#define SPOKE_INTO_ARRAY(...)                                                                      \
	((const struct spoke_into[]){ SPOKE_ARGS_EACH(SPOKE_INTO, __VA_ARGS__) })
#define SPOKE_INTO_PAIR(key, x) spoke_into_keyed((key), SPOKE_INTO(x))
#define SPOKE_PAIRS_NAME(count) SPOKE_ARGS_JOIN(SPOKE_PAIRS_EACH_, count)
#define SPOKE_PAIRS_EACH(m, ...) SPOKE_PAIRS_NAME(SPOKE_ARGS_COUNT(__VA_ARGS__))(m, __VA_ARGS__)
#define SPOKE_PAIRS_EACH_2(m, a, b) m(a, b)
#define SPOKE_PAIRS_EACH_4(m, a, b, c, d) m(a, b), m(c, d)
#define SPOKE_PAIRS_EACH_6(m, a, b, c, d, e, f) m(a, b), m(c, d), m(e, f)
#define SPOKE_PAIRS_EACH_8(m, a, b, c, d, e, f, g, h) m(a, b), m(c, d), m(e, f), m(g, h)
#define SPOKE_PAIRS_EACH_10(m, a, b, c, d, e, f, g, h, i, j)                                       \
	SPOKE_PAIRS_EACH_8(m, a, b, c, d, e, f, g, h), m(i, j)
#define SPOKE_PAIRS_EACH_12(m, a, b, c, d, e, f, g, h, i, j, k, l)                                 \
	SPOKE_PAIRS_EACH_8(m, a, b, c, d, e, f, g, h), m(i, j), m(k, l)
#define SPOKE_PAIRS_EACH_14(m, a, b, c, d, e, f, g, h, i, j, k, l, n, o)                           \
	SPOKE_PAIRS_EACH_8(m, a, b, c, d, e, f, g, h), m(i, j), m(k, l), m(n, o)
#define SPOKE_PAIRS_EACH_16(m, a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)                     \
	SPOKE_PAIRS_EACH_8(m, a, b, c, d, e, f, g, h), SPOKE_PAIRS_EACH_8(m, i, j, k, l, n, o, p, q)

/* An array of the targets of keys. */
#define SPOKE_INTO_PAIRS(...)                                                                      \
	((const struct spoke_into[]){ SPOKE_PAIRS_EACH(SPOKE_INTO_PAIR, __VA_ARGS__) })

#else

/* The same in C++, by overloads; other types have none. */
template <typename T> spoke_into spoke_target(const T &other) = delete;

inline spoke_into spoke_target(const spoke_into &into)
{
	return into;
}

inline spoke_into spoke_target(bool *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_BOOL);
}

inline spoke_into spoke_target(signed char *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_INT);
}

inline spoke_into spoke_target(short *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_INT);
}

inline spoke_into spoke_target(int *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_INT);
}

inline spoke_into spoke_target(long *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_INT);
}

inline spoke_into spoke_target(long long *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_INT);
}

inline spoke_into spoke_target(unsigned char *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_UINT);
}

inline spoke_into spoke_target(unsigned short *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_UINT);
}

inline spoke_into spoke_target(unsigned int *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_UINT);
}

inline spoke_into spoke_target(unsigned long *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_UINT);
}

inline spoke_into spoke_target(unsigned long long *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_UINT);
}

inline spoke_into spoke_target(float *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_FLOAT);
}

inline spoke_into spoke_target(double *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_FLOAT);
}

inline spoke_into spoke_target(spoke_span *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_SPAN);
}

inline spoke_into spoke_target(spoke_value *to)
{
	return spoke_into_of(to, sizeof(*to), SPOKE_INTO_VALUE);
}

/* A target for a text: an array of char. */
template <size_t N> inline spoke_into spoke_target_text(char (&text)[N])
{
	return spoke_into_of(text, N, SPOKE_INTO_TEXT);
}

/* The memory of targets, until the end of the full expression. */
template <size_t N> struct spoke_into_memory {
	spoke_into items[N]; /* NOLINT(misc-non-private-member-variables-in-classes) */
};

/* Make targets, or pairs of keys and targets. */
template <typename... T> inline spoke_into_memory<sizeof...(T)> spoke_target_all(const T &...each)
{
	static_assert(sizeof...(T) >= 1 && sizeof...(T) <= SPOKE_ARGS_MAX,
		      "SPOKE_READ takes 1 to SPOKE_ARGS_MAX targets");
	return { { spoke_target(each)... } };
}

/* Write targets with their keys. */
inline void spoke_target_keyed(spoke_into *)
{
}

template <typename T, typename... Rest>
inline void spoke_target_keyed(spoke_into *into, const char *key, const T &target,
			       const Rest &...rest)
{
	*into = spoke_into_keyed(key, spoke_target(target));
	spoke_target_keyed(into + 1, rest...);
}

template <typename... T>
inline spoke_into_memory<sizeof...(T) / 2> spoke_target_pairs(const T &...each)
{
	static_assert(sizeof...(T) >= 2 && sizeof...(T) <= SPOKE_ARGS_MAX && sizeof...(T) % 2 == 0,
		      "SPOKE_READ_MAP takes keys and targets in turn, SPOKE_ARGS_MAX of both");
	spoke_into_memory<sizeof...(T) / 2> all;

	spoke_target_keyed(all.items, each...);
	return all;
}

/* As in C. */
#define SPOKE_INTO(x) spoke_target(x)
#define SPOKE_TEXT(array) spoke_target_text(array)
#define SPOKE_INTO_ARRAY(...) spoke_target_all(__VA_ARGS__).items
#define SPOKE_INTO_PAIRS(...) spoke_target_pairs(__VA_ARGS__).items

#endif

/* Read the next values, and the next value as a map of these keys: see spoke_read() and
 * spoke_read_map(). `reader` is a pointer. */
#define SPOKE_READ(reader, ...)                                                                    \
	spoke_read((reader), SPOKE_INTO_ARRAY(__VA_ARGS__), SPOKE_ARGS_COUNT(__VA_ARGS__))
#define SPOKE_READ_MAP(reader, ...)                                                                \
	spoke_read_map((reader), SPOKE_INTO_PAIRS(__VA_ARGS__), SPOKE_ARGS_COUNT(__VA_ARGS__) / 2)

#endif
