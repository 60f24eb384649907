/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes JSON: values, texts, and documents, member by member. Output goes into a window, which is
 * room at the end of a buffer, without a copy in between, or a piece that is collected for a
 * function. After the first error nothing more is written.
 *
 * The packed bytes of a value are walked over from the first to the last; only the keys of a map
 * are looked at once more before, because they decide on its form. The values between them are
 * skipped, so those that are nested deeply are skipped by each map around them. This has a limit;
 * maps beyond it have the form that is right for any keys.
 */
#include "core/json/document.h"
#include "core/json/json.h"
#include "core/json/number.h"
#include "core/json/plain.h"
#include "core/text/encoding.h"
#include "core/value/shape.h"

#include <math.h>

/* Bytes that are skipped in one print: these, and so many times its own. */
#define SKIPS_MIN ((size_t)65536)
#define SKIPS_SHARE ((size_t)8)

#define KEYS_COMPARED ((size_t)64) /* in maps of more pairs, keys are not compared */

#define PIECE 512u /* bytes that are collected for a function */

/* Must not be copied. */
struct output {
	char *at;  /* the next byte is written here ... */
	char *end; /* ... and the window ends here */
	char *start;
	struct spokei_buffer *buffer; /* borrowed; NULL: `put` */
	size_t before;                /* ... bytes that it had */
	spoke_json_put_fn put;
	void *arg;
	int error;
	char piece[PIECE];
};

#define ROOM 64u /* the most bytes to ask room for */

/* --- the window */

static void open_piece(struct output *out)
{
	out->start = out->at = out->piece;
	out->end = out->piece + PIECE;
}

static void begin_buffer(struct output *out, struct spokei_buffer *buffer)
{
	out->buffer = buffer;
	out->before = spokei_buffer_len(buffer);
	out->put = NULL;
	out->arg = NULL;
	out->error = SPOKE_OK;
	out->start = out->at = out->end = out->piece; /* the first byte opens a window */
}

static void begin_function(struct output *out, spoke_json_put_fn put, void *arg)
{
	out->buffer = NULL;
	out->before = 0;
	out->put = put;
	out->arg = arg;
	out->error = SPOKE_OK;
	open_piece(out);
}

static void pass_on(struct output *out, const void *bytes, size_t len)
{
	if (len == 0 || out->error)
		return;
	if (out->buffer)
		out->error = spokei_buffer_append(out->buffer, bytes, len);
	else
		out->put(out->arg, bytes, len);
}

/* Passes on the bytes in the window. */
static void flush(struct output *out)
{
	size_t len = (size_t)(out->at - out->start);

	if (out->start == out->piece)
		pass_on(out, out->piece, len);
	else
		spokei_buffer_commit(out->buffer, len);
	open_piece(out);
}

/* Opens a window in the buffer. Near its maximum there is no room for a window; then pieces are
 * appended, which are exact. */
static bool open_room(struct output *out, size_t len)
{
	struct spokei_buffer *buffer = out->buffer;
	size_t room;
	size_t left;

	if (out->error || buffer == NULL)
		return false;
	left = buffer->max - spokei_buffer_len(buffer);
	if (len > left)
		return false;
	if (spokei_buffer_reserve(buffer, len) == NULL) {
		out->error = SPOKE_ENOMEM;
		return false;
	}
	room = buffer->capacity - buffer->end;
	out->start = out->at = (char *)buffer->bytes + buffer->end;
	out->end = out->at + (room < left ? room : left);
	return true;
}

/* Makes room for this many bytes, or drops the bytes written after an error. */
static SPOKEI_NOINLINE void make_room(struct output *out, size_t len)
{
	flush(out);
	(void)open_room(out, len);
}

/* The slow path of put_bytes(). */
static SPOKEI_NOINLINE void put_long(struct output *out, const void *bytes, size_t len)
{
	flush(out);
	if (open_room(out, len) || len <= PIECE) {
		memcpy(out->at, bytes, len);
		out->at += len;
	} else {
		pass_on(out, bytes, len);
	}
}

