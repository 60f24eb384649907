/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes handshakes of TLS streams. The first byte chooses the side and whether the input is sent
 * as it is, in pieces, or the input is a list of changes, of three bytes each, to the bytes of a
 * good peer. The stream gives no byte that the peer has not sent, and keeps little.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/transport/stream/tlsrig.h"

#include <openssl/err.h>

#include <string.h>

#define TEXT "the only text that is ever sent"
#define HELD_MAX (131072u + 16384u) /* bytes of a stream that is being opened */

enum {
	SIDES = 3,
	AS_IT_IS = 4, /* a bit of the first byte */
	ROUNDS = 6,
	ROOM = 65536,
};

static struct tlsrig rigs[SIDES];
static size_t held[SIDES]; /* before a stream begins */

static struct tlsrig *rig_of(unsigned side)
{
	static const struct tlsrig_setting settings[SIDES] = {
		{ .accepts = true, .verify = SPOKE_TLS_VERIFY_REQUIRED },
		{ .accepts = false },
		{ .accepts = true, .or_plain = true },
	};
	struct tlsrig *rig = &rigs[side];

	if (rig->engine) {
		tlsrig_again(rig);
	} else {
		tlsrig_begin(rig, &settings[side]);
		held[side] = rig->faulty.bytes;
	}
	return rig;
}

static void send_as_it_is(struct tlsrig *rig, const uint8_t *data, size_t size)
{
	size_t piece = size > 0 ? 1u + data[0] * 16u : 1;

	for (size_t at = 0; at < size; at += piece)
		tlsrig_send(rig, data + at, piece < size - at ? piece : size - at);
	if (rig->got_len > 0) { /* the peer of an optional stream may speak plain bytes */
		assert_ptr_equal(rig->stream.kind, &spokei_stream_socket);
		assert_int_equal(rig->got_len, size);
		assert_memory_equal(rig->got, data, size);
	}
}

/* Changes the bytes of the peer: each change is a distance from the last one, and a byte. */
static void send_changed(struct tlsrig *rig, const uint8_t *data, size_t size)
{
	static unsigned char bytes[ROOM];
	size_t next = size >= 3 ? (size_t)data[0] << 8 | data[1] : SIZE_MAX;
	size_t seen = 0;
	bool changed = false;
	size_t took;

	for (unsigned round = 0; round < ROUNDS; round++) {
		size_t len;

		if (rig->peer_status == SSL_ERROR_WANT_READ)
			tlsrig_step(rig);
		if (rig->peer_status == SSL_ERROR_NONE)
			(void)SSL_write_ex(rig->peer, TEXT, strlen(TEXT), &took);
		len = tlsrig_made(rig, bytes, sizeof(bytes));
		while (next < seen + len && size >= 3) {
			changed = changed || data[2] != 0;
			bytes[next - seen] ^= data[2];
			data += 3;
			size -= 3;
			if (size >= 3)
				next += (size_t)data[0] << 8 | data[1];
		}
		seen += len;
		tlsrig_send(rig, bytes, len);
		tlsrig_hear(rig);
	}
	assert_true(changed || rig->status == 0);
	if (rig->stream.kind == &spokei_stream_socket) /* its first byte was changed */
		return;
	for (size_t at = 0; at < rig->got_len; at++)
		assert_int_equal(rig->got[at], TEXT[at % strlen(TEXT)]);
}

FUZZ(tlsopen)
{
	unsigned side;
	struct tlsrig *rig;

	if (size == 0)
		return 0;
	side = (data[0] & 3u) % SIDES;
	rig = rig_of(side);
	if (data[0] & AS_IT_IS)
		send_as_it_is(rig, data + 1, size - 1);
	else
		send_changed(rig, data + 1, size - 1);
	if (rig->status == TLSRIG_OPENING)
		assert_in_range(rig->faulty.bytes, 0, held[side] + HELD_MAX);
	ERR_clear_error();
	return 0;
}
