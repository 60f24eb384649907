/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L

#include "tests/transport/http/wsrig.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct bytes {
	unsigned char *data;
	size_t len;
	size_t room;
};

static void *grow(void *block, size_t needed, size_t *room, size_t size)
{
	void *grown;

	if (needed <= *room && block != NULL)
		return block;
	*room = needed < *room * 2 ? *room * 2 : needed + 16;
	grown = realloc(block, *room * size);
	assert_non_null(grown);
	return grown;
}

static void add(struct bytes *bytes, const void *data, size_t len)
{
	bytes->data = grow(bytes->data, bytes->len + len, &bytes->room, 1);
	if (len > 0)
		memcpy(bytes->data + bytes->len, data, len);
	bytes->len += len;
}

/* --- lists of verdicts */

static uint64_t hash(const unsigned char *data, size_t len)
{
	uint64_t sum = len;
	uint64_t word = 0;

	for (; len >= sizeof(word); data += sizeof(word), len -= sizeof(word)) {
		memcpy(&word, data, sizeof(word));
		sum = (sum ^ word) * 0x9e3779b97f4a7c15u;
		sum ^= sum >> 29;
	}
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ data[i]) * 0x9e3779b97f4a7c15u;
	return sum ^ sum >> 32;
}

void wslist_add(struct wslist *list, char kind, unsigned code, const void *data, size_t len)
{
	list->items = grow(list->items, list->count + 1, &list->room, sizeof(*list->items));
	list->items[list->count++] = (struct wsverdict){
		.kind = kind, .code = code, .len = len, .hash = hash(data, len)
	};
}

void wslist_fini(struct wslist *list)
{
	free(list->items);
	*list = (struct wslist){ 0 };
}

bool wslist_is_same(const struct wslist *a, const struct wslist *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++) {
		const struct wsverdict *x = &a->items[i];
		const struct wsverdict *y = &b->items[i];

		if (x->kind != y->kind || x->code != y->code || x->len != y->len ||
		    x->hash != y->hash)
			return false;
	}
	return true;
}

const char *wslist_print(const struct wslist *list, char *out, size_t room)
{
	size_t at = 0;

	out[0] = '\0';
	for (size_t i = 0; i < list->count && at < room; i++)
		at += (size_t)snprintf(out + at, room - at, "%c%u(%zu)@%zu ", list->items[i].kind,
				       list->items[i].code, list->items[i].len, list->items[i].at);
	return out;
}

/* --- the client */

unsigned wsclient_form(uint64_t len)
{
	return len < 126 ? 0 : len <= UINT16_MAX ? 2 : 8;
}

size_t wsclient_head(unsigned first, uint64_t len, unsigned form, const unsigned char mask[4],
		     unsigned char out[WS_HEAD_MAX])
{
	size_t at = 0;

	out[at++] = (unsigned char)first;
	out[at++] = (unsigned char)((mask ? 0x80 : 0) | (form == 0   ? len & 0x7f
							 : form == 2 ? 126
								     : 127));
	for (unsigned i = form; i-- > 0;)
		out[at++] = (unsigned char)(len >> 8 * i);
	if (mask != NULL) {
		memcpy(out + at, mask, 4);
		at += 4;
	}
	return at;
}

/* --- the notation */

/* Writes a payload in parts. */
static void add_payload(struct bytes *bytes, const char *text, size_t len)
{
	const char *end = text + len;

	while (text < end) {
		const char *plus = memchr(text, '+', (size_t)(end - text));
		const char *stop = plus ? plus : end;

		if (*text == '*') {
			size_t count = strtoul(text + 1, NULL, 10);

			bytes->data = grow(bytes->data, bytes->len + count, &bytes->room, 1);
			memset(bytes->data + bytes->len, '*', count);
			bytes->len += count;
		} else if (*text == '#') {
			for (text++; text + 1 < stop; text += 2) {
				char digits[3] = { text[0], text[1], '\0' };
				unsigned char byte = (unsigned char)strtoul(digits, NULL, 16);

				add(bytes, &byte, 1);
			}
		} else {
			add(bytes, text, (size_t)(stop - text));
		}
		text = plus ? plus + 1 : end;
	}
}

static void add_frame(struct bytes *sent, const char *word, size_t len, uint32_t *dice)
{
	const char *colon = memchr(word, ':', len);
	char *behind;
	unsigned first = (unsigned)strtoul(word, &behind, 16);
	struct bytes payload = { 0 };
	unsigned char mask[4];
	unsigned char head[WS_HEAD_MAX];
	bool is_masked;
	unsigned form;
	size_t start;

	assert_non_null(colon);
	add_payload(&payload, colon + 1, len - (size_t)(colon + 1 - word));
	for (size_t i = 0; i < sizeof(mask); i++) {
		*dice = *dice * 1664525u + 1013904223u;
		mask[i] = (unsigned char)(*dice >> 24);
	}
	form = strncmp(behind, "/16", 3) == 0   ? 2
	       : strncmp(behind, "/64", 3) == 0 ? 8
						: wsclient_form(payload.len);
	is_masked = strncmp(behind, "/u", 2) != 0;
	add(sent, head, wsclient_head(first, payload.len, form, is_masked ? mask : NULL, head));
	start = sent->len;
	add(sent, payload.data, payload.len);
	for (size_t i = 0; is_masked && i < payload.len; i++)
		sent->data[start + i] ^= mask[i % 4];
	free(payload.data);
}