/* Ends the output. Returns 0, SPOKE_ETOOLARGE or SPOKE_ENOMEM; after an error the buffer is as
 * before. */
static int end_output(struct output *out)
{
	flush(out);
	if (out->error && out->buffer)
		spokei_buffer_truncate(out->buffer, out->before);
	return out->error;
}

/* Returns room for `len` bytes, at most ROOM. The caller moves `at` behind those that
 * it has written. */
static inline char *room_for(struct output *out, size_t len)
{
	if (SPOKEI_UNLIKELY(len > (size_t)(out->end - out->at)))
		make_room(out, len);
	return out->at;
}

static inline void put_bytes(struct output *out, const void *bytes, size_t len)
{
	if (SPOKEI_UNLIKELY(len > (size_t)(out->end - out->at))) {
		put_long(out, bytes, len);
		return;
	}
	memcpy(out->at, bytes, len);
	out->at += len;
}

static inline void put_char(struct output *out, char c)
{
	*room_for(out, 1) = c;
	out->at++;
}

/* --- texts */

enum escape {
	ESCAPE_FEW,  /* as JSON demands, and control characters of terminals */
	ESCAPE_HTML, /* also "<", so that the text may be embedded in HTML */
};

/* The bytes that need attention: 1 in JSON, 2 in HTML. */
#define SIXTEEN_OF(mark)                                                                           \
	mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark, mark,  \
		mark

static const unsigned char marks[256] = {
	[0x00] = SIXTEEN_OF(1),
	[0x10] = SIXTEEN_OF(1),
	['"'] = 1,
	['\\'] = 1,
	['<'] = 2,
	[0x7f] = 1,
	[0x80] = SIXTEEN_OF(1),
	[0x90] = SIXTEEN_OF(1),
	[0xa0] = SIXTEEN_OF(1),
	[0xb0] = SIXTEEN_OF(1),
	[0xc0] = SIXTEEN_OF(1),
	[0xd0] = SIXTEEN_OF(1),
	[0xe0] = SIXTEEN_OF(1),
	[0xf0] = SIXTEEN_OF(1),
};

static const char hex[] = "0123456789abcdef";

static void put_code(struct output *out, unsigned char byte)
{
	char *at = room_for(out, 6);

	/* NOLINTNEXTLINE(bugprone-not-null-terminated-result) */
	memcpy(at, "\\u00", 4);
	at[4] = hex[byte >> 4];
	at[5] = hex[byte & 0xf];
	out->at += 6;
}

/* Writes a character that is not plain. Returns its size. */
static size_t put_character(struct output *out, const unsigned char *bytes, size_t len)
{
	static const char names[] = "\"\\\b\f\n\r\t";
	static const char letters[] = "\"\\bfnrt";
	size_t size = spokei_utf8_len(bytes, len);
	const char *name = size == 1 && *bytes ? strchr(names, *bytes) : NULL;

	if (name) {
		char pair[2] = { '\\', letters[name - names] };

		put_bytes(out, pair, 2);
	} else if (size == 0) {
		put_bytes(out, "\\ufffd", 6);
	} else if (size == 1) {
		put_code(out, *bytes);
	} else if (size == 2 && bytes[0] == 0xc2 && bytes[1] < 0xa0) {
		/* U+0080 to U+009F are control characters for a terminal. */
		put_code(out, bytes[1]);
	} else {
		put_bytes(out, bytes, size);
	}
	return size ? size : 1;
}

/* Writes the content of a string, without the quotes, with U+FFFD for invalid UTF-8. */
static void put_escaped(struct output *out, const void *bytes, size_t len, enum escape escape)
{
	const unsigned char *at = bytes;
	const unsigned char *end = at + len;
	bool is_html = escape == ESCAPE_HTML;

	while (at < end) {
		const unsigned char *run = at;

		if (!is_html)
			at += spokei_json_plain((const char *)at, (size_t)(end - at));
		else
			while (at < end && marks[*at] == 0)
				at++;
		if (at > run)
			put_bytes(out, run, (size_t)(at - run));
		while (at < end && (marks[*at] & (is_html ? 3 : 1)))
			at += put_character(out, at, (size_t)(end - at));
	}
}

