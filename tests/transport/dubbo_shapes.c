/* SPDX-License-Identifier: Apache-2.0 */
/* The calls of the golden Dubbo frames and their replies: see dubbo_shapes.h. */
#include "tests/transport/dubbo_shapes.h"

#define STRING "Ljava/lang/String;"
#define HELLO "h\303\251llo \344\270\226\347\225\214 \360\237\230\200"
#define PI 3.14159265358979323846

static void hello(struct spoke_builder *to)
{
	spoke_pack_text(to, HELLO);
}

static void nothing(struct spoke_builder *to)
{
	spoke_pack_text(to, "");
}

static void forty_two(struct spoke_builder *to)
{
	spoke_pack_i64(to, 42);
}

static void forty_and_two(struct spoke_builder *to)
{
	spoke_pack_i64(to, 40);
	spoke_pack_i64(to, 2);
}

static void below_zero(struct spoke_builder *to)
{
	spoke_pack_i64(to, -300000);
	spoke_pack_i64(to, 5);
}

static void below_zero_sum(struct spoke_builder *to)
{
	spoke_pack_i64(to, -299995);
}

static void longs(struct spoke_builder *to)
{
	spoke_pack_i64(to, INT64_C(1) << 40);
	spoke_pack_i64(to, 2);
}

static void longs_sum(struct spoke_builder *to)
{
	spoke_pack_i64(to, (INT64_C(1) << 40) + 2);
}

static void five(struct spoke_builder *to)
{
	spoke_pack_double(to, 5.0);
}

static void half_of_five(struct spoke_builder *to)
{
	spoke_pack_double(to, 2.5);
}

static void pi(struct spoke_builder *to)
{
	spoke_pack_double(to, PI);
}

static void half_of_pi(struct spoke_builder *to)
{
	spoke_pack_double(to, PI / 2);
}

static void yes(struct spoke_builder *to)
{
	spoke_pack_bool(to, true);
}

static void no(struct spoke_builder *to)
{
	spoke_pack_bool(to, false);
}

static void blob(struct spoke_builder *to)
{
	spoke_pack_bin(to, "\001\002\003\377", 4);
}

static void blob_reversed(struct spoke_builder *to)
{
	spoke_pack_bin(to, "\377\003\002\001", 4);
}

static void list(struct spoke_builder *to)
{
	spoke_pack_array(to, 6);
	spoke_pack_i64(to, 1);
	spoke_pack_text(to, "two");
	spoke_pack_double(to, 3.5);
	spoke_pack_nil(to);
	spoke_pack_bool(to, true);
	spoke_pack_i64(to, 4000000000);
}

static void list_reversed(struct spoke_builder *to)
{
	spoke_pack_array(to, 6);
	spoke_pack_i64(to, 4000000000);
	spoke_pack_bool(to, true);
	spoke_pack_nil(to);
	spoke_pack_double(to, 3.5);
	spoke_pack_text(to, "two");
	spoke_pack_i64(to, 1);
}

static void map_pairs(struct spoke_builder *to, size_t count)
{
	spoke_pack_map(to, count);
	spoke_pack_text(to, "a");
	spoke_pack_i64(to, 1);
	spoke_pack_text(to, "b");
	spoke_pack_text(to, "x");
}

static void map(struct spoke_builder *to)
{
	map_pairs(to, 2);
}

static void map_seen(struct spoke_builder *to)
{
	map_pairs(to, 3);
	spoke_pack_text(to, "seen");
	spoke_pack_bool(to, true);
}

static void user_of_id(struct spoke_builder *to, int64_t id)
{
	spoke_pack_map(to, 5);
	spoke_pack_text(to, "id");
	spoke_pack_i64(to, id);
	spoke_pack_text(to, "name");
	spoke_pack_text(to, "ann");
	spoke_pack_text(to, "active");
	spoke_pack_bool(to, true);
	spoke_pack_text(to, "score");
	spoke_pack_double(to, 1.5);
	spoke_pack_text(to, "friend");
	spoke_pack_nil(to);
}

