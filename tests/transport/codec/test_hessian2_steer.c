/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments as their declared types demand. */
#include "tests/support/test.h"
#include "tests/transport/codec/hessianbed.h"

FIXTURE(bed_set_up, bed_tear_down);

TEST(number_has_declared_width)
{
	static const struct row rows[] = {
		ROW("J", "\x01", "\xe1"),
		ROW("J", "\xd3\0\0\0\0\0\0\0\x01", "\xe1"),
		ROW("Ljava/lang/Long;", "\x01", "\xe1"),
		ROW("I", "\x01", "\x91"),
		ROW("I", "\xd3\0\0\0\0\0\0\0\x01", "\x91"),
		ROW("S", "\xcf\0\0\0\0\0\0\0\x01", "\x91"),
		ROW("B", "\xff", "\x8f"),
		ROW("Ljava/lang/Integer;", "\xd3\0\0\0\0\0\0\0\x01", "\x91"),
		ROW("Ljava/lang/Short;", "\xd3\0\0\0\0\0\0\0\x01", "\x91"),
		ROW("Ljava/lang/Byte;", "\xd3\0\0\0\0\0\0\0\x01", "\x91"),
		ROW("D", "\x01", "\x5c"),
		ROW("D", "\xcb\x3f\xf0\0\0\0\0\0\0", "\x5c"),
		ROW("F", "\x02", "\x5d\x02"),
		ROW("F", "\xca\x40\x48\xf5\xc3", "\x5f\x00\x00\x0c\x44"),
		ROW("Ljava/lang/Double;", "\x01", "\x5c"),
		ROW("Ljava/lang/Float;", "\x01", "\x5c"),
		/* An int that is none stays a long; a number of another kind stays. */
		ROW("I", "\xce\x80\0\0\0", "L\0\0\0\0\x80\0\0\0"),
		ROW("I", "\xcb\x3f\xf0\0\0\0\0\0\0", "\x5c"),
		ROW("J", "\xcb\x3f\xf0\0\0\0\0\0\0", "\x5c"),
		ROW("J",
		    "\xa1"
		    "1",
		    "\x01"
		    "1"),
		ROW("J", "\xc0", "N"),
		ROW("Ljava/lang/Integer;", "\xc0", "N"),
		/* An Object declares nothing. */
		ROW("Ljava/lang/Object;", "\x01", "\x91"),
		ROW("Ljava/lang/Number;", "\xd3\0\0\0\0\0\0\0\x01", "\xe1"),
	};

	all_are(*state, rows, LENGTH(rows));
}

TEST(text_and_boolean_are_themselves)
{
	static const struct row rows[] = {
		ROW("Z", "\xc3", "T"),
		ROW("Ljava/lang/Boolean;", "\xc2", "F"),
		ROW("Ljava/lang/String;", "\xa1x", "\x01x"),
		ROW("Ljava/lang/String;", "\xc0", "N"),
		ROW("C", "\xa1x", "\x01x"),
		ROW("C", "\x41",
		    "\x01"
		    "A"),
		ROW("C", "\xcc\xe9", "\x01\xc3\xa9"),
		ROW("Ljava/lang/Character;", "\xcd\x4e\x16", "\x01\xe4\xb8\x96"),
		ROW("C", "\xcd\xd8\x3d", "\x01\xed\xa0\xbd"),
	};

	all_are(*state, rows, LENGTH(rows));
}

TEST(char_beyond_16_bits_is_unsupported)
{
	struct bed *bed = *state;

	ADD(bed, "\xa1"
		 "C\xce\x00\x01\x00\x00\x80");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_ARGS), SPOKE_EUNSUPPORTED);
}

TEST(date_is_made_of_timestamp_or_milliseconds)
{
	static const struct row rows[] = {
		ROW("Ljava/util/Date;", "\xd6\xff\0\0\0\x3c", "\x4b\0\0\0\x01"),
		ROW("Ljava/util/Date;", "\xcd\xea\x60", "\x4b\0\0\0\x01"),
		ROW("Ljava/util/Date;", "\x05", "\x4a\0\0\0\0\0\0\0\x05"),
		ROW("Ljava/util/Date;", "\xc0", "N"),
		ROW("Ljava/sql/Timestamp;", "\xcd\xea\x60",
		    "C\x12java.sql.Timestamp\x91\x05value\x60\x4b\0\0\0\x01"),
		ROW("Ljava/sql/Date;", "\xd6\xff\0\0\0\x3c",
		    "C\x0djava.sql.Date\x91\x05value\x60\x4b\0\0\0\x01"),
		ROW("Ljava/sql/Date;", "\xa1x", "\x01x"),
	};

	all_are(*state, rows, LENGTH(rows));
}