/* --- values */

enum open {
	OPEN_ARRAY,
	OPEN_MAP,
	OPEN_PAIRS,
};

struct level {
	uint64_t left; /* values to come; of a map: keys and values alternate */
	enum open open;
	bool is_empty; /* nothing has been printed */
};

struct printer {
	struct output *out;
	enum spoke_json_form form;
	const unsigned char *at; /* the next value ... */
	const unsigned char *end;
	size_t skips; /* bytes that may still be skipped to see the keys of maps */
	struct level levels[SPOKE_VALUE_DEPTH_MAX];
	unsigned depth;
};

static void put_text(const struct printer *printer, const char *text)
{
	put_bytes(printer->out, text, strlen(text));
}

static void put_space(const struct printer *printer)
{
	if (printer->form == SPOKE_JSON_TREE)
		put_char(printer->out, ' ');
}

/* --- texts and bytes */

#define SHORT 32u /* bytes of a text that are copied without a call */

/* Prints a text that needs no escape; `end` is the end of the readable bytes after it. */
static inline void print_plain(struct output *out, const char *text, size_t len, const char *end)
{
	size_t room = (size_t)(out->end - out->at);
	char *at = out->at;

	if (SPOKEI_LIKELY(room >= SHORT + 2 && len <= SHORT && (size_t)(end - text) >= SHORT)) {
		*at++ = '"';
		memcpy(at, text, SHORT / 2); /* more than the text, in steps of a constant size */
		if (len > SHORT / 2)
			memcpy(at + SHORT / 2, text + SHORT / 2, SHORT / 2);
		at[len] = '"';
		out->at = at + len + 1;
		return;
	}
	put_char(out, '"');
	put_bytes(out, text, len);
	put_char(out, '"');
}

static void print_base64(const struct printer *printer, const unsigned char *at, size_t len)
{
	struct output *out = printer->out;

	put_char(out, '"');
	for (; len >= 3; at += 3, len -= 3) {
		spokei_base64_write(at, 3, room_for(out, 4));
		out->at += 4;
	}
	if (len > 0) {
		spokei_base64_write(at, len, room_for(out, 4));
		out->at += 4;
	}
	put_char(out, '"');
}

static void print_marked(const struct printer *printer, const char *marker,
			 const unsigned char *bytes, size_t len)
{
	put_text(printer, marker);
	put_space(printer);
	print_base64(printer, bytes, len);
	put_char(printer->out, '}');
}

static void print_str(const struct printer *printer, const unsigned char *bytes, size_t len)
{
	const char *text = (const char *)bytes;
	size_t plain = spokei_json_plain_before(text, len, (const char *)printer->end);

	if (SPOKEI_LIKELY(plain == len)) {
		print_plain(printer->out, text, len, (const char *)printer->end);
	} else if (spokei_utf8_all(bytes + plain, len - plain)) {
		put_char(printer->out, '"');
		put_bytes(printer->out, text, plain);
		put_escaped(printer->out, text + plain, len - plain, ESCAPE_FEW);
		put_char(printer->out, '"');
	} else {
		print_marked(printer, "{\"$str\":", bytes, len);
	}
}

/* Prints a timestamp that spoke_value_print() writes as "date(...)". */
static bool print_date(const struct printer *printer, struct spoke_value value)
{
	char text[64];
	size_t len = spoke_value_print(value, text, sizeof(text));

	if (len < 6 || strncmp(text, "date(", 5) != 0)
		return false;
	put_text(printer, "{\"$date\":");
	put_space(printer);
	print_plain(printer->out, text + 5, len - 6, text + len);
	put_char(printer->out, '}');
	return true;
}

