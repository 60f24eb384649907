/* SPDX-License-Identifier: Apache-2.0 */
/* SPOKE_ARGS() in C++14 packs the same bytes as in C. Prints the differences. */
#include <spoke/args.h>

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
	return bad;
}