static void user(struct spoke_builder *to)
{
	user_of_id(to, 7);
}

static void user_next(struct spoke_builder *to)
{
	user_of_id(to, 8);
}

static void null(struct spoke_builder *to)
{
	spoke_pack_nil(to);
}

static void boom(struct spoke_builder *to)
{
	spoke_pack_text(to, "boom");
}

static void boom_fields(struct spoke_builder *to)
{
	spoke_pack_map(to, 1);
	spoke_pack_text(to, "message");
	spoke_pack_text(to, "boom");
}

static void io(struct spoke_builder *to)
{
	spoke_pack_text(to, "io");
}

static void io_fields(struct spoke_builder *to)
{
	spoke_pack_map(to, 2);
	spoke_pack_text(to, "message");
	spoke_pack_text(to, "io");
	spoke_pack_text(to, "stackTrace");
	spoke_pack_array(to, 0);
}

static void date(struct spoke_builder *to)
{
	spoke_pack_i64(to, 1700000000000);
}

static void date_next(struct spoke_builder *to)
{
	spoke_pack_i64(to, 1700086400000);
}

static void boxed(struct spoke_builder *to)
{
	spoke_pack_array(to, 3);
	spoke_pack_i64(to, 1);
	spoke_pack_nil(to);
	spoke_pack_i64(to, 3);
}

static void x_and_fifty(struct spoke_builder *to)
{
	spoke_pack_text(to, "x");
	spoke_pack_i64(to, 50);
}

static void async_x(struct spoke_builder *to)
{
	spoke_pack_text(to, "async x");
}

static void k1(struct spoke_builder *to)
{
	spoke_pack_text(to, "k1");
}

static void v1(struct spoke_builder *to)
{
	spoke_pack_text(to, "v1");
}

static void ms_2500(struct spoke_builder *to)
{
	spoke_pack_i64(to, 2500);
}

static void ms_500(struct spoke_builder *to)
{
	spoke_pack_i64(to, 500);
}

static void ok(struct spoke_builder *to)
{
	spoke_pack_text(to, "OK");
}

static void x(struct spoke_builder *to)
{
	spoke_pack_text(to, "x");
}

static void tick(struct spoke_builder *to)
{
	spoke_pack_text(to, "tick");
}

static void one_and_two(struct spoke_builder *to)
{
	spoke_pack_i64(to, 1);
	spoke_pack_i64(to, 2);
}

static void three(struct spoke_builder *to)
{
	spoke_pack_i64(to, 3);
}

static void bob(struct spoke_builder *to)
{
	spoke_pack_map(to, 2);
	spoke_pack_text(to, "name");
	spoke_pack_text(to, "bob");
	spoke_pack_text(to, "id");
	spoke_pack_i64(to, 3);
}

static void no_types(struct spoke_builder *to)
{
	spoke_pack_array(to, 0);
}

static void ints(struct spoke_builder *to)
{
	spoke_pack_array(to, 2);
	spoke_pack_text(to, "int");
	spoke_pack_text(to, "int");
}

static void user_type(struct spoke_builder *to)
{
	spoke_pack_array(to, 1);
	spoke_pack_text(to, "spoke.interop.User");
}

/* --- the shapes */

#define CALL(n, from, method, types, count, pack)                                                  \
	{                                                                                          \
		n, SPOKEI_REQUEST, false, from, method, types, count, pack, NULL, NULL, NULL,      \
			NULL, 0                                                                    \
	}
#define GENERIC(method, names, count, pack)                                                        \
	{                                                                                          \
		1, SPOKEI_REQUEST, false, CONSUMER_2, method, "", count, pack, names, NULL, NULL,  \
			NULL, 0                                                                    \
	}
#define RESULT(n, packer)                                                                          \
	{                                                                                          \
		.uses = (n), .kind = SPOKEI_REPLY, .pack = (packer)                                \
	}