static void print_integer(struct output *out, bool is_negative, uint64_t size)
{
	char digits[SPOKEI_JSON_INTEGER];
	char *end = digits + sizeof(digits);
	char *first = spokei_json_digits(size, end);
	char *at = room_for(out, SPOKEI_JSON_INTEGER + 1);

	*at = '-';
	at += is_negative;
	memcpy(at, first, (size_t)(end - first));
	out->at = at + (end - first);
}

/* Prints an ext whose content, `bytes`, begins with its type. */
static void print_ext(const struct printer *printer, const unsigned char *head,
		      const unsigned char *bytes, size_t len)
{
	if (print_date(printer, (struct spoke_value){ head, (size_t)(bytes + len - head) }))
		return;
	put_text(printer, "{\"$ext\":");
	put_space(printer);
	put_char(printer->out, '[');
	print_integer(printer->out, *bytes > INT8_MAX, *bytes > INT8_MAX ? 256u - *bytes : *bytes);
	put_char(printer->out, ',');
	put_space(printer);
	print_base64(printer, bytes + 1, len - 1);
	put_text(printer, "]}");
}

/* --- numbers */

/* Prints an integer of `len` bytes; of none, the head is the number. */
static void print_packed(struct output *out, unsigned char head, const unsigned char *bytes,
			 size_t len)
{
	uint64_t number = len > 0 ? spokei_number(bytes, (unsigned)len) : head;
	unsigned bits = len > 0 ? 8 * (unsigned)len : 8;
	bool is_negative = (head >= 0xd0 || len == 0) && number >> (bits - 1) != 0;

	if (is_negative)
		number = (0 - number) & (UINT64_MAX >> (64 - bits));
	print_integer(out, is_negative, number);
}

static void print_double(const struct printer *printer, const unsigned char *bytes, size_t len)
{
	uint64_t bits = spokei_number(bytes, (unsigned)len);
	uint32_t few = (uint32_t)bits;
	double number;
	float small;

	memcpy(&number, &bits, sizeof(number));
	memcpy(&small, &few, sizeof(small));
	if (len == sizeof(small))
		number = (double)small;
	if (SPOKEI_LIKELY(isfinite(number))) {
		char *at = room_for(printer->out, SPOKEI_JSON_NUMBER);

		printer->out->at += spokei_json_print_double(number, at);
		return;
	}
	put_text(printer, "{\"$float\":");
	put_space(printer);
	put_text(printer, isnan(number) ? "\"nan\"}" : number > 0 ? "\"inf\"}" : "\"-inf\"}");
}

/* --- the form of a map */

struct key {
	const unsigned char *at; /* its head */
	size_t len;              /* with the head */
};

/* Reads a key of any map. Returns false if it is not a text in UTF-8. */
static bool read_key(const unsigned char *at, const unsigned char *end, struct key *ret)
{
	size_t len = spokei_shape_len(at, end);
	size_t head = 1u + spokei_shapes[*at].width;

	*ret = (struct key){ at, len };
	if (len == 0 || spokei_shapes[*at].type != SPOKE_VALUE_STR)
		return false;
	head += spokei_json_plain_before((const char *)at + head, len - head, (const char *)end);
	return head == len || spokei_utf8_all(at + head, len - head);
}

/* Is the only key, or the first one of several, a marker? A single key that begins with a dollar is
 * one, so that there can be more markers later; but "$ref" is that of JSON Schema and OpenAPI. */
static bool is_marker(const struct key *key, uint64_t count)
{
	static const char *const names[] = { "bin", "str",  "ext",  "float",
					     "map", "date", "long", "typed" };
	const char *text = (const char *)key->at + 1 + spokei_shapes[*key->at].width;
	size_t len = key->len - (size_t)(text - (const char *)key->at);

	if (len == 0 || *text != '$')
		return false;
	if (count == 1)
		return len != sizeof("$ref") - 1 || memcmp(text, "$ref", len) != 0;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (len == 1 + strlen(names[i]) && memcmp(text + 1, names[i], len - 1) == 0)
			return true;
	return false;
}

