/* SPDX-License-Identifier: Apache-2.0 */
/* SPOKE_ARGS() and SPOKE_READ() in C++14 do the same as in C. Prints the differences. */
#include <spoke/read.h>

#include <cstdio>
#include <cstring>

namespace
{

int bad;

void expect(const char *name, spoke_args args, const char *bytes, size_t len)
{
	unsigned char memory[512];
	spoke_builder builder;
	spoke_span values{};

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), nullptr);
	spoke_pack_args(&builder, args);
	if (spoke_builder_finish(&builder, &values) == SPOKE_OK && values.len == len &&
	    std::memcmp(values.data, bytes, len) == 0)
		return;
	std::printf("%s: other bytes than expected\n", name);
	bad = 1;
}

void expect_that(bool is_true, const char *what)
{
	if (is_true)
		return;
	std::printf("not true: %s\n", what);
	bad = 1;
}

#define EXPECT_THAT(condition) expect_that((condition), #condition)

void read_values()
{
	static const char bytes[] = "\xc3\x01\x02\x03\xcb\x3f\xe0\0\0\0\0\0\0\xa2hi\xa2yo\xc0";
	const spoke_span span{ bytes, sizeof(bytes) - 1 };
	spoke_reader reader = spoke_reader_values(spoke_cursor_bytes(span), "argument");
	bool flag = false;
	short small = 0;
	unsigned long big = 0;
	long long huge = 0;
	double real = 0;
	spoke_span text{};
	char copy[3] = "";
	int same = 5;
	char why[100];

	EXPECT_THAT(SPOKE_READ(&reader, &flag, &small, &big, &huge, &real, &text, SPOKE_TEXT(copy),
			       SPOKE_OPTIONAL(&same)) == SPOKE_OK);
	EXPECT_THAT(flag && small == 1 && big == 2 && huge == 3 && real > 0.4 && text.len == 2);
	EXPECT_THAT(std::strcmp(copy, "yo") == 0 && same == 5);
	reader = spoke_reader_values(spoke_cursor_bytes(span), "argument");
	EXPECT_THAT(SPOKE_READ(&reader, SPOKE_SKIP, &flag) == SPOKE_ETYPE);
	spoke_reader_why(&reader, why, sizeof(why));
	EXPECT_THAT(std::strcmp(why, "argument 2: bool wanted, integer came") == 0);
}

void read_map()
{
	const spoke_value map{ reinterpret_cast<const unsigned char *>("\x82\xa1"
								       "a\x01\xa1"
								       "b\xa2hi"),
			       9 };
	spoke_reader reader = spoke_reader_of(map);
	unsigned char number = 0;
	char text[8] = "";

	EXPECT_THAT(SPOKE_READ_MAP(&reader, "b", SPOKE_TEXT(text), "a", &number) == SPOKE_OK);
	EXPECT_THAT(number == 1 && std::strcmp(text, "hi") == 0);
}

} // namespace

#define EXPECT(args, bytes) expect(#args, args, bytes, sizeof(bytes) - 1)

int main()
{
	const spoke_span span{ "a\0b", 3 };
	const spoke_value list{ reinterpret_cast<const unsigned char *>("\x92\x01\x02"), 3 };
	const spoke_value nothing{};
	char text[] = "buffer";
	const char *pointer = "p";

	EXPECT(SPOKE_ARGS("world", 42, true), "\xa5world\x2a\xc3");
	EXPECT(SPOKE_ARGS(text, pointer, span), "\xa6"
						"buffer\xa1p\xa3"
						"a\0b");
	EXPECT(SPOKE_ARGS('x', static_cast<signed char>(-1), static_cast<short>(-129)),
	       "\x78\xff\xd1\xff\x7f");
	EXPECT(SPOKE_ARGS(-5L, -6LL, 5UL, 6ULL, 7U), "\xfb\xfa\x05\x06\x07");
	EXPECT(SPOKE_ARGS(static_cast<unsigned char>(255), static_cast<unsigned short>(256)),
	       "\xcc\xff\xcd\x01\x00");
	EXPECT(SPOKE_ARGS(0.5, 0.5f), "\xcb\x3f\xe0\0\0\0\0\0\0\xcb\x3f\xe0\0\0\0\0\0\0");
	EXPECT(SPOKE_ARGS(false, SPOKE_NIL, nothing, list, SPOKE_BIN("\xff", 1)),
	       "\xc2\xc0\xc0\x92\x01\x02\xc4\x01\xff");
	EXPECT(SPOKE_ARGS(SPOKE_MAP("a", SPOKE_LIST(1, SPOKE_LIST(2)), "b", false), 3),
	       "\x82\xa1"
	       "a\x92\x01\x91\x02\xa1"
	       "b\xc2\x03");
	EXPECT(SPOKE_ARGS(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16),
	       "\1\2\3\4\5\6\7\10\11\12\13\14\15\16\17\20");
	EXPECT(SPOKE_NO_ARGS, "");
	read_values();
	read_map();
	return bad;
}
