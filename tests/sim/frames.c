/* SPDX-License-Identifier: Apache-2.0 */
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
		return frame;
	}
	if (!request)
		frame.kind = SIM_PROBE_ANSWER;
	else if (len == SIM_HEAD + 1u)
		frame.kind = SIM_PROBE;
	else if (len == SIM_HEAD + 2u && bytes[SIM_HEAD] == 0xa1 && bytes[SIM_HEAD + 1] == 'R')
		frame.kind = SIM_READONLY;
	else
		frame.kind = SIM_OTHER;
	return frame;
}

/* How long the frame is, or 0: it is no frame. */
static uint64_t length_of(const struct sim_frames *frames, const unsigned char *head)
{
	uint64_t len = number_at(head + 12, 4) + SIM_HEAD;

	return head[0] == 0xda && head[1] == 0xbb && len <= frames->frame_max ? len : 0;
}

/* Takes a part of the present frame; returns how many bytes. */
static size_t take_part(struct sim_frames *frames, const unsigned char *bytes, size_t len)
{
	uint64_t want = (frames->need ? frames->need : SIM_HEAD) - frames->have;
	size_t part = want < len ? (size_t)want : len;

	if (frames->have < SIM_KEPT) {
		size_t room = SIM_KEPT - (size_t)frames->have;

		memcpy(frames->kept + frames->have, bytes, part < room ? part : room);
	}
	frames->have += part;
	return part;
}

void sim_frames_feed(struct sim_frames *frames, const unsigned char *bytes, size_t len,
		     void (*whole)(void *arg, const struct sim_frame *frame), void *arg)
{
	while (len > 0 && !frames->broken) {
		size_t part = take_part(frames, bytes, len);

		bytes += part;
		len -= part;
		if (frames->need == 0 && frames->have == SIM_HEAD) {
			frames->need = length_of(frames, frames->kept);
			frames->broken = frames->need == 0;
		}
		if (frames->need && frames->have == frames->need) {
			size_t kept = frames->need < SIM_KEPT ? (size_t)frames->need : SIM_KEPT;
			struct sim_frame frame = read_frame(frames->kept, kept);

			frames->frame_len = frames->need;
			frames->have = 0;
			frames->need = 0;
			whole(arg, &frame);
		}
	}
}

bool sim_frames_may_be(const struct sim_frames *frames, uint64_t id)
{
	return frames->have > 0 && (frames->have < 12 || number_at(frames->kept + 4, 8) == id);
}
