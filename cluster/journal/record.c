/* SPDX-License-Identifier: Apache-2.0 */
/* The format of a journal of tickets, written and read. See FORMAT.md. */
#include "cluster/journal/record.h"

#include "core/base/span.h"
#include "core/value/builder.h"

#include <string.h>

#define POLYNOMIAL UINT32_C(0x82f63b78) /* of CRC32C, the lowest bit first */
#define HEAD_SUM 60u                    /* offset of the sum in a head */
/* Bytes that are summed, at most, to find a record after bad bytes: a hostile file must not cost
 * the square of its length. */
#define SEARCH_MAX (UINT64_C(64) << 20)

static const unsigned char magic[6] = { 'S', 'P', 'O', 'K', 'E', 'J' };

/* --- numbers, the lowest byte first */

static void put32(unsigned char *bytes, uint32_t number)
{
	for (unsigned i = 0; i < 4; i++)
		bytes[i] = (unsigned char)(number >> 8 * i);
}

static void put64(unsigned char *bytes, uint64_t number)
{
	put32(bytes, (uint32_t)number);
	put32(bytes + 4, (uint32_t)(number >> 32));
}

static uint32_t get32(const unsigned char *bytes)
{
	return bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 |
	       (uint32_t)bytes[3] << 24;
}

static uint64_t get64(const unsigned char *bytes)
{
	return get32(bytes) | (uint64_t)get32(bytes + 4) << 32;
}

/* --- CRC32C, eight bytes at a time */

void spokei_crc_init(struct spokei_crc *crc)
{
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t sum = i;

		for (unsigned bit = 0; bit < 8; bit++)
			sum = sum >> 1 ^ (sum & 1 ? POLYNOMIAL : 0);
		crc->table[0][i] = sum;
	}
	for (unsigned row = 1; row < 8; row++) {
		for (unsigned i = 0; i < 256; i++) {
			uint32_t sum = crc->table[row - 1][i];

			crc->table[row][i] = sum >> 8 ^ crc->table[0][sum & 255];
		}
	}
}

uint32_t spokei_crc_add(const struct spokei_crc *crc, uint32_t sum, const void *bytes, size_t len)
{
	const unsigned char *at = bytes;

	sum = ~sum;
	for (; len >= 8; len -= 8, at += 8) {
		uint32_t low = get32(at) ^ sum;
		uint32_t high = get32(at + 4);

		sum = crc->table[7][low & 255] ^ crc->table[6][low >> 8 & 255] ^
		      crc->table[5][low >> 16 & 255] ^ crc->table[4][low >> 24] ^
		      crc->table[3][high & 255] ^ crc->table[2][high >> 8 & 255] ^
		      crc->table[1][high >> 16 & 255] ^ crc->table[0][high >> 24];
	}
	for (; len > 0; len--)
		sum = sum >> 8 ^ crc->table[0][(sum ^ *at++) & 255];
	return ~sum;
}

/* --- segments */

void spokei_segment_put(const struct spokei_crc *crc, const struct spokei_segment *segment,
			unsigned char ret_head[SPOKEI_SEGMENT_HEAD])
{
	memset(ret_head, 0, SPOKEI_SEGMENT_HEAD);
	memcpy(ret_head, magic, sizeof(magic));
	ret_head[6] = SPOKEI_JOURNAL_VERSION;
	put32(ret_head + 8, segment->number);
	put32(ret_head + 12, segment->previous_end);
	memcpy(ret_head + 16, segment->journal, SPOKEI_JOURNAL_ID);
	put64(ret_head + 32, segment->wall_ns);
	put64(ret_head + 40, segment->consumer);
	put32(ret_head + 48, segment->uncertain);
	put32(ret_head + HEAD_SUM, spokei_crc_add(crc, 0, ret_head, HEAD_SUM));
}

static bool is_zero(const unsigned char *bytes, size_t len)
{
	return len == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, len - 1) == 0);
}

