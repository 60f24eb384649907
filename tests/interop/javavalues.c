/* SPDX-License-Identifier: Apache-2.0 */
/* The values that spoke and the Node peers exchange; see javavalues.h. */
#include "tests/interop/javavalues.h"

#include <string.h>

#define VALUE(kind, bytes, node)                                                                   \
	{                                                                                          \
		kind, bytes, sizeof(bytes) - 1, node                                               \
	}

/* Octal escapes are followed by letters where hexadecimal ones would include them. */
#define CLASS "\245class"
#define POINT CLASS "\xb3spoke.interop.Point"
#define POINT_1 "\xde\0\3\241x\1\241y\xcb\x3f\xe0\0\0\0\0\0\0" POINT
#define POINT_2 "\xde\0\3\241x\2\241y\xcb\x3f\xf8\0\0\0\0\0\0" POINT
#define MAP_A "\xdf\0\0\0\1\241a\1"

static const struct java_value values[] = {
	VALUE("null", "\xc0", "null"),
	VALUE("true", "\xc3", "true"),
	VALUE("false", "\xc2", "false"),
	VALUE("zero", "\0", "0"),
	VALUE("int", "\xd2\xff\xfe\x1d\xc0", "-123456"),
	/* Node reads integers of more than 53 bits as text. */
	VALUE("long", "\xd3\0\x20\0\0\0\0\0\1", "\"9007199254740993\""),
	VALUE("small_long", "\xd3\0\0\0\0\0\0\0\5", "5"),
	VALUE("double", "\xcb\xc0\4\0\0\0\0\0\0", "-2.5"),
	VALUE("third", "\xcb\x3f\xd5\x55\x55\x55\x55\x55\x55", "0.3333333333333333"),
	VALUE("empty", "\xa0", "\"\""),
	VALUE("string", "\252h\303\251llo \344\270\226", "\"h\\u00e9llo \\u4e16\""),
	VALUE("emoji", "\246a\360\237\230\200b", "\"a\\ud83d\\ude00b\""),
	VALUE("bytes", "\xc4\3\1\2\xff", "bytes:0102ff"),
	VALUE("date", "\xd7\xff\x1d\x53\x53\0\x5f\x5e\x10\0", "date:1600000000123"),
	VALUE("minutes", "\xd6\xff\x5f\x5e\x10\x14", "date:1600000020000"),
	VALUE("list", "\x94\1\xa3two\xc0\x91\xc3", "[1, \"two\", null, [true]]"),
	VALUE("array", "\xc9\0\0\0\x09\x48\xa4[int\x93\1\2\3", "[1, 2, 3]"),
	VALUE("set", "\xc9\0\0\0\x17\x48\xb1java.util.HashSet\222\241a\241b", "[\"a\", \"b\"]"),
	VALUE("map", "\xdf\0\0\0\2\xa6nested\xdf\0\0\0\1\xa3two\x91\2\xa3one\1",
	      "{nested: {two: [2]}, one: 1}"),
	/* Node drops the names of classes when it reads. */
	VALUE("object", "\xde\0\3\241x\3\241y\xcb\x40\x12\0\0\0\0\0\0" POINT, "{x: 3, y: 4.5}"),
	VALUE("nested",
	      "\xde\0\4\244from" POINT_1 "\xa2to" POINT_2 "\xa4name\xa1l" CLASS
	      "\xb2spoke.interop.Line",
	      "{from: {x: 1, y: 0.5}, name: \"l\", to: {x: 2, y: 1.5}}"),
	VALUE("enum", "\xde\0\2\xa4name\xa3RED" CLASS "\xb3spoke.interop.Color", "{name: \"RED\"}"),
	VALUE("decimal", "\xde\0\2\245value\24512.50" CLASS "\xb4java.math.BigDecimal",
	      "{value: \"12.50\"}"),
	VALUE("shared", "\x92" MAP_A "\xc7\x09\x52\1" MAP_A, "[{a: 1}, {a: 1}]"),
};

#define COUNT (sizeof(values) / sizeof(values[0]))

/* A text of two chunks with a character outside the basic plane where the first one would end. */
#define LONG_BEFORE 32767u
#define LONG_AFTER 40000u
#define LONG_LEN (LONG_BEFORE + 4 + LONG_AFTER)

static struct java_value long_string(void)
{
	static char bytes[5 + LONG_LEN] = { (char)0xdb, 0, LONG_LEN >> 16,
					    (char)(unsigned char)((LONG_LEN >> 8) & 0xff),
					    (char)(unsigned char)(LONG_LEN & 0xff) };

	memset(bytes + 5, 'x', LONG_BEFORE);
	memcpy(bytes + 5 + LONG_BEFORE, "\xf0\x9f\x98\x80", 4);
	memset(bytes + 5 + LONG_BEFORE + 4, 'y', LONG_AFTER);
	return (struct java_value){ "long_string", bytes, sizeof(bytes),
				    "string(72769, 1687651252)" };
}

bool java_value(size_t index, struct java_value *ret)
{
	if (index > COUNT)
		return false;
	*ret = index == COUNT ? long_string() : values[index];
	return true;
}

bool java_value_find(struct spoke_span kind, struct java_value *ret)
{
	for (size_t i = 0; java_value(i, ret); i++)
		if (strlen(ret->kind) == kind.len && memcmp(ret->kind, kind.data, kind.len) == 0)
			return true;
	return false;
}
