/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the recorded Hessian 2 frames: see golden_frames.h. */
#include "tests/transport/golden_frames.h"

#include "tests/transport/dubbo_frames.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX 1048576u
#define RECORDED 90u /* frames of dubbo-frames.tsv; the others are in the other file */

/* Owned by the first frame of the list. */
static char *told;

static char *read_file(const char *path)
{
	char *text = malloc(FILE_MAX);
	FILE *file = fopen(path, "r");
	size_t len;

	assert_non_null(text);
	assert_non_null(file);
	len = fread(text, 1, FILE_MAX, file);
	assert_in_range(len, 1, FILE_MAX - 1);
	(void)fclose(file);
	text[len] = '\0';
	return text;
}

/* Cuts the next part off; returns NULL at the end. */
static char *cut(char **at, char end)
{
	char *start = *at;
	char *stop;

	if (start == NULL || *start == '\0')
		return NULL;
	stop = strchr(start, end);
	assert_non_null(stop);
	*stop = '\0';
	*at = stop + 1;
	return start;
}

static char *column(char **at)
{
	char *text = cut(at, '\t');

	assert_non_null(text);
	return text;
}

static unsigned digit(char c)
{
	const char *digits = "0123456789abcdef";
	const char *at = c ? strchr(digits, c) : NULL;

	assert_non_null(at);
	return (unsigned)(at - digits);
}

static void take_bytes(struct golden_frame *frame, const char *hex)
{
	frame->len = strlen(hex) / 2;
	frame->bytes = malloc(frame->len + 1);
	assert_non_null(frame->bytes);
	for (size_t i = 0; i < frame->len; i++)
		frame->bytes[i] = (unsigned char)(digit(hex[2 * i]) << 4 | digit(hex[2 * i + 1]));
}

static void read_told(struct golden_frame *frames)
{
	char *at = told = read_file(SPOKE_GOLDEN "/hessian2-frames.tsv");

	(void)cut(&at, '\n');
	for (size_t i = 0; i < GOLDEN_FRAMES; i++) {
		char *line = cut(&at, '\n');

		assert_non_null(line);
		frames[i].name = column(&line);
		(void)column(&line); /* the label of the call */
		frames[i].kind = column(&line);
		frames[i].said = column(&line);
		frames[i].types = column(&line);
		frames[i].arg_count = column(&line);
		frames[i].values = column(&line);
	}
	assert_string_equal(at, "");
}

static size_t read_recorded(struct golden_frame *frames)
{
	char *text = read_file(SPOKE_GOLDEN "/dubbo-frames.tsv");
	char *at = text;
	char *line = cut(&at, '\n');
	size_t count = 0;

	while ((line = cut(&at, '\n')) != NULL) {
		unsigned long flags;

		for (unsigned i = 0; i < 3; i++)
			(void)column(&line);
		flags = strtoul(column(&line), NULL, 16);
		for (unsigned i = 0; i < 3; i++)
			(void)column(&line);
		if ((flags & 31) == SPOKEI_CODEC_HESSIAN2 && count < RECORDED)
			take_bytes(&frames[count++], line);
	}
	free(text);
	return count;
}

static size_t read_battery(struct golden_frame *frames)
{
	char *text = read_file(SPOKE_GOLDEN "/dubbo-2.7.23-hessian2.frames");
	char *at = text;
	char *line;
	size_t count = 0;

	while ((line = cut(&at, '\n')) != NULL && count < GOLDEN_FRAMES - RECORDED)
		take_bytes(&frames[count++], line + 3); /* after the arrow */
	free(text);
	return count;
}

struct golden_frame *golden_frames_read(void)
{
	struct golden_frame *frames = calloc(GOLDEN_FRAMES, sizeof(*frames));

	assert_non_null(frames);
	read_told(frames);
	assert_int_equal(read_recorded(frames), RECORDED);
	assert_int_equal(read_battery(frames + RECORDED), GOLDEN_FRAMES - RECORDED);
	return frames;
}

void golden_frames_free(struct golden_frame *frames)
{
	for (size_t i = 0; i < GOLDEN_FRAMES; i++)
		free(frames[i].bytes);
	free(frames);
	free(told);
	told = NULL;
}

struct spoke_span golden_body(const struct golden_frame *frame)
{
	assert_in_range(frame->len, HEAD, SIZE_MAX);
	return spokei_span(frame->bytes + HEAD, frame->len - HEAD);
}

static uint64_t hash(struct spoke_span bytes)
{
	const unsigned char *at = bytes.data;
	uint64_t state = UINT64_C(0xcbf29ce484222325);

	for (size_t i = 0; i < bytes.len; i++)
		state = (state ^ at[i]) * UINT64_C(0x100000001b3);
	return state;
}

bool golden_frame_has(const struct golden_frame *frame, struct spoke_span values)
{
	const unsigned char *at = values.data;
	unsigned long long sum;
	size_t len;

	if (sscanf(frame->values, "fnv=%llx;length=%zu", &sum, &len) == 2)
		return len == values.len && hash(values) == sum;
	if (strlen(frame->values) != 2 * values.len)
		return false;
	for (size_t i = 0; i < values.len; i++)
		if ((digit(frame->values[2 * i]) << 4 | digit(frame->values[2 * i + 1])) != at[i])
			return false;
	return true;
}