bool spokei_segment_is_blank(const void *bytes, size_t len)
{
	return is_zero(bytes, len);
}

void spokei_segment_guess(const unsigned char *head, struct spokei_segment *ret)
{
	*ret = (struct spokei_segment){
		.number = get32(head + 8),
		.previous_end = get32(head + 12),
		.uncertain = get32(head + 48),
		.wall_ns = get64(head + 32),
		.consumer = get64(head + 40),
	};
	memcpy(ret->journal, head + 16, SPOKEI_JOURNAL_ID);
}

/* Is this a head of our version, but for the bytes of the version? */
static bool is_ours(const struct spokei_crc *crc, const unsigned char *head)
{
	static const unsigned char version[2] = { SPOKEI_JOURNAL_VERSION };
	uint32_t sum = spokei_crc_add(crc, 0, head, sizeof(magic));

	sum = spokei_crc_add(crc, sum, version, sizeof(version));
	return get32(head + HEAD_SUM) == spokei_crc_add(crc, sum, head + 8, HEAD_SUM - 8);
}

/* Is this a part of the magic number, and zeros? A write that failed may have left that. */
static bool is_begun(const unsigned char *head)
{
	size_t len = 0;

	while (len < sizeof(magic) && head[len] == (unsigned char)magic[len])
		len++;
	return is_zero(head + len, SPOKEI_SEGMENT_HEAD - len);
}

int spokei_segment_read(const struct spokei_crc *crc, const void *bytes, size_t len,
			struct spokei_segment *ret)
{
	const unsigned char *head = bytes;
	uint32_t version;

	if (len < SPOKEI_SEGMENT_HEAD || is_begun(head))
		return SPOKE_ETRUNCATED;
	if (memcmp(head, magic, sizeof(magic)) != 0)
		return SPOKE_EINVAL;
	version = head[6] | (uint32_t)head[7] << 8;
	if (version > SPOKEI_JOURNAL_VERSION && !is_ours(crc, head))
		return SPOKE_EUNSUPPORTED;
	if (version != SPOKEI_JOURNAL_VERSION || !is_ours(crc, head))
		return SPOKE_ECORRUPT;
	spokei_segment_guess(head, ret);
	return ret->number == 0 ? SPOKE_ECORRUPT : SPOKE_OK;
}

/* Sums the parts that a record has in common with all of its segment. */
static uint32_t seed_of(const struct spokei_crc *crc, const struct spokei_segment *segment)
{
	unsigned char number[4];

	put32(number, segment->number);
	return spokei_crc_add(crc, spokei_crc_add(crc, 0, number, sizeof(number)), segment->journal,
			      SPOKEI_JOURNAL_ID);
}

/* --- writing records */

static size_t padded(size_t len)
{
	return (len + SPOKEI_RECORD_ALIGN - 1) & ~(size_t)(SPOKEI_RECORD_ALIGN - 1);
}

/* Begins a record, whose body the builder appends. Returns the length of `out` before. */
static size_t begin(struct spokei_buffer *out, struct spoke_builder *builder, size_t fields)
{
	static const unsigned char head[SPOKEI_RECORD_HEAD] = { 0 };
	size_t before = spokei_buffer_len(out);
	int error = spokei_buffer_append(out, head, sizeof(head));

	spokei_builder_init_buffer(builder, out, NULL);
	builder->error = error;
	spoke_pack_map(builder, fields);
	return before;
}

/* Ends the record: its length, its padding, and the fields that are known. */
static int end(struct spokei_buffer *out, struct spoke_builder *builder, size_t before,
	       uint64_t ticket, enum spokei_record_kind kind)
{
	static const unsigned char padding[SPOKEI_RECORD_ALIGN] = { 0 };
	struct spoke_span body;
	int error = spoke_builder_finish(builder, &body);
	size_t len = spokei_buffer_len(out) - before;
	unsigned char *record;

	if (!error)
		error = spokei_buffer_append(out, padding, padded(len) - len);
	if (error) {
		spokei_builder_drop(builder);
		spokei_buffer_truncate(out, before);
		return error;
	}
	record = spokei_buffer_data(out) + before;
	put32(record, (uint32_t)len);
	put64(record + 8, ticket);
	record[20] = (unsigned char)kind;
	return SPOKE_OK;
}

