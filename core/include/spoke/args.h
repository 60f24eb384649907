/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arguments in a line: values of C and C++ become the values of a call, without a builder and
 * without a buffer of the caller.
 *
 *     error = spoke_call_with(greet, SPOKE_ARGS("world", 42, true), done, arg);
 *     SPOKE_REPLY(request, SPOKE_MAP("name", "Ann", "age", 42));
 *
 * The compiler chooses the type of the value by the type of the expression, and rejects other
 * types:
 *
 * - a text that ends with a NUL (char *), or a struct spoke_span: a str
 * - every integer type, char included: an int. A constant of an enum is an int in C; C++ needs a
 *   cast, and so does a bit-field in C
 * - bool, also the constants true and false: a bool
 * - float and double: a double
 * - struct spoke_value: the value that was built or received; { 0 }: nil
 * - SPOKE_NIL, SPOKE_BIN(), SPOKE_LIST(), SPOKE_MAP() and SPOKE_ARG()
 *
 * One SPOKE_ARGS(), SPOKE_LIST() or SPOKE_MAP() takes 1 to SPOKE_ARGS_MAX expressions; more do not
 * compile. In C the result is valid until the end of the enclosing block, in C++ until the end of
 * the full expression. Texts are borrowed until the function that takes the arguments returns.
 */
#ifndef SPOKE_ARGS_H
#define SPOKE_ARGS_H

#include <spoke/value.h>

#include <string.h>

/* C before C23 defines true and false as int, and SPOKE_ARGS(true) would send the number 1. C
 * allows a program to redefine them (7.18), and these definitions work in #if, too. */
#if !defined(__cplusplus) && __STDC_VERSION__ < 202311L
#undef true
#undef false
#define true ((_Bool) + 1u)  /* as bool */
#define false ((_Bool) + 0u) /* as bool */
#endif

SPOKE_BEGIN_DECLS

#define SPOKE_ARGS_MAX 16u      /* expressions in one SPOKE_ARGS(), SPOKE_LIST() or SPOKE_MAP() */
#define SPOKE_ARGS_DEPTH_MAX 8u /* lists and maps inside each other; beyond: SPOKE_EDEPTH */

/* Kinds of arguments. */
enum spoke_arg_kind {
	SPOKE_ARG_NIL,
	SPOKE_ARG_BOOL,
	SPOKE_ARG_INT,
	SPOKE_ARG_UINT,
	SPOKE_ARG_DOUBLE,
	SPOKE_ARG_STR,
	SPOKE_ARG_BIN,
	SPOKE_ARG_VALUE, /* packed already */
	SPOKE_ARG_LIST,
	SPOKE_ARG_MAP,
};

/* One argument, which borrows its content. Made by SPOKE_ARG() and the functions below. */
struct spoke_arg {
	union {
		const void *data; /* bytes, or the struct spoke_arg of a list or map */
		int64_t i64;
		uint64_t u64; /* also of a bool */
		double real;
	} as;
	size_t len; /* bytes at `data`, or values of a list or map */
	enum spoke_arg_kind kind;
};

/* The arguments of a call, in order. Made by SPOKE_ARGS(). */
struct spoke_args {
	const struct spoke_arg *items;
	size_t count;
};

/* Appends the arguments to a builder, as further values. NULL as a text is SPOKE_EINVAL, and a
 * struct spoke_value that is not exactly one value the error of spoke_value_check(). */
SPOKE_API void spoke_pack_args(struct spoke_builder *builder, struct spoke_args args);

/* Makes an argument from content with a length. */
static inline struct spoke_arg spoke_arg_bytes(enum spoke_arg_kind kind, const void *data,
					       size_t len)
{
	struct spoke_arg arg;

	arg.as.data = data;
	arg.len = len;
	arg.kind = kind;
	return arg;
}

/* Makes a str of a text that ends with a NUL; NULL cannot be packed. */
static inline struct spoke_arg spoke_arg_text(const char *text)
{
	return spoke_arg_bytes(SPOKE_ARG_STR, text, text ? strlen(text) : 1);
}

/* Makes a str of a text with a length. */
static inline struct spoke_arg spoke_arg_span(struct spoke_span span)
{
	return spoke_arg_bytes(SPOKE_ARG_STR, span.data, span.len);
}