static void add_verdict(struct wslist *list, const char *word, size_t len)
{
	const char *colon = memchr(word, ':', len);
	const char *at = memchr(word, '@', len);
	struct bytes payload = { 0 };

	if (*word == '-')
		return;
	if (*word != 'f' && colon != NULL)
		add_payload(&payload, colon + 1, len - (size_t)(colon + 1 - word));
	wslist_add(list, *word, (unsigned)strtoul(word + 1, NULL, 10), payload.data, payload.len);
	if (*word == 'f' && at != NULL)
		list->items[list->count - 1].at = strtoul(at + 1, NULL, 10);
	free(payload.data);
}

/* Reads "10x" before a word. */
static size_t read_times(const char **word, size_t *len)
{
	char *behind;
	size_t times = strtoul(*word, &behind, 10);

	if (behind == *word || *behind != 'x')
		return 1;
	*len -= (size_t)(behind + 1 - *word);
	*word = behind + 1;
	return times;
}

static void read_sent(struct wsrow *row, const char *text)
{
	struct bytes sent = { 0 };
	uint32_t dice = 1;

	while (*text != '\0') {
		size_t len = strcspn(text, " ");
		const char *next = text[len] ? text + len + 1 : text + len;

		for (size_t times = read_times(&text, &len); times > 0; times--) {
			if (*text == '=')
				add_payload(&sent, text + 1, len - 1);
			else
				add_frame(&sent, text, len, &dice);
		}
		text = next;
	}
	row->sent = sent.data;
	row->len = sent.len;
}

static void read_verdicts(struct wsrow *row, const char *text)
{
	while (*text != '\0') {
		size_t len = strcspn(text, " ");
		const char *next = text[len] ? text + len + 1 : text + len;

		for (size_t times = read_times(&text, &len); times > 0; times--)
			add_verdict(&row->verdicts, text, len);
		text = next;
	}
}

static void read_row(char *line, struct wsrow *row)
{
	char *columns[4] = { line };

	line[strcspn(line, "\n")] = '\0';
	for (size_t i = 1; i < 4; i++) {
		columns[i] = strchr(columns[i - 1], '\t');
		assert_non_null(columns[i]);
		*columns[i]++ = '\0';
	}
	assert_true(strlen(columns[0]) < sizeof(row->id));
	memcpy(row->id, columns[0], strlen(columns[0]) + 1);
	row->limit = *columns[1] == '-' ? 0 : (uint32_t)strtoul(columns[1], NULL, 10);
	read_sent(row, columns[2]);
	read_verdicts(row, columns[3]);
}

size_t wsrows_each(void (*use)(const struct wsrow *row, void *arg), void *arg)
{
	FILE *file = fopen(SPOKE_WEBSOCKET_CASES, "r");
	char *line = NULL;
	size_t room = 0;
	size_t count = 0;

	assert_non_null(file);
	while (getline(&line, &room, file) > 0) {
		struct wsrow row = { .limit = 0 };

		if (*line == '#')
			continue;
		read_row(line, &row);
		use(&row, arg);
		count++;
		free(row.sent);
		wslist_fini(&row.verdicts);
	}
	free(line);
	(void)fclose(file);
	return count;
}

/* --- the caller of the reader */

void wsreader_init(struct wsreader *reader, uint32_t limit, size_t room)
{
	*reader = (struct wsreader){ .limit = limit, .room = room };
	reader->bytes = malloc(room > 0 ? room : 1);
	assert_non_null(reader->bytes);
}

void wsreader_fini(struct wsreader *reader)
{
	free(reader->bytes);
	wslist_fini(&reader->verdicts);
}

static char kind_of(enum spokei_websocket_verdict verdict)
{
	static const char kinds[] = "-tbpocf";

	return kinds[verdict];
}

void wsreader_feed(struct wsreader *reader, const unsigned char *bytes, size_t len)
{
	struct spokei_websocket_input input = { .bytes = reader->bytes };
	struct spokei_websocket_event event;
	enum spokei_websocket_verdict verdict;

	input.at = reader->websocket.kept;
	input.end = input.at + len;
	assert_true(input.end <= reader->room);
	if (len > 0)
		memcpy(reader->bytes + input.at, bytes, len);
	reader->fed += len;
	for (;;) {
		verdict = spokei_websocket_read(&reader->websocket, &input, reader->limit, &event);
		if (verdict == SPOKEI_WEBSOCKET_MORE)
			break;
		if (verdict == SPOKEI_WEBSOCKET_GIVES_FAILURE)
			wslist_add(&reader->verdicts, 'f', event.code, NULL, 0);
		else
			wslist_add(&reader->verdicts, kind_of(verdict), event.code, event.data.data,
				   event.data.len);
		reader->verdicts.items[reader->verdicts.count - 1].at = reader->fed -
									(input.end - input.at);
	}
	assert_int_equal(input.at, input.end);
}
