/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the MessagePack validator against msgpack-c: both must accept the same bytes as the same
 * value, and the builder must pack the value as msgpack-c does. The first byte selects limits and
 * cuts.
 */
#include "core/value/validator.h"
#include "tests/core/memory.h"
#include "tests/core/value/rebuild.h"
#include "tests/fuzz/fuzz.h"

#include <msgpack.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The unpacker of msgpack-c rejects more than 32 levels. */
static const struct spoke_value_limits defaults = {
	.depth_max = 32,
	.items_max = SPOKE_VALUE_ITEMS_MAX,
	.object_bytes_max = SPOKE_VALUE_OBJECT_BYTES_MAX,
	.bytes_max = SPOKE_VALUE_BYTES_MAX,
};

static void want(bool holds, const char *what)
{
	if (!holds) {
		(void)fprintf(stderr, "does not hold: %s\n", what);
		abort();
	}
}
#define WANT(condition) want((condition), #condition)

/* Feeds the bytes in pieces until the validator has decided; `cut` selects the lengths. */
static int feed_cut(struct spokei_validator *validator, const uint8_t *data, size_t size,
		    unsigned cut)
{
	int result = spokei_validate(validator, data, 0);
	size_t at = 0;

	while (at < size && result == SPOKEI_VALIDATOR_MORE) {
		size_t len = 1 + (cut * 7 + at) % (1 + cut % 5);

		if (len > size - at)
			len = size - at;
		result = spokei_validate(validator, data + at, len);
		at += len;
	}
	return result;
}

static int validate_body(const struct spoke_value_limits *limits, const uint8_t *data, size_t size,
			 unsigned cut)
{
	struct spokei_validator whole;
	struct spokei_validator pieces;
	int cut_result;
	int result;

	spokei_validator_start_body(&whole, limits, size, 1);
	result = spokei_validate(&whole, data, size);
	WANT(result != SPOKEI_VALIDATOR_MORE);
	spokei_validator_start_body(&pieces, limits, size, 1);
	cut_result = feed_cut(&pieces, data, size, cut);
	/* The values in exts of pieces are not counted yet. */
	WANT(cut_result == result ||
	     (pieces.exts && (result == SPOKE_EDEPTH || result == SPOKE_ETOOLARGE)));
	WANT(result != 0 || pieces.count == whole.count);
	return result;
}

static int validate_stream(const struct spoke_value_limits *limits, const uint8_t *data,
			   size_t size, unsigned cut, size_t *ret_seen, bool *ret_exts)
{
	struct spokei_validator whole;
	struct spokei_validator pieces;
	int result;

	spokei_validator_start_stream(&whole, limits);
	result = spokei_validate(&whole, data, size);
	spokei_validator_start_stream(&pieces, limits);
	WANT(feed_cut(&pieces, data, size, cut) == result);
	WANT(result < 0 || pieces.seen == whole.seen);
	WANT(result != SPOKEI_VALIDATOR_MORE || whole.seen == size);
	WANT(whole.exts == pieces.exts);
	*ret_seen = whole.seen;
	*ret_exts = whole.exts;
	if (result != 0 || !whole.exts)
		return result;
	spokei_validator_start_body(&whole, limits, whole.seen, 1);
	return spokei_validate(&whole, data, *ret_seen);
}

/* Returns whether msgpack-c would allocate little for the lengths that these bytes claim, at any
 * offset. */
static bool is_harmless(const uint8_t *data, size_t size)
{
	uint64_t claims = 0;

	for (size_t i = 0; i + 2 < size; i++) {
		if (data[i] == 0xdc || data[i] == 0xde)
			claims += (uint64_t)data[i + 1] << 8 | data[i + 2];
		if (i + 4 < size && (data[i] == 0xdd || data[i] == 0xdf))
			claims += (uint64_t)data[i + 1] << 24 | (uint64_t)data[i + 2] << 16 |
				  (uint64_t)data[i + 3] << 8 | data[i + 4];
	}
	return claims < 100000;
}

/* Checks that the value packs to the same bytes from both readings. */
static void compare_readings(const msgpack_object *object, const uint8_t *data, size_t size)
{
	struct memory memory;
	struct spoke_builder builder;
	struct spoke_cursor values = spoke_cursor_bytes((struct spoke_span){ data, size });
	struct spoke_value value;
	msgpack_sbuffer packed;
	msgpack_packer packer;

	memory_init(&memory);
	spoke_builder_init(&builder, &memory.env, NULL);
	WANT(rebuild(&builder, values) == NULL);
	WANT(spoke_builder_finish_value(&builder, &value) == 0);
	msgpack_sbuffer_init(&packed);
	msgpack_packer_init(&packer, &packed, msgpack_sbuffer_write);
	WANT(msgpack_pack_object(&packer, *object) == 0);
	WANT(value.len == packed.size);
	WANT(memcmp(value.data, packed.data, packed.size) == 0);
	msgpack_sbuffer_destroy(&packed);
	spoke_builder_fini(&builder);
	WANT(memory.bytes == 0);
}

/* `exts`: there are exts that may contain values, which msgpack-c does not look into. */
static void compare_with_msgpack(int result, bool exts, size_t value_len, const uint8_t *data,
				 size_t size)
{
	bool accepted = result == 0 || result == SPOKE_ETRAILING;
	msgpack_unpacked unpacked;
	msgpack_unpack_return said;
	size_t off = 0;

	if (!accepted && !is_harmless(data, size))
		return;
	msgpack_unpacked_init(&unpacked);
	said = msgpack_unpack_next(&unpacked, (const char *)data, size, &off);
	if (accepted) {
		WANT(said == MSGPACK_UNPACK_SUCCESS);
		WANT(off == value_len);
		compare_readings(&unpacked.data, data, value_len);
	} else if (result != SPOKE_ETOOLARGE && !(exts && result == SPOKE_EDEPTH)) {
		WANT(said != MSGPACK_UNPACK_SUCCESS && said != MSGPACK_UNPACK_EXTRA_BYTES);
	}
	msgpack_unpacked_destroy(&unpacked);
}

FUZZ(validator)
{
	unsigned choice = size > 0 ? data[0] : 0;
	struct spoke_value_limits few = defaults;
	size_t value_len = 0;
	bool exts = false;
	size_t seen;
	int body;
	int open;
	int limited;

	if (size == 0)
		return 0;
	data++;
	size--;
	body = validate_body(&defaults, data, size, choice);
	open = validate_stream(&defaults, data, size, choice, &value_len, &exts);
	if (body == 0 || body == SPOKE_ETRAILING)
		WANT(open == 0 && (value_len == size) == (body == 0));
	else
		WANT(open != 0);
	if (open == SPOKEI_VALIDATOR_MORE || open == SPOKE_ETOOLARGE)
		WANT(body < 0);
	compare_with_msgpack(body, exts, value_len, data, size);

	few.depth_max = choice % 5;
	few.items_max = choice % 11;
	few.bytes_max = choice % 2 ? defaults.bytes_max : choice;
	limited = validate_body(&few, data, size, choice);
	if (limited == 0)
		WANT(body == 0);
	else if (body == 0)
		WANT(limited == SPOKE_EDEPTH || limited == SPOKE_ETOOLARGE);
	limited = validate_stream(&few, data, size, choice, &seen, &exts);
	if (limited == 0)
		WANT(open == 0 && seen == value_len);
	return 0;
}
