/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints values as JSON. The packed bytes are walked over from the first to the last; only the keys
 * of a map are looked at once more before, because they decide on its form. The values between
 * them are skipped, so those that are nested deeply are skipped by each map around them. This has a
 * limit; maps beyond it have the form that is right for any keys.
 */
#include "core/json/json.h"
#include "core/json/number.h"
#include "core/json/plain.h"
#include "core/json/write.h"
#include "core/text/encoding.h"
#include "core/value/shape.h"

#include <math.h>

/* Bytes that are skipped in one print: these, and so many times its own. */
#define SKIPS_MIN ((size_t)65536)
#define SKIPS_SHARE ((size_t)8)

#define KEYS_COMPARED ((size_t)64) /* in maps of more pairs, keys are not compared */

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
	struct spokei_json_out *out;
	enum spoke_json_form form;
	const unsigned char *at; /* the next value ... */
	const unsigned char *end;
	size_t skips; /* bytes that may still be skipped to see the keys of maps */
	struct level levels[SPOKE_VALUE_DEPTH_MAX];
	unsigned depth;
};

static void put_text(const struct printer *printer, const char *text)
{
	spokei_json_put(printer->out, text, strlen(text));
}

static void put_space(const struct printer *printer)
{
	if (printer->form == SPOKE_JSON_TREE)
		spokei_json_put_char(printer->out, ' ');
}

/* --- texts and bytes */

#define SHORT 32u /* bytes of a text that are copied without a call */

/* Prints a text that needs no escape; `end` is the end of the readable bytes after it. */
static inline void print_plain(struct spokei_json_out *out, const char *text, size_t len,
			       const char *end)
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
	spokei_json_put_char(out, '"');
	spokei_json_put(out, text, len);
	spokei_json_put_char(out, '"');
}

static void print_base64(const struct printer *printer, const unsigned char *at, size_t len)
{
	struct spokei_json_out *out = printer->out;

	spokei_json_put_char(out, '"');
	for (; len >= 3; at += 3, len -= 3) {
		spokei_base64_write(at, 3, spokei_json_room(out, 4));
		out->at += 4;
	}
	if (len > 0) {
		spokei_base64_write(at, len, spokei_json_room(out, 4));
		out->at += 4;
	}
	spokei_json_put_char(out, '"');
}

static void print_marked(const struct printer *printer, const char *marker,
			 const unsigned char *bytes, size_t len)
{
	put_text(printer, marker);
	put_space(printer);
	print_base64(printer, bytes, len);
	spokei_json_put_char(printer->out, '}');
}

static void print_str(const struct printer *printer, const unsigned char *bytes, size_t len)
{
	const char *text = (const char *)bytes;
	size_t plain = spokei_json_plain_before(text, len, (const char *)printer->end);

	if (SPOKEI_LIKELY(plain == len)) {
		print_plain(printer->out, text, len, (const char *)printer->end);
	} else if (spokei_utf8_all(bytes + plain, len - plain)) {
		spokei_json_put_char(printer->out, '"');
		spokei_json_put(printer->out, text, plain);
		spokei_json_put_escaped(printer->out, text + plain, len - plain,
					SPOKEI_JSON_ESCAPE_FEW);
		spokei_json_put_char(printer->out, '"');
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
	spokei_json_put_char(printer->out, '}');
	return true;
}

static void print_integer(struct spokei_json_out *out, bool is_negative, uint64_t size)
{
	char digits[SPOKEI_JSON_INTEGER];
	char *end = digits + sizeof(digits);
	char *first = spokei_json_digits(size, end);
	char *at = spokei_json_room(out, SPOKEI_JSON_INTEGER + 1);

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
	spokei_json_put_char(printer->out, '[');
	print_integer(printer->out, *bytes > INT8_MAX, *bytes > INT8_MAX ? 256u - *bytes : *bytes);
	spokei_json_put_char(printer->out, ',');
	put_space(printer);
	print_base64(printer, bytes + 1, len - 1);
	put_text(printer, "]}");
}

/* --- numbers */

/* Prints an integer of `len` bytes; of none, the head is the number. */
static void print_packed(struct spokei_json_out *out, unsigned char head,
			 const unsigned char *bytes, size_t len)
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
		char *at = spokei_json_room(printer->out, SPOKEI_JSON_NUMBER);

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
	size_t len = spokei_shape_hop(at, end);
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
		len = spokei_shape_hop(at, end);
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
	spokei_json_put_char(printer->out, '\n');
	while (depth-- > 0)
		spokei_json_put(printer->out, "  ", 2);
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
		spokei_json_put_char(printer->out, is_map ? '{' : '[');
		return;
	}
	put_text(printer, "{\"$map\":");
	put_space(printer);
	spokei_json_put_char(printer->out, '[');
}

static void close_level(struct printer *printer)
{
	const struct level *level = &printer->levels[--printer->depth];
	static const char *const ends[] = { "]", "}", "]}" };

	if (!level->is_empty) {
		if (level->open == OPEN_PAIRS)
			spokei_json_put_char(printer->out, ']');
		new_line(printer, printer->depth);
	}
	if (level->open == OPEN_PAIRS)
		put_text(printer, ends[level->open]);
	else
		spokei_json_put_char(printer->out, *ends[level->open]);
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
		spokei_json_put_char(printer->out, level->open == OPEN_MAP ? ':' : ',');
		put_space(printer);
		return;
	}
	if (!level->is_empty) {
		if (level->open == OPEN_PAIRS)
			spokei_json_put_char(printer->out, ']');
		spokei_json_put_char(printer->out, ',');
	}
	new_line(printer, printer->depth);
	if (level->open == OPEN_PAIRS)
		spokei_json_put_char(printer->out, '[');
}

static void print(struct spoke_value value, enum spoke_json_form form, struct spokei_json_out *out)
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

static void print_text(const void *bytes, size_t len, struct spokei_json_out *out)
{
	spokei_json_put_char(out, '"');
	spokei_json_put_escaped(out, bytes, len, SPOKEI_JSON_ESCAPE_FEW);
	spokei_json_put_char(out, '"');
}

/* --- the faces */

void spoke_json_print(struct spoke_value value, enum spoke_json_form form, spoke_json_put_fn put,
		      void *arg)
{
	struct spokei_json_out out;

	spokei_json_out_function(&out, put, arg);
	print(value, form, &out);
	(void)!spokei_json_out_end(&out);
}

void spoke_json_print_text(const void *bytes, size_t len, spoke_json_put_fn put, void *arg)
{
	struct spokei_json_out out;

	spokei_json_out_function(&out, put, arg);
	print_text(bytes, len, &out);
	(void)!spokei_json_out_end(&out);
}

int spokei_json_append(struct spokei_buffer *buffer, struct spoke_value value)
{
	struct spokei_json_out out;

	spokei_json_out_buffer(&out, buffer);
	print(value, SPOKE_JSON_LINE, &out);
	return spokei_json_out_end(&out);
}

int spokei_json_append_text(struct spokei_buffer *buffer, const void *bytes, size_t len)
{
	struct spokei_json_out out;

	spokei_json_out_buffer(&out, buffer);
	print_text(bytes, len, &out);
	return spokei_json_out_end(&out);
}
