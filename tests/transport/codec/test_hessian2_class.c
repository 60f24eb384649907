/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays, maps and texts as arguments whose declared type is a class. */
#include "tests/support/test.h"
#include "tests/transport/codec/hessianbed.h"

FIXTURE(bed_set_up, bed_tear_down);

TEST(collection_has_class_that_java_takes)
{
	static const struct row rows[] = {
		ROW("Ljava/util/List;", "\x91\x01", "\x79\x91"),
		ROW("Ljava/util/ArrayList;", "\x91\x01", "\x79\x91"),
		ROW("Ljava/util/Collection;", "\x91\x01", "\x79\x91"),
		ROW("Ljava/util/LinkedList;", "\x90", "\x70\x14java.util.LinkedList"),
		ROW("Ljava/util/Set;", "\x91\x01", "\x71\x11java.util.HashSet\x91"),
		ROW("Ljava/util/HashSet;", "\x90", "\x70\x11java.util.HashSet"),
		ROW("Ljava/util/LinkedHashSet;", "\x90", "\x70\x17java.util.LinkedHashSet"),
		ROW("Ljava/util/SortedSet;", "\x90", "\x70\x11java.util.TreeSet"),
		ROW("Ljava/util/Queue;", "\x90", "\x70\x14java.util.LinkedList"),
		ROW("Ljava/util/Map;", "\x81\x01\x02", "H\x91\x92Z"),
		ROW("Ljava/util/HashMap;", "\x80", "HZ"),
		ROW("Ljava/util/Map;",
		    "\x81\xa5"
		    "class\xa3"
		    "a.B",
		    "H\x05"
		    "class\x03"
		    "a.BZ"),
		ROW("Ljava/util/SortedMap;", "\x80", "M\x11java.util.TreeMapZ"),
		ROW("Ljava/util/LinkedHashMap;", "\x80", "M\x17java.util.LinkedHashMapZ"),
		ROW("Ljava/util/concurrent/ConcurrentMap;", "\x80",
		    "M\x30\x26java.util.concurrent.ConcurrentHashMapZ"),
		ROW("Ljava/util/Set;", "\xc0", "N"),
		ROW("Ljava/util/UUID;", "\xa1x", "\x01x"),
	};

	all_are(*state, rows, LENGTH(rows));
}

#define HANDLE "com.alibaba.com.caucho.hessian.io."
#define CLASS_IS(name) "\xa5\143lass" name /* of letters, a 'c' is a digit */

TEST(object_of_java_util_is_no_map)
{
	static const struct row rows[] = {
		/* The class that the map names. */
		ROW("Ljava/util/UUID;",
		    "\x82\xa5value\xa4"
		    "0-01" CLASS_IS("\xaejava.util.UUID"),
		    "C\x0ejava.util.UUID\x91\x05value\x60\x04"
		    "0-01"),
		ROW("Ljava/util/Locale;",
		    "\x82\xa5value\xa2jp" CLASS_IS("\xd9\x2e" HANDLE "LocaleHandle"),
		    "C\x30\x2e" HANDLE "LocaleHandle\x91\x05value\x60\x02jp"),
		ROW("Ljava/util/Calendar;",
		    "\xde\x00\x03\xa4"
		    "date\xd6\xff\0\0\0\x3c\xa4type\xc0" CLASS_IS("\xd9\x30" HANDLE
								  "CalendarHandle"),
		    "C\x30\x30" HANDLE "CalendarHandle\x92\x04"
		    "date\x04type\x60K\0\0\0\x01N"),
		ROW("Ljava/util/BitSet;",
		    "\x82\xa5words\xc7\x10\x48\xa5[long\x91\xd3\0\0\0\0\0\0\0\x05" CLASS_IS(
			    "\xd9\x2e" HANDLE "BitSetHandle"),
		    "C\x30\x2e" HANDLE "BitSetHandle\x91\x05words\x60\x71\x05[long\xe5"),
		ROW("Ljava/util/Set;", "\x81" CLASS_IS("\xd9\x30" HANDLE "EnumSetHandler"),
		    "C\x30\x30" HANDLE "EnumSetHandler\x90\x60"),
		/* The declared class, or the one that stands for it. */
		ROW("Ljava/util/UUID;",
		    "\x81\xa5value\xa4"
		    "0-01",
		    "C\x0ejava.util.UUID\x91\x05value\x60\x04"
		    "0-01"),
		ROW("Ljava/util/Locale;", "\x81\xa5value\xa2jp",
		    "C\x30\x2e" HANDLE "LocaleHandle\x91\x05value\x60\x02jp"),
		ROW("Ljava/util/GregorianCalendar;",
		    "\x81\xa4"
		    "date\xd6\xff\0\0\0\x3c",
		    "C\x30\x30" HANDLE "CalendarHandle\x91\x04"
		    "date\x60K\0\0\0\x01"),
		ROW("Ljava/util/Optional;", "\x81\xa5value\x01",
		    "C\x12java.util.Optional\x91\x05value\x60\x91"),
		ROW("Ljava/util/Currency;",
		    "\x81\xac"
		    "currencyCode\xa3"
		    "EUR",
		    "C\x12java.util.Currency\x91\x0c"
		    "currencyCode\x60\x03"
		    "EUR"),
		/* These are maps, even with such a key. */
		ROW("Ljava/util/Properties;", "\x81\xa1k\xa1v",
		    "M\x14java.util.Properties\x01k\x01vZ"),
		ROW("Ljava/util/TreeMap;",
		    "\x81" CLASS_IS("\xa3"
				    "a.B"),
		    "M\x11java.util.TreeMap\x05"
		    "class\x03"
		    "a.BZ"),
		ROW("Ljava/util/Hashtable;", "\x80", "M\x13java.util.HashtableZ"),
	};

	all_are(*state, rows, LENGTH(rows));
}