/* Makes an argument of a value that is packed already; { 0 } is nil. */
static inline struct spoke_arg spoke_arg_value(struct spoke_value value)
{
	return spoke_arg_bytes(SPOKE_ARG_VALUE, value.data, value.len);
}

/* Makes an argument of a signed number. */
static inline struct spoke_arg spoke_arg_int(int64_t number)
{
	struct spoke_arg arg;

	arg.as.i64 = number;
	arg.len = 0;
	arg.kind = SPOKE_ARG_INT;
	return arg;
}

/* Makes an argument of an unsigned number. */
static inline struct spoke_arg spoke_arg_uint(uint64_t number)
{
	struct spoke_arg arg;

	arg.as.u64 = number;
	arg.len = 0;
	arg.kind = SPOKE_ARG_UINT;
	return arg;
}

/* Makes an argument of a bool. */
static inline struct spoke_arg spoke_arg_bool(bool value)
{
	struct spoke_arg arg;

	arg.as.u64 = value ? 1 : 0;
	arg.len = 0;
	arg.kind = SPOKE_ARG_BOOL;
	return arg;
}

/* Makes an argument of a double. */
static inline struct spoke_arg spoke_arg_double(double value)
{
	struct spoke_arg arg;

	arg.as.real = value;
	arg.len = 0;
	arg.kind = SPOKE_ARG_DOUBLE;
	return arg;
}

/* The same of a float, without a warning of -Wdouble-promotion. */
static inline struct spoke_arg spoke_arg_float(float value)
{
	return spoke_arg_double((double)value);
}

/* Returns an argument that exists already. */
static inline struct spoke_arg spoke_arg_same(struct spoke_arg arg)
{
	return arg;
}

/* Makes a list or a map of arguments, which are borrowed. The length of a map counts keys and
 * values. */
static inline struct spoke_arg spoke_arg_all(enum spoke_arg_kind kind, struct spoke_args args)
{
	return spoke_arg_bytes(kind, args.items, args.count);
}

SPOKE_END_DECLS

/* The argument nil, and bytes as a bin. */
#define SPOKE_NIL spoke_arg_bytes(SPOKE_ARG_NIL, NULL, 0)
#define SPOKE_BIN(data, len) spoke_arg_bytes(SPOKE_ARG_BIN, (data), (len))

/* The number of arguments of a macro, at most 16. */
#define SPOKE_ARGS_PICK(_1, _2, _3, _4, _5, _6, _7, _8, _9, _10, _11, _12, _13, _14, _15, _16,     \
			count, ...)                                                                \
	count
#define SPOKE_ARGS_COUNT(...)                                                                      \
	SPOKE_ARGS_PICK(__VA_ARGS__, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0)

#ifndef __cplusplus

/* One argument, by the type of the expression. */
#define SPOKE_ARG(x)                                                                               \
	_Generic((x), _Bool                                                                        \
		 : spoke_arg_bool, char                                                            \
		 : spoke_arg_int, signed char                                                      \
		 : spoke_arg_int, short                                                            \
		 : spoke_arg_int, int                                                              \
		 : spoke_arg_int, long                                                             \
		 : spoke_arg_int, long long                                                        \
		 : spoke_arg_int, unsigned char                                                    \
		 : spoke_arg_uint, unsigned short                                                  \
		 : spoke_arg_uint, unsigned int                                                    \
		 : spoke_arg_uint, unsigned long                                                   \
		 : spoke_arg_uint, unsigned long long                                              \
		 : spoke_arg_uint, float                                                           \
		 : spoke_arg_float, double                                                         \
		 : spoke_arg_double, char *                                                        \
		 : spoke_arg_text, const char *                                                    \
		 : spoke_arg_text, struct spoke_span                                               \
		 : spoke_arg_span, struct spoke_value                                              \
		 : spoke_arg_value, struct spoke_arg                                               \
		 : spoke_arg_same)(x)