static void put_span(struct spoke_builder *builder, const char *key, struct spoke_span span)
{
	if (span.len == 0)
		return;
	spoke_pack_text(builder, key);
	spoke_pack_bin(builder, span.data, span.len);
}

static void put_number(struct spoke_builder *builder, const char *key, uint64_t number)
{
	spoke_pack_text(builder, key);
	spoke_pack_u64(builder, number);
}

/* Counts the fields of put_tried(). */
static size_t count_tried(const struct spokei_record_tried *tried)
{
	return 1u + tried->unsure + (tried->mark.len > 0);
}

static void put_tried(struct spoke_builder *builder, const struct spokei_record_tried *tried)
{
	put_number(builder, "n", tried->attempts);
	if (tried->unsure)
		put_number(builder, "u", 1);
	put_span(builder, "w", tried->mark);
}

int spokei_record_put_open(struct spokei_buffer *out, uint64_t ticket,
			   const struct spokei_record_open *open)
{
	size_t fields = 6u + count_tried(&open->tried) + (open->service.len > 0) +
			(open->group.len > 0) + (open->version.len > 0) + (open->method.len > 0) +
			(open->arguments.len > 0) + (open->attachments.len > 0) +
			(open->key.len > 0);
	struct spoke_builder builder;
	size_t before = begin(out, &builder, fields);

	put_span(&builder, "s", open->service);
	put_span(&builder, "g", open->group);
	put_span(&builder, "v", open->version);
	put_span(&builder, "m", open->method);
	put_span(&builder, "a", open->arguments);
	put_span(&builder, "x", open->attachments);
	put_span(&builder, "k", open->key);
	put_span(&builder, "i", (struct spoke_span){ open->id, sizeof(open->id) });
	put_number(&builder, "b", open->begun_ns);
	put_number(&builder, "l", open->lasts_ns);
	put_number(&builder, "p", open->period_ns);
	put_number(&builder, "r", open->retries);
	put_number(&builder, "f", open->flags);
	put_tried(&builder, &open->tried);
	return end(out, &builder, before, ticket, SPOKEI_RECORD_OPEN);
}

int spokei_record_put_tried(struct spokei_buffer *out, uint64_t ticket,
			    const struct spokei_record_tried *tried)
{
	struct spoke_builder builder;
	size_t before = begin(out, &builder, count_tried(tried));

	put_tried(&builder, tried);
	return end(out, &builder, before, ticket, SPOKEI_RECORD_TRIED);
}

int spokei_record_put_ended(struct spokei_buffer *out, uint64_t ticket, uint32_t settlement)
{
	struct spoke_builder builder;
	size_t before = begin(out, &builder, 1);

	put_number(&builder, "e", settlement);
	return end(out, &builder, before, ticket, SPOKEI_RECORD_ENDED);
}

