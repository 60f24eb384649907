/* SPDX-License-Identifier: Apache-2.0 */
/* Parses a byte stream into frames, independently of the product; see frames.h. */
#include "tests/sim/frames.h"

#include <string.h>

static const unsigned char mark_begins[4] = { 0xf5, 'S', 'I', 'M' };

static uint64_t number_at(const unsigned char *bytes, unsigned len)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < len; i++)
		number = number << 8 | bytes[i];
	return number;
}

static uint32_t check_of(uint64_t number)
{
	return (uint32_t)((number * UINT64_C(0x9e3779b97f4a7c15)) >> 32);
}

void sim_mark_write(unsigned char *bytes, uint64_t number)
{
	uint32_t check = check_of(number);

	memcpy(bytes, mark_begins, sizeof(mark_begins));
	for (unsigned i = 0; i < 8; i++)
		bytes[4 + i] = (unsigned char)(number >> (56 - 8 * i));
	for (unsigned i = 0; i < 4; i++)
		bytes[12 + i] = (unsigned char)(check >> (24 - 8 * i));
}

uint64_t sim_mark_read(const unsigned char *bytes)
{
	uint64_t number = number_at(bytes + 4, 8);

	if (memcmp(bytes, mark_begins, sizeof(mark_begins)) != 0 ||
	    number_at(bytes + 12, 4) != check_of(number))
		return 0;
	return number;
}

static uint64_t find_mark(const unsigned char *bytes, size_t len)
{
	const unsigned char *end = bytes + len;
	const unsigned char *at = bytes;

	while (at + SIM_MARK <= end) {
		uint64_t number;

		at = memchr(at, mark_begins[0], (size_t)(end - at));
		if (at == NULL || at + SIM_MARK > end)
			return 0;
		number = sim_mark_read(at);
		if (number)
			return number;
		at++;
	}
	return 0;
}

/* --- the attachments of a request */

/* Returns the bytes after `key` in `bytes`, or NULL if the key is missing. */
static const unsigned char *find_key(const unsigned char *bytes, size_t len, const char *key)
{
	size_t key_len = strlen(key);

	for (size_t i = 0; i + key_len < len; i++)
		if (bytes[i] == (unsigned char)key[0] && memcmp(bytes + i, key, key_len) == 0)
			return bytes + i + key_len;
	return NULL;
}

/* Returns the number that `len` digits contain, in the given base. */
static uint64_t digits_of(const unsigned char *at, const unsigned char *end, size_t len,
			  unsigned base)
{
	uint64_t value = 0;

	for (; len > 0 && at < end; len--, at++)
		value = value * base + (uint64_t)(*at <= '9' ? *at - '0' : *at - 'a' + 10);
	return value;
}

/* The same of a short string. The low five bits of its first byte are its length, in msgpack and in
 * Hessian 2. */
static uint64_t digits_at(const unsigned char *at, const unsigned char *end, unsigned base)
{
	return digits_of(at + 1, end, *at & 0x1fu, base);
}

#define ID_HALF 16u /* digits */
#define INSTANCE_DIGITS 8u

/* The length of a text of 32 bytes takes two bytes, in both. */
static void read_id(const unsigned char *at, const unsigned char *end, struct sim_frame *frame)
{
	if (at + 2 + 2 * ID_HALF > end || at[1] != 2 * ID_HALF)
		return;
	frame->call_hash = digits_of(at + 2, end, ID_HALF, 16);
	frame->call_id = digits_of(at + 2 + ID_HALF, end, ID_HALF, 16);
}

static void read_attempt(const unsigned char *bytes, size_t len, struct sim_frame *frame)
{
	const unsigned char *id = find_key(bytes, len, "spoke.id");
	const unsigned char *attempt = find_key(bytes, len, "spoke.attempt");
	const unsigned char *repeat = find_key(bytes, len, "spoke.repeat");

	if (id)
		read_id(id, bytes + len, frame);
	if (attempt)
		frame->attempt = (unsigned)digits_at(attempt, bytes + len, 10);
	if (repeat)
		frame->instance = (uint32_t)digits_of(repeat + 1, bytes + len, INSTANCE_DIGITS, 16);
	frame->repeat = repeat != NULL;
}

/* --- frames */

/* Of notices of a side that steps aside. */
#define ID_ASIDE UINT64_C(0x73706f6b00000000)

/* Returns whether the frame of an event has this letter as its body. */
static bool is_event(const unsigned char *bytes, size_t len, char letter)
{
	return len == SIM_HEAD + 2u && (bytes[SIM_HEAD] & 0x1fu) == 1 &&
	       bytes[SIM_HEAD + 1] == (unsigned char)letter;
}

static struct sim_frame read_frame(const unsigned char *bytes, size_t len)
{
	bool request = bytes[2] & 0x80;
	struct sim_frame frame = {
		.id = number_at(bytes + 4, 8),
		.two_way = bytes[2] & 0x40,
		.status = bytes[3],
		.kind = request ? SIM_REQUEST : SIM_REPLY,
	};