/* The parts of the macros below. */
#define SPOKE_ARGS_JOIN(a, b) a##b
#define SPOKE_ARGS_NAME(count) SPOKE_ARGS_JOIN(SPOKE_ARGS_EACH_, count)
#define SPOKE_ARGS_EACH(m, ...) SPOKE_ARGS_NAME(SPOKE_ARGS_COUNT(__VA_ARGS__))(m, __VA_ARGS__)
#define SPOKE_ARGS_EACH_1(m, a) m(a)
#define SPOKE_ARGS_EACH_2(m, a, b) m(a), m(b)
#define SPOKE_ARGS_EACH_3(m, a, b, c) m(a), m(b), m(c)
#define SPOKE_ARGS_EACH_4(m, a, b, c, d) m(a), m(b), m(c), m(d)
#define SPOKE_ARGS_EACH_5(m, a, b, c, d, e) SPOKE_ARGS_EACH_4(m, a, b, c, d), m(e)
#define SPOKE_ARGS_EACH_6(m, a, b, c, d, e, f) SPOKE_ARGS_EACH_4(m, a, b, c, d), m(e), m(f)
#define SPOKE_ARGS_EACH_7(m, a, b, c, d, e, f, g) SPOKE_ARGS_EACH_4(m, a, b, c, d), m(e), m(f), m(g)
#define SPOKE_ARGS_EACH_8(m, a, b, c, d, e, f, g, h)                                               \
	SPOKE_ARGS_EACH_4(m, a, b, c, d), SPOKE_ARGS_EACH_4(m, e, f, g, h)
#define SPOKE_ARGS_EACH_9(m, a, b, c, d, e, f, g, h, i)                                            \
	SPOKE_ARGS_EACH_8(m, a, b, c, d, e, f, g, h), m(i)
#define SPOKE_ARGS_EACH_10(m, a, b, c, d, e, f, g, h, i, j)                                        \
	SPOKE_ARGS_EACH_8(m, a, b, c, d, e, f, g, h), m(i), m(j)
#define SPOKE_ARGS_EACH_11(m, a, b, c, d, e, f, g, h, i, j, k)                                     \
	SPOKE_ARGS_EACH_8(m, a, b, c, d, e, f, g, h), m(i), m(j), m(k)
#define SPOKE_ARGS_EACH_12(m, a, b, c, d, e, f, g, h, i, j, k, l)                                  \
	SPOKE_ARGS_EACH_8(m, a, b, c, d, e, f, g, h), SPOKE_ARGS_EACH_4(m, i, j, k, l)
#define SPOKE_ARGS_EACH_13(m, a, b, c, d, e, f, g, h, i, j, k, l, n)                               \
	SPOKE_ARGS_EACH_12(m, a, b, c, d, e, f, g, h, i, j, k, l), m(n)
#define SPOKE_ARGS_EACH_14(m, a, b, c, d, e, f, g, h, i, j, k, l, n, o)                            \
	SPOKE_ARGS_EACH_12(m, a, b, c, d, e, f, g, h, i, j, k, l), m(n), m(o)
#define SPOKE_ARGS_EACH_15(m, a, b, c, d, e, f, g, h, i, j, k, l, n, o, p)                         \
	SPOKE_ARGS_EACH_12(m, a, b, c, d, e, f, g, h, i, j, k, l), m(n), m(o), m(p)
#define SPOKE_ARGS_EACH_16(m, a, b, c, d, e, f, g, h, i, j, k, l, n, o, p, q)                      \
	SPOKE_ARGS_EACH_12(m, a, b, c, d, e, f, g, h, i, j, k, l), SPOKE_ARGS_EACH_4(m, n, o, p, q)
#define SPOKE_ARGS_ARRAY(...)                                                                      \
	((const struct spoke_arg[]){ SPOKE_ARGS_EACH(SPOKE_ARG, __VA_ARGS__) })

/* The arguments of a call, a list, and a map of keys and values in turn. An odd number of
 * expressions in a map does not compile. */
#define SPOKE_ARGS(...)                                                                            \
	((struct spoke_args){ SPOKE_ARGS_ARRAY(__VA_ARGS__), SPOKE_ARGS_COUNT(__VA_ARGS__) })
#define SPOKE_NO_ARGS ((struct spoke_args){ NULL, 0 })
#define SPOKE_LIST(...) spoke_arg_all(SPOKE_ARG_LIST, SPOKE_ARGS(__VA_ARGS__))
#define SPOKE_MAP(...)                                                                             \
	spoke_arg_bytes(SPOKE_ARG_MAP, SPOKE_ARGS_ARRAY(__VA_ARGS__),                              \
			SPOKE_ARGS_COUNT(__VA_ARGS__) *                                            \
				sizeof(char[SPOKE_ARGS_COUNT(__VA_ARGS__) % 2 ? -1 : 1]))