static bool are_same(const struct key *a, const struct key *b)
{
	return a->len == b->len && a->at[a->len - 1] == b->at[b->len - 1] &&
	       memcmp(a->at, b->at, a->len) == 0;
}

/* Skips an array or map. Returns NULL if it has more bytes than are left to be skipped. */
static const unsigned char *skip(const unsigned char *at, const unsigned char *end, size_t *skips)
{
	const unsigned char *stop = *skips < (size_t)(end - at) ? at + *skips : end;
	const unsigned char *after = spokei_shape_skip(at, stop);

	*skips -= (size_t)((after ? after : stop) - at);
	return after;
}

/*
 * Returns whether a map can be printed as a JSON object and be read back unchanged: its keys are
 * texts in UTF-8, they differ, and the first one is no marker. `at` is the first key of `count`
 * pairs. Takes time in proportion to the number of pairs and to the arrays and maps among the
 * values, which have to be skipped; the last one has not. Their bytes are taken from *skips.
 * Returns false once these are used up.
 */
static bool pairs_are_object(const unsigned char *at, const unsigned char *end, uint64_t count,
			     size_t *skips)
{
	struct key keys[KEYS_COMPARED];
	size_t compared = 0;

	for (uint64_t left = count; left > 0 && at != end; left--) {
		struct key key;
		size_t len;

		if (!read_key(at, end, &key) || (left == count && is_marker(&key, count)))
			return false;
		for (size_t i = 0; i < compared; i++)
			if (are_same(&keys[i], &key))
				return false;
		if (count <= KEYS_COMPARED)
			keys[compared++] = key;
		at += key.len;
		if (at == end || left == 1)
			break;
		len = spokei_shape_len(at, end);
		at = len > 0 ? at + len : skip(at, end, skips);
		if (at == NULL)
			return false;
	}
	return true;
}

/* --- arrays and maps */

static void new_line(const struct printer *printer, unsigned depth)
{
	if (SPOKEI_LIKELY(printer->form != SPOKE_JSON_TREE))
		return;
	put_char(printer->out, '\n');
	while (depth-- > 0)
		put_bytes(printer->out, "  ", 2);
}

static void open_level(struct printer *printer, bool is_map, uint64_t count)
{
	bool is_object = is_map &&
			 pairs_are_object(printer->at, printer->end, count, &printer->skips);

	if (printer->depth == SPOKE_VALUE_DEPTH_MAX) {
		put_text(printer, "null"); /* impossible for a validated value */
		printer->at = printer->end;
		return;
	}
	printer->levels[printer->depth++] = (struct level){
		.left = is_map ? 2 * count : count,
		.open = !is_map     ? OPEN_ARRAY
			: is_object ? OPEN_MAP
				    : OPEN_PAIRS,
		.is_empty = true,
	};
	if (!is_map || is_object) {
		put_char(printer->out, is_map ? '{' : '[');
		return;
	}
	put_text(printer, "{\"$map\":");
	put_space(printer);
	put_char(printer->out, '[');
}

static void close_level(struct printer *printer)
{
	const struct level *level = &printer->levels[--printer->depth];
	static const char *const ends[] = { "]", "}", "]}" };

	if (!level->is_empty) {
		if (level->open == OPEN_PAIRS)
			put_char(printer->out, ']');
		new_line(printer, printer->depth);
	}
	if (level->open == OPEN_PAIRS)
		put_text(printer, ends[level->open]);
	else
		put_char(printer->out, *ends[level->open]);
}

/* --- any value */

/* Moves on to the value inside a typed value or a reference. */
static SPOKEI_NOINLINE void look_through(struct printer *printer)
{
	for (;;) {
		const struct spokei_shape *shape = &spokei_shapes[*printer->at];
		const unsigned char *content = printer->at + 1 + shape->width;
		struct spokei_pair pair;
		uint64_t len;

		if (shape->type != SPOKE_VALUE_EXT || content >= printer->end)
			return;
		len = spokei_shape_number(shape, printer->at);
		if (len > (size_t)(printer->end - content) ||
		    !spokei_shape_open_ext(content, (size_t)len, &pair))
			return;
		printer->at = pair.inside.data;
	}
}