#define DECIMAL "C\x14java.math.BigDecimal\x91\x05value\x60"
#define BIG "C\x14java.math.BigInteger\x92\x06signum\x03mag\x60"

TEST(big_numbers_are_objects)
{
	static const struct row rows[] = {
		ROW("Ljava/math/BigDecimal;",
		    "\xa4"
		    "1.50",
		    DECIMAL "\x04"
			    "1.50"),
		ROW("Ljava/math/BigDecimal;", "\xfb", DECIMAL "\x02-5"),
		ROW("Ljava/math/BigDecimal;", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		    DECIMAL "\x14"
			    "18446744073709551615"),
		ROW("Ljava/math/BigDecimal;", "\xcb\x3f\xb9\x99\x99\x99\x99\x99\x9a",
		    DECIMAL "\x03"
			    "0.1"),
		ROW("Ljava/math/BigDecimal;", "\xc0", "N"),
		ROW("Ljava/math/BigDecimal;", "\xcb\x7f\xf8\0\0\0\0\0\0", "D\x7f\xf8\0\0\0\0\0\0"),
		ROW("Ljava/math/BigInteger;", "\x0a", BIG "\x91\x71\x04[int\x9a"),
		ROW("Ljava/math/BigInteger;", "\x00", BIG "\x90\x70\x04[int"),
		ROW("Ljava/math/BigInteger;", "\xd3\x80\0\0\0\0\0\0\0",
		    BIG "\x8f\x72\x04[intI\x80\0\0\0\x90"),
		ROW("Ljava/math/BigInteger;", "\xab-4294967296", BIG "\x8f\x72\x04[int\x91\x90"),
		ROW("Ljava/math/BigInteger;",
		    "\xb4"
		    "18446744073709551615",
		    BIG "\x91\x72\x04[int\x8f\x8f"),
		ROW("Ljava/math/BigInteger;", "\xcf\xff\xff\xff\xff\xff\xff\xff\xff",
		    BIG "\x91\x72\x04[int\x8f\x8f"),
		/* A text beyond 64 bits, or without digits, stays a text. */
		ROW("Ljava/math/BigInteger;",
		    "\xb4"
		    "18446744073709551616",
		    "\x14"
		    "18446744073709551616"),
		ROW("Ljava/math/BigInteger;", "\xa1-", "\x01-"),
	};

	all_are(*state, rows, LENGTH(rows));
}

TEST(array_is_list_of_its_component)
{
	static const struct row rows[] = {
		ROW("[I", "\x92\x01\x02", "\x72\x04[int\x91\x92"),
		ROW("[J", "\x91\x01", "\x71\x05[long\xe1"),
		ROW("[D", "\x91\x01", "\x71\x07[double\x5c"),
		ROW("[F", "\x91\x01", "\x71\x06[float\x5c"),
		ROW("[S", "\x90", "\x70\x06[short"),
		ROW("[Z", "\x91\xc3", "\x71\x08[booleanT"),
		ROW("[Ljava/lang/String;", "\x91\xa1x", "\x71\x07[string\x01x"),
		ROW("[Ljava/lang/Object;", "\x91\x01", "\x71\x07[object\x91"),
		ROW("[Ljava/util/Date;", "\x91\x05", "\x71\x05[date\x4a\0\0\0\0\0\0\0\x05"),
		ROW("[Ljava/lang/Long;", "\x92\x01\xc0", "\x72\x0f[java.lang.Long\xe1N"),
		ROW("[[I", "\x92\x91\x01\x90", "\x72\x05[[int\x71\x04[int\x91\x70\x91"),
		ROW("[La/B;", "\x91\x81\xa1x\x01",
		    "\x71\x04[a.B"
		    "C\x03"
		    "a.B\x91\x01x\x60\x91"),
		ROW("[I", "\xc0", "N"),
		ROW("[I", "\x05", "\x95"),
		/* An array of char is a string, an array of byte a binary. */
		ROW("[C",
		    "\xa2"
		    "ab",
		    "\x02"
		    "ab"),
		ROW("[B", "\xc4\x02\x01\x02", "\x22\x01\x02"),
		ROW("[B", "\x93\x01\xff\xcc\x80", "\x23\x01\xff\x80"),
		ROW("[[B", "\x91\xc4\x01\x07", "\x71\x06[[byte\x21\x07"),
		ROW("[B", "\x90", "\x20"),
	};

	all_are(*state, rows, LENGTH(rows));
}