int spokei_record_put_answer(struct spokei_buffer *out, uint64_t number,
			     const struct spokei_record_answer *answer)
{
	const struct {
		const char *key;
		struct spoke_span span;
	} spans[] = {
		{ "s", answer->service },     { "g", answer->group }, { "v", answer->version },
		{ "m", answer->method },      { "i", answer->id },    { "a", answer->value },
		{ "x", answer->attachments }, { "w", answer->text },  { "y", answer->class_name },
	};
	struct spoke_builder builder;
	size_t fields = 7u + answer->dropped;
	size_t before;

	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		fields += spans[i].span.len > 0;
	before = begin(out, &builder, fields);
	for (size_t i = 0; i < sizeof(spans) / sizeof(spans[0]); i++)
		put_span(&builder, spans[i].key, spans[i].span);
	put_number(&builder, "h", answer->print);
	put_number(&builder, "c", answer->caller);
	put_number(&builder, "b", answer->ended_ns);
	put_number(&builder, "l", answer->keeps_ns);
	put_number(&builder, "e", answer->error);
	put_number(&builder, "q", answer->error_code);
	put_number(&builder, "t", answer->status);
	if (answer->dropped)
		put_number(&builder, "d", 1);
	return end(out, &builder, before, number, SPOKEI_RECORD_ANSWER);
}

int spokei_record_put_base(struct spokei_buffer *out, uint32_t number)
{
	struct spoke_builder builder;
	size_t before = begin(out, &builder, 0);

	return end(out, &builder, before, number, SPOKEI_RECORD_BASE);
}

size_t spokei_record_size(const unsigned char *record)
{
	return padded(get32(record));
}

static uint32_t sum_of(const struct spokei_crc *crc, uint32_t seed, const unsigned char *record,
		       size_t len)
{
	return spokei_crc_add(crc, spokei_crc_add(crc, seed, record, 4), record + 8, len - 8);
}

void spokei_records_seal(const struct spokei_crc *crc, const struct spokei_segment *segment,
			 uint32_t durable, unsigned char *bytes, size_t len)
{
	uint32_t seed = seed_of(crc, segment);

	for (size_t at = 0; at < len;) {
		unsigned char *record = bytes + at;
		size_t size = get32(record);

		put32(record + 16, durable);
		put32(record + 4, sum_of(crc, seed, record, size));
		at += padded(size);
	}
}

/* --- bodies */

/* The values of a body by their keys, each a small letter; without any data: it is missing. */
struct fields {
	struct spoke_value of['z' - 'a' + 1];
};

static void find_fields(const struct spokei_record *record, struct fields *ret)
{
	struct spoke_cursor pairs;
	struct spoke_value key;
	struct spoke_value value;
	struct spoke_span name;

	memset(ret, 0, sizeof(*ret));
	if (spoke_cursor_map(record->body, &pairs) != SPOKE_OK)
		return;
	while (spoke_cursor_next_pair(&pairs, &key, &value)) {
		unsigned letter;

		if (spoke_value_str(key, &name) != SPOKE_OK || name.len != 1)
			continue;
		letter = *(const unsigned char *)name.data - (unsigned)'a';
		if (letter <= 'z' - 'a' && ret->of[letter].data == NULL)
			ret->of[letter] = value;
	}
}

static const struct spoke_value *field(const struct fields *fields, char key)
{
	const struct spoke_value *value = &fields->of[key - 'a'];

	return value->data ? value : NULL;
}

/* Reads an optional field. */
static bool get_span(const struct fields *fields, char key, struct spoke_span *ret)
{
	const struct spoke_value *value = field(fields, key);

	*ret = spokei_span(NULL, 0);
	return value == NULL || spoke_value_bin(*value, ret) == SPOKE_OK;
}

static bool get_number(const struct fields *fields, char key, uint64_t *ret)
{
	const struct spoke_value *value = field(fields, key);

	return value && spoke_value_u64(*value, ret) == SPOKE_OK;
}

static bool get_short(const struct fields *fields, char key, uint32_t *ret)
{
	const struct spoke_value *value = field(fields, key);

	return value && spoke_value_u32(*value, ret) == SPOKE_OK;
}

/* Reads a number that is left out if it is 0. */
static bool get_optional(const struct fields *fields, char key, uint32_t *ret)
{
	*ret = 0;
	return field(fields, key) == NULL || get_short(fields, key, ret);
}