/* Prints bytes that are no value, which a validated value has not, as the last one. */
static void print_unreadable(struct printer *printer)
{
	put_text(printer, "null");
	printer->at = printer->end;
}

/* Prints a value that is not a container. Its content has been checked to be there. */
static void print_scalar(const struct printer *printer, const unsigned char *head,
			 const unsigned char *content, size_t len)
{
	switch (spokei_shapes[*head].type) {
	case SPOKE_VALUE_STR:
		print_str(printer, content, len);
		return;
	case SPOKE_VALUE_INT:
		print_packed(printer->out, *head, content, len);
		return;
	case SPOKE_VALUE_DOUBLE:
		print_double(printer, content, len);
		return;
	case SPOKE_VALUE_BOOL:
		put_text(printer, *head == 0xc3 ? "true" : "false");
		return;
	case SPOKE_VALUE_BIN:
		print_marked(printer, "{\"$bin\":", content, len);
		return;
	case SPOKE_VALUE_EXT:
		print_ext(printer, head, content, len);
		return;
	default:
		put_text(printer, "null");
	}
}

static void print_next(struct printer *printer)
{
	const struct spokei_shape *shape;
	const unsigned char *head;
	const unsigned char *content;
	uint64_t number;

	if (SPOKEI_UNLIKELY(spokei_shapes[*printer->at].type == SPOKE_VALUE_EXT))
		look_through(printer);
	head = printer->at;
	shape = &spokei_shapes[*head];
	if (shape->type == SPOKE_VALUE_NONE || shape->width >= printer->end - head) {
		print_unreadable(printer);
		return;
	}
	number = spokei_shape_number(shape, head);
	content = head + 1 + shape->width;
	if (shape->each > 0) {
		printer->at = content;
		open_level(printer, shape->each == 2, number);
	} else if (number > (size_t)(printer->end - content)) {
		print_unreadable(printer);
	} else {
		printer->at = content + number;
		print_scalar(printer, head, content, (size_t)number);
	}
}

/* Prints the separator before the next item of a level. */
static void print_before(const struct printer *printer, struct level *level)
{
	bool is_second = level->open != OPEN_ARRAY && level->left % 2 != 0;

	if (is_second) {
		put_char(printer->out, level->open == OPEN_MAP ? ':' : ',');
		put_space(printer);
		return;
	}
	if (!level->is_empty) {
		if (level->open == OPEN_PAIRS)
			put_char(printer->out, ']');
		put_char(printer->out, ',');
	}
	new_line(printer, printer->depth);
	if (level->open == OPEN_PAIRS)
		put_char(printer->out, '[');
}

static void print(struct spoke_value value, enum spoke_json_form form, struct output *out)
{
	struct printer printer;

	printer.out = out;
	if (value.len == 0) {
		put_text(&printer, "null");
		return;
	}
	printer.form = form;
	printer.at = value.data;
	printer.end = value.data + value.len;
	printer.skips = SKIPS_MIN + SKIPS_SHARE * value.len;
	printer.depth = 0;
	print_next(&printer);
	while (printer.depth > 0 && !out->error) {
		struct level *level = &printer.levels[printer.depth - 1];

		if (level->left == 0 || printer.at == printer.end) {
			close_level(&printer);
			continue;
		}
		print_before(&printer, level);
		level->is_empty = false;
		level->left--;
		print_next(&printer);
	}
}

static void print_text(const void *bytes, size_t len, struct output *out)
{
	put_char(out, '"');
	put_escaped(out, bytes, len, ESCAPE_FEW);
	put_char(out, '"');
}

/* --- the faces */