TEST(map_is_object_of_declared_class)
{
	static const struct row rows[] = {
		ROW("Lit/Point;", "\x82\xa1x\x01\xa1y\x02",
		    "C\x08it.Point\x92\x01x\x01y\x60\x91\x92"),
		ROW("Lit/Point;Lit/Point;", "\x81\xa1x\x01\x81\xa1x\x02",
		    "C\x08it.Point\x91\x01x\x60\x91\x60\x92"),
		/* The same class, once declared and once named by the map. */
		ROW("Lit/Point;Ljava/lang/Object;",
		    "\x81\xa1x\x01\x82\xa1x\x02\xa5"
		    "class\xa8it.Point",
		    "C\x08it.Point\x91\x01x\x60\x91\x60\x92"),
		/* The class of the map wins, even without a package. */
		ROW("Lit/Point;",
		    "\x82\xa1x\x01\xa5"
		    "class\xa3"
		    "A$1",
		    "C\x03"
		    "A$1\x91\x01x\x60\x91"),
		ROW("Lit/Color;", "\xa3RED", "C\x08it.Color\x91\x04name\x60\x03RED"),
		ROW("Lit/Color;Lit/Color;",
		    "\xa1"
		    "A\xa1"
		    "B",
		    "C\x08it.Color\x91\x04name\x60\x01"
		    "A\x60\x01"
		    "B"),
		ROW("Lit/Point;", "\xc0", "N"),
		ROW("Lit/Point;", "\x91\x01", "\x79\x91"),
		/* A key that is no name of a field. */
		ROW("Lit/Point;", "\x81\x01\x02", "H\x91\x92Z"),
		/* Values inside have no declared type. */
		ROW("Lit/Point;", "\x81\xa1m\x81\xa1x\x01",
		    "C\x08it.Point\x91\x01m\x60H\x01x\x91Z"),
	};

	all_are(*state, rows, LENGTH(rows));
}

TEST(value_that_was_read_keeps_its_form)
{
	static const struct row rows[] = {
		ROW("[J", "\xc7\x07\x48\xa4[int\x91\x01", "\x71\x04[int\x91"),
		ROW("Ljava/util/Set;",
		    "\xc7\x05\x48\xa3"
		    "a.L\x90",
		    "\x70\x03"
		    "a.L"),
		ROW("La/B;",
		    "\xde\x00\x02\xa1x\x01\xa5"
		    "class\xa3"
		    "a.C",
		    "C\x03"
		    "a.C\x91\x01x\x60\x91"),
	};

	all_are(*state, rows, LENGTH(rows));
}

TEST(too_long_class_is_unsupported)
{
	static char class[1030];
	struct bed *bed = *state;

	memset(class, 'x', sizeof(class));
	class[0] = 'L';
	class[1026] = ';';
	ADD(bed, "\xda\x04\x03");
	add_bytes(bed, class, 1027);
	ADD(bed, "\x81\xa1x\x01\x80");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_ARGS), SPOKE_EUNSUPPORTED);
	class[1025] = ';';
	bed->len = 0;
	ADD(bed, "\xda\x04\x02");
	add_bytes(bed, class, 1026);
	ADD(bed, "\x81\xa1x\x01\x80");
	assert_int_equal(write_all(bed, SPOKEI_CODEC_ARGS), 0);
}