#define THROWN(class, packer)                                                                      \
	{                                                                                          \
		.uses = 1, .kind = SPOKEI_REPLY, .error_class = (class), .pack = (packer)          \
	}
#define REFUSED(n, count)                                                                          \
	{                                                                                          \
		.uses = (n), .kind = SPOKEI_REPLY, .completed = (count)                            \
	}
#define EVENT(n, what)                                                                             \
	{                                                                                          \
		.uses = (n), .kind = (what)                                                        \
	}

const struct shape shapes[SHAPES] = {
	CALL(2, FIRST, "echo", STRING, 1, hello),
	CALL(2, FIRST, "echo", STRING, 1, nothing),
	CALL(2, FIRST, "sum", "II", 2, forty_and_two),
	CALL(2, FIRST, "sum", "II", 2, below_zero),
	CALL(2, FIRST, "sumLong", "JJ", 2, longs),
	CALL(2, FIRST, "half", "D", 1, five),
	CALL(2, FIRST, "half", "D", 1, pi),
	CALL(2, FIRST, "not", "Z", 1, yes),
	CALL(2, FIRST, "blob", "[B", 1, blob),
	CALL(2, FIRST, "list", "Ljava/util/List;", 1, list),
	CALL(2, FIRST, "map", "Ljava/util/Map;", 1, map),
	CALL(2, FIRST, "user", "Lspoke/interop/User;", 1, user),
	CALL(2, FIRST, "nothing", "", 0, NULL),
	CALL(2, FIRST, "nul", STRING, 1, null),
	CALL(2, FIRST, "fail", STRING, 1, boom),
	CALL(2, FIRST, "checked", STRING, 1, io),
	CALL(2, FIRST, "date", "Ljava/util/Date;", 1, date),
	CALL(2, FIRST, "boxed", "[Ljava/lang/Integer;", 1, boxed),
	CALL(2, FIRST, "async", STRING "J", 2, x_and_fifty),
	CALL(2, FIRST_K1, "attach", STRING, 1, k1),
	CALL(2, FIRST_K1, "slow", "J", 1, ms_2500),
	CALL(2, FIRST_K1, "$echo", "Ljava/lang/Object;", 1, ok),
	CALL(12, CONSUMER_2, "echo", STRING, 1, tick),
	CALL(3, CONSUMER_2, "slow", "J", 1, ms_500),
	GENERIC("sum", ints, 2, one_and_two),
	GENERIC("user", user_type, 1, bob),
	GENERIC("zap", no_types, 0, NULL),
	{
		.uses = 1,
		.one_way = true,
		.from = CONSUMER_2,
		.method = "nothing",
		.types = "",
	},
	{
		.uses = 1,
		.from = CONSUMER_2,
		.method = "echo",
		.types = STRING,
		.arg_count = 1,
		.pack = x,
		.version = "9.9.9",
		.group = "g1",
	},
	RESULT(2, hello),
	RESULT(2, nothing),
	RESULT(2, forty_two),
	RESULT(2, below_zero_sum),
	RESULT(2, longs_sum),
	RESULT(2, half_of_five),
	RESULT(2, half_of_pi),
	RESULT(2, no),
	RESULT(2, blob_reversed),
	RESULT(2, list_reversed),
	RESULT(2, map_seen),
	RESULT(1, user_next),
	RESULT(4, null),
	RESULT(2, date_next),
	RESULT(2, boxed),
	RESULT(2, async_x),
	RESULT(2, v1),
	RESULT(2, ok),
	RESULT(1, three),
	RESULT(1, ms_500),
	RESULT(12, tick),
	THROWN("java.lang.IllegalStateException", boom_fields),
	THROWN("java.io.IOException", io_fields),
	REFUSED(1, 1),
	REFUSED(2, 5),
	EVENT(5, SPOKEI_PROBE),
	EVENT(5, SPOKEI_PROBE_ANSWER),
	EVENT(1, SPOKEI_READONLY),
};