/* Writes an array of bytes, and checks the binary. */
static void array_is_binary(struct bed *bed, size_t count)
{
	const unsigned char *at;
	size_t chunk;

	bed->len = 0;
	ADD(bed, "\xa2[B\xdd\0");
	for (unsigned shift = 24; shift > 0; shift -= 8)
		add_bytes(bed, &(unsigned char){ (unsigned char)(count >> (shift - 8)) }, 1);
	for (size_t i = 0; i < count; i++)
		add_bytes(bed, &(unsigned char){ (unsigned char)(i % 100) }, 1);
	ADD(bed, "\x80");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_ARGS), 0);
	at = spokei_buffer_data(&bed->out) + 3;
	for (size_t i = 0; i < count; at += chunk) {
		bool final = count - i <= 32768;
		size_t head_len = count - i <= 1023 ? 2 : 3;

		chunk = final ? count - i : 32768;
		if (head_len == 2)
			assert_int_equal(at[0], 0x34 | chunk >> 8);
		else
			assert_int_equal(at[0], final ? 'B' : 'A');
		if (head_len == 3)
			assert_int_equal(at[1], chunk >> 8);
		assert_int_equal(at[head_len - 1], chunk & 0xff);
		at += head_len;
		for (size_t end = i + chunk, j = 0; i < end; i++, j++)
			assert_int_equal(at[j], i % 100);
	}
	assert_memory_equal(at, "HZ", 2);
	assert_int_equal(spokei_buffer_len(&bed->out),
			 (size_t)(at + 2 - (unsigned char *)spokei_buffer_data(&bed->out)));
}

TEST(byte_array_of_any_length_is_binary)
{
	static const unsigned counts[] = { 16, 256, 257, 1023, 1024, 32768, 32784, 65536, 70000 };

	for (size_t i = 0; i < LENGTH(counts); i++)
		array_is_binary(*state, counts[i]);
}

TEST(array_element_beyond_byte_is_unsupported)
{
	static const char *const items[] = { "\xcd\x01\x00", "\xd1\xff\x7f", "\xa2xy", "\x92\1\2" };
	struct bed *bed = *state;

	for (size_t i = 0; i < LENGTH(items); i++) {
		bed->len = 0;
		ADD(bed, "\xa2[B\x92\1");
		add_bytes(bed, items[i], 3);
		ADD(bed, "\x80");
		assert_int_equal(write_all(bed, SPOKEI_CODEC_ARGS), SPOKE_EUNSUPPORTED);
	}
}

TEST(each_argument_has_its_own_type)
{
	static const struct row rows[] = {
		ROW("IJ[I[Ljava/lang/String;D", "\x01\x01\x91\x01\x91\xa1x\x01",
		    "\x91\xe1\x71\x04[int\x91\x71\x07[string\x01x\x5c"),
		/* More arguments than types, and a map that is no attachments. */
		ROW("J", "\x01\x01\x80", "\xe1\x91HZ"),
		/* From a broken descriptor on, no type is declared. */
		ROW("JX", "\x01\x01", "\xe1\x91"),
		ROW("JLa/B", "\x01\x81\xa1x\x01", "\xe1H\x01x\x91Z"),
		ROW("J[", "\x01\x91\x01", "\xe1\x79\x91"),
		ROW("V", "\x01", "\x91"),
		ROW("", "\x01", "\x91"),
	};

	all_are(*state, rows, LENGTH(rows));
}