static bool get_tried(const struct fields *fields, struct spokei_record_tried *ret)
{
	uint32_t unsure = 0;
	bool good = get_short(fields, 'n', &ret->attempts) && get_optional(fields, 'u', &unsure) &&
		    get_span(fields, 'w', &ret->mark);

	ret->unsure = unsure != 0;
	return good && ret->mark.len <= SPOKEI_MARK_MAX;
}

int spokei_record_read_open(const struct spokei_record *record, struct spokei_record_open *ret)
{
	struct spoke_span id = { NULL, 0 };
	struct fields fields;
	bool good;

	find_fields(record, &fields);
	good = record->kind == SPOKEI_RECORD_OPEN && get_span(&fields, 's', &ret->service) &&
	       get_span(&fields, 'g', &ret->group) && get_span(&fields, 'v', &ret->version) &&
	       get_span(&fields, 'm', &ret->method) && get_span(&fields, 'a', &ret->arguments) &&
	       get_span(&fields, 'x', &ret->attachments) && get_span(&fields, 'k', &ret->key) &&
	       get_span(&fields, 'i', &id) && id.len == sizeof(ret->id) &&
	       get_number(&fields, 'b', &ret->begun_ns) &&
	       get_number(&fields, 'l', &ret->lasts_ns) &&
	       get_number(&fields, 'p', &ret->period_ns) &&
	       get_short(&fields, 'r', &ret->retries) && get_optional(&fields, 'f', &ret->flags) &&
	       get_tried(&fields, &ret->tried);
	if (good)
		memcpy(ret->id, id.data, sizeof(ret->id));
	return good && ret->service.len > 0 && ret->method.len > 0 ? SPOKE_OK : SPOKE_ECORRUPT;
}

int spokei_record_read_tried(const struct spokei_record *record, struct spokei_record_tried *ret)
{
	struct fields fields;

	find_fields(record, &fields);
	return record->kind == SPOKEI_RECORD_TRIED && get_tried(&fields, ret) ? SPOKE_OK
									      : SPOKE_ECORRUPT;
}

int spokei_record_read_answer(const struct spokei_record *record, struct spokei_record_answer *ret)
{
	uint32_t dropped = 0;
	struct fields fields;
	bool good;

	find_fields(record, &fields);
	good = record->kind == SPOKEI_RECORD_ANSWER && get_span(&fields, 's', &ret->service) &&
	       get_span(&fields, 'g', &ret->group) && get_span(&fields, 'v', &ret->version) &&
	       get_span(&fields, 'm', &ret->method) && get_span(&fields, 'i', &ret->id) &&
	       get_span(&fields, 'a', &ret->value) && get_span(&fields, 'x', &ret->attachments) &&
	       get_span(&fields, 'w', &ret->text) && get_span(&fields, 'y', &ret->class_name) &&
	       get_number(&fields, 'h', &ret->print) && get_number(&fields, 'c', &ret->caller) &&
	       get_number(&fields, 'b', &ret->ended_ns) &&
	       get_number(&fields, 'l', &ret->keeps_ns) && get_short(&fields, 'e', &ret->error) &&
	       get_short(&fields, 'q', &ret->error_code) && get_short(&fields, 't', &ret->status) &&
	       get_optional(&fields, 'd', &dropped);
	ret->dropped = dropped != 0;
	return good && ret->service.len > 0 && ret->id.len > 0 ? SPOKE_OK : SPOKE_ECORRUPT;
}

int spokei_record_read_ended(const struct spokei_record *record, uint32_t *ret_settlement)
{
	struct fields fields;

	find_fields(record, &fields);
	return record->kind == SPOKEI_RECORD_ENDED && get_short(&fields, 'e', ret_settlement)
		       ? SPOKE_OK
		       : SPOKE_ECORRUPT;
}

/* --- reading a segment */