#else

/* The same in C++, by overloads; other types have none. */
template <typename T> struct spoke_arg spoke_arg_of(const T &other) = delete;

inline spoke_arg spoke_arg_of(bool value)
{
	return spoke_arg_bool(value);
}

inline spoke_arg spoke_arg_of(char number)
{
	return spoke_arg_int(number);
}

inline spoke_arg spoke_arg_of(signed char number)
{
	return spoke_arg_int(number);
}

inline spoke_arg spoke_arg_of(short number)
{
	return spoke_arg_int(number);
}

inline spoke_arg spoke_arg_of(int number)
{
	return spoke_arg_int(number);
}

inline spoke_arg spoke_arg_of(long number)
{
	return spoke_arg_int(number);
}

inline spoke_arg spoke_arg_of(long long number)
{
	return spoke_arg_int(number);
}

inline spoke_arg spoke_arg_of(unsigned char number)
{
	return spoke_arg_uint(number);
}

inline spoke_arg spoke_arg_of(unsigned short number)
{
	return spoke_arg_uint(number);
}

inline spoke_arg spoke_arg_of(unsigned int number)
{
	return spoke_arg_uint(number);
}

inline spoke_arg spoke_arg_of(unsigned long number)
{
	return spoke_arg_uint(number);
}

inline spoke_arg spoke_arg_of(unsigned long long number)
{
	return spoke_arg_uint(number);
}

inline spoke_arg spoke_arg_of(float value)
{
	return spoke_arg_float(value);
}

inline spoke_arg spoke_arg_of(double value)
{
	return spoke_arg_double(value);
}

inline spoke_arg spoke_arg_of(const char *text)
{
	return spoke_arg_text(text);
}

inline spoke_arg spoke_arg_of(char *text)
{
	return spoke_arg_text(text);
}

inline spoke_arg spoke_arg_of(const spoke_span &span)
{
	return spoke_arg_span(span);
}

inline spoke_arg spoke_arg_of(const spoke_value &value)
{
	return spoke_arg_value(value);
}

inline spoke_arg spoke_arg_of(const spoke_arg &arg)
{
	return arg;
}

/* The memory of arguments, until the end of the full expression. */
template <size_t N> struct spoke_args_memory {
	spoke_arg items[N];       /* NOLINT(misc-non-private-member-variables-in-classes) */
	enum spoke_arg_kind kind; /* NOLINT(misc-non-private-member-variables-in-classes) */

	/* Passes them to a function. */
	operator spoke_args() const
	{
		return { items, N };
	}
};

template <size_t N> inline spoke_arg spoke_arg_of(const spoke_args_memory<N> &all)
{
	return spoke_arg_bytes(all.kind, all.items, N);
}

/* Make arguments, a list or a map of expressions. */
template <typename... T>
inline spoke_args_memory<sizeof...(T)> spoke_args_of(enum spoke_arg_kind kind, const T &...each)
{
	static_assert(sizeof...(T) >= 1 && sizeof...(T) <= SPOKE_ARGS_MAX,
		      "SPOKE_ARGS, SPOKE_LIST and SPOKE_MAP take 1 to SPOKE_ARGS_MAX expressions");
	return { { spoke_arg_of(each)... }, kind };
}

template <typename... T> inline spoke_args_memory<sizeof...(T)> spoke_map_of(const T &...each)
{
	static_assert(sizeof...(T) % 2 == 0, "SPOKE_MAP takes keys and values in turn");
	return spoke_args_of(SPOKE_ARG_MAP, each...);
}

/* As in C. */
#define SPOKE_ARG(x) spoke_arg_of(x)
#define SPOKE_ARGS(...) spoke_args_of(SPOKE_ARG_LIST, __VA_ARGS__)
#define SPOKE_NO_ARGS (spoke_args{ nullptr, 0 })
#define SPOKE_LIST(...) spoke_args_of(SPOKE_ARG_LIST, __VA_ARGS__)
#define SPOKE_MAP(...) spoke_map_of(__VA_ARGS__)

#endif

#endif