	if (!(bytes[2] & 0x20)) {
		frame.number = find_mark(bytes + SIM_HEAD, len - SIM_HEAD);
		frame.unknown = !request && (find_key(bytes, len, "attempt has run is not known") ||
					     find_key(bytes, len, "written to another instance"));
		return frame;
	}
	if (!request)
		frame.kind = SIM_PROBE_ANSWER;
	else if (len == SIM_HEAD + 1u)
		frame.kind = SIM_PROBE;
	else if (is_event(bytes, len, 'R'))
		frame.kind = frame.id == ID_ASIDE ? SIM_ASIDE : SIM_READONLY;
	else if (is_event(bytes, len, 'W'))
		frame.kind = SIM_BACK;
	else if (len == SIM_HEAD + 2u && !frame.two_way && bytes[SIM_HEAD + 1] == 'C')
		frame.kind = SIM_CANCEL;
	else if (len == SIM_HEAD + 22u && bytes[SIM_HEAD + 1] == 'S')
		frame.kind = SIM_NAME;
	else
		frame.kind = SIM_OTHER;
	if (frame.kind == SIM_NAME)
		frame.instance = (uint32_t)digits_of(bytes + SIM_HEAD + 2, bytes + len,
						     INSTANCE_DIGITS, 16);
	return frame;
}

/* Returns the length of the frame, or 0 if the header is invalid. Events are short; a longer frame
 * than allowed is skipped if its length is not negative. */
static uint64_t length_of(const struct sim_frames *frames, const unsigned char *head)
{
	uint64_t len = number_at(head + 12, 4) + SIM_HEAD;
	uint64_t max = head[2] & 0x20 ? frames->frame_max : (uint64_t)INT32_MAX + SIM_HEAD;

	return head[0] == 0xda && head[1] == 0xbb && len <= max ? len : 0;
}

/* Copies bytes to the tail buffer. The part begins at offset `have` of the frame. */
static void keep_tail(struct sim_frames *frames, const unsigned char *bytes, size_t part)
{
	uint64_t begin = frames->need > SIM_TAIL ? frames->need - SIM_TAIL : 0;
	size_t skip = frames->have < begin ? (size_t)(begin - frames->have) : 0;

	if (begin > 0 && skip < part)
		memcpy(frames->tail + (frames->have + skip - begin), bytes + skip, part - skip);
}

/* Takes a part of the current frame; returns its length in bytes. */
static size_t take_part(struct sim_frames *frames, const unsigned char *bytes, size_t len)
{
	uint64_t want = (frames->need ? frames->need : SIM_HEAD) - frames->have;
	size_t part = want < len ? (size_t)want : len;

	if (frames->have < SIM_KEPT) {
		size_t room = SIM_KEPT - (size_t)frames->have;

		memcpy(frames->kept + frames->have, bytes, part < room ? part : room);
	}
	keep_tail(frames, bytes, part);
	frames->have += part;
	return part;
}

/* Reads the head of a frame. Of a reply above the limit it is all that the product reads. */
static void take_head(struct sim_frames *frames,
		      void (*whole)(void *arg, const struct sim_frame *frame), void *arg)
{
	frames->need = length_of(frames, frames->kept);
	frames->broken = frames->need == 0;
	if (frames->need > frames->frame_max && !(frames->kept[2] & 0x80)) {
		struct sim_frame frame = read_frame(frames->kept, SIM_HEAD);

		whole(arg, &frame);
	}
}

static void read_attachments(const struct sim_frames *frames, size_t kept, struct sim_frame *frame)
{
	const unsigned char *bytes = kept < frames->need ? frames->tail : frames->kept;
	size_t len = kept < frames->need ? SIM_TAIL : kept;
	const unsigned char *timeout = frames->timed ? find_key(bytes, len, "timeout") : NULL;

	read_attempt(bytes, len, frame);
	if (timeout)
		frame->timeout_ms = digits_at(timeout, bytes + len, 10);
}

static void end_frame(struct sim_frames *frames,
		      void (*whole)(void *arg, const struct sim_frame *frame), void *arg)
{
	size_t kept = frames->need < SIM_KEPT ? (size_t)frames->need : SIM_KEPT;
	struct sim_frame frame = read_frame(frames->kept, kept);
	bool allowed = frames->need <= frames->frame_max;

	if (frame.kind == SIM_REQUEST && frame.number)
		read_attachments(frames, kept, &frame);
	frames->frame_len = frames->need;
	frames->have = 0;
	frames->need = 0;
	if (allowed)
		whole(arg, &frame);
}

void sim_frames_feed(struct sim_frames *frames, const unsigned char *bytes, size_t len,
		     void (*whole)(void *arg, const struct sim_frame *frame), void *arg)
{
	while (len > 0 && !frames->broken) {
		size_t part = take_part(frames, bytes, len);

		bytes += part;
		len -= part;
		if (frames->need == 0 && frames->have == SIM_HEAD)
			take_head(frames, whole, arg);
		if (frames->need && frames->have == frames->need)
			end_frame(frames, whole, arg);
	}
}

bool sim_frames_may_be(const struct sim_frames *frames, uint64_t id)
{
	return frames->have > 0 && (frames->have < 12 || number_at(frames->kept + 4, 8) == id);
}