void spokei_record_begin(struct spokei_record_reader *reader, const struct spokei_crc *crc,
			 const struct spokei_segment *segment, const void *bytes, size_t len,
			 struct spokei_segment_end end)
{
	*reader = (struct spokei_record_reader){
		.crc = crc,
		.bytes = bytes,
		.len = end.at ? end.at : len,
		.at = SPOKEI_SEGMENT_HEAD,
		.search_left = SEARCH_MAX,
		.seed = seed_of(crc, segment),
		.certain = end.at > end.uncertain ? end.at - end.uncertain : 0,
	};
	/* The missing end is damage, which is found after the last record. */
	if (reader->len > len)
		reader->len = len;
	reader->missing = reader->certain > len;
}

static void pay(struct spokei_record_reader *reader, size_t bytes)
{
	reader->search_left -= bytes < reader->search_left ? bytes : reader->search_left;
}

/* Returns the bytes of the record at an offset with its padding; 0: there is none. */
static size_t read_at(struct spokei_record_reader *reader, size_t at, struct spokei_record *ret)
{
	const unsigned char *record = reader->bytes + at;
	size_t left = reader->len - at;
	size_t len = left >= SPOKEI_RECORD_HEAD ? get32(record) : 0;

	if (len <= SPOKEI_RECORD_HEAD || len > SPOKEI_RECORD_MAX || padded(len) > left)
		return 0;
	if (record[20] < SPOKEI_RECORD_OPEN || record[20] > SPOKEI_RECORD_ANSWER ||
	    get32(record + 16) > at || !is_zero(record + len, padded(len) - len))
		return 0;
	pay(reader, len);
	if (get32(record + 4) != sum_of(reader->crc, reader->seed, record, len))
		return 0;
	*ret = (struct spokei_record){ .kind = (enum spokei_record_kind)record[20],
				       .ticket = get64(record + 8),
				       .durable = get32(record + 16) };
	if (spoke_value_check(record + SPOKEI_RECORD_HEAD, len - SPOKEI_RECORD_HEAD, NULL,
			      &ret->body) != SPOKE_OK ||
	    spoke_value_type(ret->body) != SPOKE_VALUE_MAP)
		return 0;
	return padded(len);
}

/* Looks for records after bad bytes. Returns the first one, or the end, and whether any of them
 * shows that the bad bytes were durable. */
static size_t search(struct spokei_record_reader *reader, bool *ret_durable)
{
	size_t first = reader->len;
	size_t at = reader->bad + SPOKEI_RECORD_ALIGN;

	*ret_durable = reader->bad < reader->certain;
	while (at < reader->len && !(*ret_durable && first < reader->len)) {
		struct spokei_record record;
		size_t size = read_at(reader, at, &record);

		pay(reader, SPOKEI_RECORD_ALIGN);
		if (reader->search_left == 0) {
			*ret_durable = true;
			break;
		}
		if (size > 0 && first == reader->len)
			first = at;
		if (size > 0 && record.durable > reader->bad)
			*ret_durable = true;
		at += size > 0 ? size : SPOKEI_RECORD_ALIGN;
	}
	return first;
}

enum spokei_record_found spokei_record_next(struct spokei_record_reader *reader,
					    struct spokei_record *ret)
{
	uint64_t search_left = reader->search_left;
	size_t at = reader->at;
	size_t size = at < reader->len ? read_at(reader, at, ret) : 0;
	bool was_durable;

	reader->search_left = search_left;
	if (size > 0) {
		reader->at += size;
		return SPOKEI_RECORD_FOUND;
	}
	reader->bad = at;
	if (at >= reader->len && reader->missing) {
		reader->missing = false;
		return SPOKEI_RECORD_DAMAGED;
	}
	if (at >= reader->len ||
	    (at >= reader->certain && is_zero(reader->bytes + at, reader->len - at)))
		return SPOKEI_RECORD_END;
	at = search(reader, &was_durable);
	reader->at = was_durable ? at : reader->len;
	return was_durable ? SPOKEI_RECORD_DAMAGED : SPOKEI_RECORD_TORN;
}