void spoke_json_print(struct spoke_value value, enum spoke_json_form form, spoke_json_put_fn put,
		      void *arg)
{
	struct output out;

	begin_function(&out, put, arg);
	print(value, form, &out);
	(void)!end_output(&out);
}

void spoke_json_print_text(const void *bytes, size_t len, spoke_json_put_fn put, void *arg)
{
	struct output out;

	begin_function(&out, put, arg);
	print_text(bytes, len, &out);
	(void)!end_output(&out);
}

int spokei_json_append(struct spokei_buffer *buffer, struct spoke_value value)
{
	struct output out;

	begin_buffer(&out, buffer);
	print(value, SPOKE_JSON_LINE, &out);
	return end_output(&out);
}

int spokei_json_append_text(struct spokei_buffer *buffer, const void *bytes, size_t len)
{
	struct output out;

	begin_buffer(&out, buffer);
	print_text(bytes, len, &out);
	return end_output(&out);
}

/* --- documents */

static void append(struct spokei_json *json, const void *bytes, size_t len)
{
	if (json->error == SPOKE_OK)
		json->error = spokei_buffer_append(json->out, bytes, len);
}

/* Writes the comma before a value, if it needs one. */
static void begin(struct spokei_json *json)
{
	if (json->comma)
		append(json, ",", 1);
	json->comma = true;
}

void spokei_json_open(struct spokei_json *json, char bracket)
{
	begin(json);
	append(json, &bracket, 1);
	json->comma = false;
}

void spokei_json_close(struct spokei_json *json, char bracket)
{
	append(json, &bracket, 1);
	json->comma = true;
}

void spokei_json_key(struct spokei_json *json, const char *key)
{
	begin(json);
	append(json, "\"", 1);
	append(json, key, strlen(key));
	append(json, "\":", 2);
	json->comma = false;
}

void spokei_json_u64(struct spokei_json *json, uint64_t value)
{
	char digits[SPOKEI_JSON_INTEGER];
	char *end = digits + sizeof(digits);
	const char *first = spokei_json_digits(value, end);

	begin(json);
	append(json, first, (size_t)(end - first));
}

void spokei_json_null(struct spokei_json *json)
{
	begin(json);
	append(json, "null", 4);
}

void spokei_json_bool(struct spokei_json *json, bool value)
{
	begin(json);
	append(json, value ? "true" : "false", value ? 4 : 5);
}

void spokei_json_span(struct spokei_json *json, const void *bytes, size_t len)
{
	struct output out;
	bool is_cut = len > SPOKEI_JSON_TEXT;

	begin(json);
	if (json->error)
		return;
	begin_buffer(&out, json->out);
	put_char(&out, '"');
	put_escaped(&out, bytes, is_cut ? SPOKEI_JSON_TEXT - 3 : len, ESCAPE_HTML);
	if (is_cut)
		put_bytes(&out, "...", 3);
	put_char(&out, '"');
	json->error = end_output(&out);
}

void spokei_json_text(struct spokei_json *json, const char *text)
{
	spokei_json_span(json, text, strlen(text));
}

void spokei_json_put_u64(struct spokei_json *json, const char *key, uint64_t value)
{
	spokei_json_key(json, key);
	spokei_json_u64(json, value);
}

void spokei_json_put_bool(struct spokei_json *json, const char *key, bool value)
{
	spokei_json_key(json, key);
	spokei_json_bool(json, value);
}

void spokei_json_put_text(struct spokei_json *json, const char *key, const char *text)
{
	spokei_json_key(json, key);
	spokei_json_text(json, text);
}

void spokei_json_put_ms(struct spokei_json *json, const char *key, uint64_t ns)
{
	spokei_json_key(json, key);
	if (ns == UINT64_MAX)
		spokei_json_null(json);
	else
		spokei_json_u64(json, ns / 1000000);
}

void spokei_json_open_member(struct spokei_json *json, const char *key, char bracket)
{
	spokei_json_key(json, key);
	spokei_json_open(json, bracket);
}
