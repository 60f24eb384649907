/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes open TLS streams. Each pair of bytes of the input is a command and its number: the peer
 * writes, the bytes between the two are cut, changed, left out, repeated, and so on. What the
 * stream gives is always the beginning of what the peer has written, and all of it if nothing was
 * changed.
 */
#include "tests/fuzz/fuzz.h"
#include "tests/transport/stream/tlsrig.h"

#include <openssl/err.h>

#include <errno.h>
#include <string.h>

enum command {
	PEER_WRITES,
	PEER_WRITES_MUCH,
	PEER_CHANGES_KEYS,
	PEER_ENDS,
	SEND,
	SEND_ALL,
	FLIP,
	LEAVE_OUT,
	REPEAT,
	INSERT,
	STREAM_WRITES,
	STREAM_ENDS,
	PAUSE,
	READ_LITTLE,
	NETWORK_TAKES_LITTLE,
	HEAR,
	COMMANDS,
};

enum {
	ROOM = 1 << 20,
	COMMANDS_MAX = 300,
	UPDATES_MAX = 32,
};

static struct tlsrig rig;
static unsigned char text[ROOM];
static unsigned char wire[ROOM]; /* made by the peer, not sent */
static unsigned char came[ROOM];

static struct {
	size_t wire_len;
	size_t written; /* by the peer */
	size_t sent;    /* by the stream */
	size_t heard;   /* by the peer */
	unsigned updates;
	bool changed;    /* the bytes of the peer were changed */
	bool peer_ended; /* the peer writes no more */
	bool ended;      /* ... nor does the stream */
} story;

static void begin(void)
{
	static const struct tlsrig_setting setting = { .accepts = true };

	if (rig.engine) {
		tlsrig_again(&rig);
	} else {
		for (size_t i = 0; i < ROOM; i++)
			text[i] = (unsigned char)(i * 7 + i / 251);
		tlsrig_begin(&rig, &setting);
	}
	memset(&story, 0, sizeof(story));
	rig.piece = 0;
	tlsrig_open(&rig);
}

static void take_made(void)
{
	story.wire_len += tlsrig_made(&rig, wire + story.wire_len, ROOM - story.wire_len);
}

static void peer_writes(size_t len)
{
	size_t took;

	if (story.peer_ended || story.written + len > ROOM / 4)
		return;
	ERR_clear_error();
	while (len > 0 && SSL_write_ex(rig.peer, text + story.written, len, &took) == 1) {
		story.written += took;
		len -= took;
	}
	take_made();
}

static void peer_changes_keys(bool wants)
{
	if (story.peer_ended || story.updates++ >= UPDATES_MAX)
		return;
	ERR_clear_error();
	(void)SSL_key_update(rig.peer,
			     wants ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
	(void)SSL_do_handshake(rig.peer);
	take_made();
}

static void peer_ends(void)
{
	story.peer_ended = true;
	ERR_clear_error();
	(void)SSL_shutdown(rig.peer);
	take_made();
}

/* Takes bytes off the front of those that wait. */
static void drop(size_t len)
{
	memmove(wire, wire + len, story.wire_len - len);
	story.wire_len -= len;
}

static void send_some(size_t len)
{
	if (len > story.wire_len)
		len = story.wire_len;
	tlsrig_send(&rig, wire, len);
	drop(len);
}

static void hear(void)
{
	tlsrig_hear(&rig);
	story.heard += tlsrig_peer_read(&rig, came + story.heard, ROOM - story.heard);
	take_made();
}

static void stream_writes(size_t len)
{
	ssize_t took;

	if (story.ended || rig.ended < 0 || story.sent + len > ROOM / 4)
		return;
	took = tlsrig_write(&rig, text + story.sent, len);
	story.sent += took > 0 ? (size_t)took : 0;
}

static void stream_ends(void)
{
	story.ended = true;
	(void)rig.stream.kind->shut(&rig.stream);
	ERR_clear_error();
}

static void pause_or_resume(void)
{
	rig.paused = !rig.paused;
	tlsrig_watch(&rig);
	tlsrig_run(&rig);
}

static void take_little(unsigned number)
{
	struct spokei_vnet_link *link = spokei_vnet_link(rig.world.net, rig.stream.watch.fd);

	link->write_max = number * 16;
	link->eagain_permille = number * 3;
}

static void change(enum command command, unsigned number)
{
	size_t at = story.wire_len > 0 ? number * 37u % story.wire_len : 0;

	if (story.wire_len == 0)
		return;
	story.changed = true;
	if (command == FLIP)
		wire[at] ^= (unsigned char)(1u << (number & 7));
	else if (command == LEAVE_OUT)
		drop(number % story.wire_len + 1);
	else if (command == REPEAT)
		tlsrig_send(&rig, wire, at + 1);
	else
		tlsrig_send(&rig, &(unsigned char){ (unsigned char)number }, 1);
}

static void obey(enum command command, unsigned number)
{
	switch (command) {
	case PEER_WRITES:
		peer_writes(number + 1u);
		return;
	case PEER_WRITES_MUCH:
		peer_writes((number + 1u) * 300u);
		return;
	case PEER_CHANGES_KEYS:
		peer_changes_keys(number & 1);
		return;
	case PEER_ENDS:
		if (number > 200)
			peer_ends();
		return;
	case SEND:
		send_some(number + 1u);
		return;
	case SEND_ALL:
		send_some(ROOM);
		return;
	case FLIP:
	case LEAVE_OUT:
	case REPEAT:
	case INSERT:
		if (number > 100)
			change(command, number);
		return;
	case STREAM_WRITES:
		stream_writes(number * 100u + 1u);
		return;
	case STREAM_ENDS:
		if (number > 200)
			stream_ends();
		return;
	case PAUSE:
		pause_or_resume();
		return;
	case READ_LITTLE:
		rig.piece = number * 100u;
		return;
	case NETWORK_TAKES_LITTLE:
		take_little(number);
		return;
	case HEAR:
	case COMMANDS:
	default:
		hear();
	}
}

static void check(void)
{
	assert_in_range(rig.got_len, 0, story.written);
	assert_memory_equal(rig.got, text, rig.got_len);
	assert_in_range(story.heard, 0, story.sent);
	assert_memory_equal(came, text, story.heard);
	assert_in_range(spokei_buffer_len(&tlsrig_link(&rig)->pipe.lag), 0, SPOKEI_TLS_LAG_MAX);
	if (!story.changed)
		assert_true(rig.ended == TLSRIG_READING || (rig.ended == 0 && story.peer_ended));
}

/* Whatever was not changed comes whole in both directions. */
static void finish(void)
{
	if (story.changed)
		return;
	take_little(0);
	if (rig.paused)
		pause_or_resume();
	for (unsigned i = 0; i < 4; i++) {
		send_some(ROOM);
		hear();
	}
	check();
	assert_int_equal(rig.got_len, story.written);
	assert_int_equal(story.heard, story.sent);
}

FUZZ(tlsrecords)
{
	begin();
	for (size_t i = 0; i + 1 < size && i < 2 * COMMANDS_MAX; i += 2) {
		obey((enum command)(data[i] % COMMANDS), data[i + 1]);
		check();
	}
	finish();
	return 0;
}
