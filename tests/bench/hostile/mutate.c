/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of frames, and frames as text. */
#include "tests/bench/hostile/hostile.h"

#include <stdlib.h>
#include <string.h>

#define HEAD 16u /* bytes of a head of Dubbo */

static const char *const wires[HOSTILE_WIRES] = { "dubbo", "mprpc", "http" };

uint64_t hostile_dice(uint64_t *dice)
{
	uint64_t x = *dice += UINT64_C(0x9e3779b97f4a7c15);

	x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
	return x ^ (x >> 31);
}

static size_t below(uint64_t *dice, size_t limit)
{
	return limit ? (size_t)(hostile_dice(dice) % limit) : 0;
}

/* Returns where `text` begins in the frame; NULL: nowhere. */
static unsigned char *find(struct hostile_frame *frame, const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0; at + len <= frame->len; at++)
		if (memcmp(frame->bytes + at, text, len) == 0)
			return frame->bytes + at;
	return NULL;
}

/* Sets the four digits after "Content-Length: ". */
static void fix_http(struct hostile_frame *frame)
{
	unsigned char *line = find(frame, "Content-Length: ");
	unsigned char *body = find(frame, "\r\n\r\n");
	char digits[24];

	if (line == NULL || body == NULL || body < line + 20)
		return;
	(void)snprintf(digits, sizeof(digits), "%04zu",
		       frame->len - (size_t)(body + 4 - frame->bytes));
	memcpy(line + 16, digits, 4);
}

void hostile_fix(struct hostile_frame *frame)
{
	size_t len = frame->len - HEAD;

	if (frame->wire == HOSTILE_HTTP)
		fix_http(frame);
	if (frame->wire != HOSTILE_DUBBO || frame->len < HEAD)
		return;
	frame->bytes[0] = 0xda;
	frame->bytes[1] = 0xbb;
	for (unsigned i = 0; i < 4; i++)
		frame->bytes[12 + i] = (unsigned char)(len >> (24 - 8 * i));
}

/* Makes room for bytes. Returns false if the frame would be too long. */
static bool insert(struct hostile_frame *frame, size_t at, const unsigned char *bytes, size_t len)
{
	unsigned char copy[HOSTILE_FRAME_MAX];

	if (frame->len + len > HOSTILE_FRAME_MAX)
		return false;
	memcpy(copy, bytes, len);
	memmove(frame->bytes + at + len, frame->bytes + at, frame->len - at);
	memcpy(frame->bytes + at, copy, len);
	frame->len += len;
	return true;
}

static void cut(struct hostile_frame *frame, size_t at, size_t len)
{
	memmove(frame->bytes + at, frame->bytes + at + len, frame->len - at - len);
	frame->len -= len;
}

/* Repeats a piece of the frame some times, or until the frame is as long as it may be. */
static void repeat(struct hostile_frame *frame, size_t at, uint64_t *dice)
{
	size_t len = 1 + below(dice, below(dice, 4) ? 6 : 64);
	size_t times = (size_t)1 << below(dice, 12);

	if (len > frame->len - at)
		len = frame->len - at;
	while (times-- > 0 && insert(frame, at, frame->bytes + at, len))
		continue;
}

static void change(struct hostile_frame *frame, const struct hostile_frame *other, uint64_t *dice)
{
	static const unsigned char keen[] = { 0x00, 0x01, 0x7f, 0x80, 0x90, 0x91, 0xc0, 0xc1,
					      0xc7, 0xd4, 0xdf, 0xff, 'C',  'H',  'M',  'N',
					      'O',  'Q',  'R',  'Z',  0x55, 0x57, 0x60, 0x70,
					      0x78, 0x79, '"',  '[',  '{',  ',',  '0',  'e' };
	size_t from = frame->wire == HOSTILE_DUBBO && below(dice, 8) ? HEAD : 0;
	size_t at = from + below(dice, frame->len - from);
	size_t len = 1 + below(dice, 12);
	unsigned char byte;

	switch (below(dice, 8)) {
	case 0:
		frame->bytes[at] ^= (unsigned char)(1u << below(dice, 8));
		break;
	case 1:
		frame->bytes[at] = keen[below(dice, sizeof(keen))];
		break;
	case 2:
		frame->bytes[at] = (unsigned char)(frame->bytes[at] + below(dice, 9) - 4);
		break;
	case 3:
		byte = keen[below(dice, sizeof(keen))];
		(void)insert(frame, at, &byte, 1);
		break;
	case 4:
		if (len < frame->len - at)
			cut(frame, at, below(dice, 4) ? len : below(dice, frame->len - at));
		break;
	case 5:
		if (other->len > len) {
			len = 1 + below(dice, below(dice, 4) ? 24 : other->len);
			if (len < other->len)
				(void)insert(frame, at,
					     other->bytes + below(dice, other->len - len), len);
		}
		break;
	default:
		repeat(frame, at, dice);
		break;
	}
}

void hostile_mutate(struct hostile_frame *frame, const struct hostile_frame *other, uint64_t *dice)
{
	size_t changes = 1 + below(dice, 4);

	while (changes-- > 0 && frame->len > HEAD + 1)
		change(frame, other, dice);
	hostile_fix(frame);
}

/* --- text */

bool hostile_read(const char *line, struct hostile_frame *ret)
{
	char wire[8];
	int at = 0;

	if (sscanf(line, "%23s %7s %n", ret->name, wire, &at) != 2 || at == 0)
		return false;
	ret->wire = HOSTILE_WIRES;
	for (unsigned i = 0; i < HOSTILE_WIRES; i++)
		if (strcmp(wire, wires[i]) == 0)
			ret->wire = (enum hostile_wire)i;
	for (ret->len = 0; ret->len < HOSTILE_FRAME_MAX; ret->len++) {
		char digits[3] = { line[at], line[at] ? line[at + 1] : '\0', '\0' };
		char *end;

		ret->bytes[ret->len] = (unsigned char)strtoul(digits, &end, 16);
		if (end != digits + 2)
			break;
		at += 2;
	}
	return ret->wire != HOSTILE_WIRES && ret->len > 0;
}

void hostile_print(const struct hostile_frame *frame, FILE *file)
{
	(void)fprintf(file, "%s %s ", frame->name, wires[frame->wire]);
	for (size_t i = 0; i < frame->len; i++)
		(void)fprintf(file, "%02x", frame->bytes[i]);
	(void)fputc('\n', file);
}
