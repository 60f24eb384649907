/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The format of a journal of tickets or answers: heads of segments and records, from structs to
 * bytes and back. FORMAT.md has it byte by byte. Reading takes any bytes, and tells a tail that a
 * crash has torn from damage to records that had been durable. Pure; any thread.
 */
#ifndef SPOKEI_CLUSTER_JOURNAL_RECORD_H
#define SPOKEI_CLUSTER_JOURNAL_RECORD_H

#include "core/memory/buffer.h"

#include <spoke/value.h>

#define SPOKEI_SEGMENT_HEAD 64u /* bytes of a head */
#define SPOKEI_RECORD_HEAD 21u  /* bytes of a record before its body */
#define SPOKEI_RECORD_ALIGN 8u  /* records begin at multiples of it */
#define SPOKEI_RECORD_MAX (UINT32_C(21) + SPOKE_VALUE_BYTES_MAX)
#define SPOKEI_JOURNAL_ID 16u /* random bytes of a journal */
#define SPOKEI_RECORD_ID 16u  /* bytes of a call's id */
#define SPOKEI_ENDED_SIZE 32u /* bytes of a record of the kind ENDED */
#define SPOKEI_MARK_MAX 32u   /* bytes of a mark */
#define SPOKEI_JOURNAL_VERSION 1u

/* --- CRC32C (Castagnoli) */

struct spokei_crc {
	uint32_t table[8][256];
};

void spokei_crc_init(struct spokei_crc *crc);

/* Returns the sum of bytes that follow those of `sum`; 0: none. */
uint32_t spokei_crc_add(const struct spokei_crc *crc, uint32_t sum, const void *bytes, size_t len);

/* --- segments */

struct spokei_segment {
	uint32_t number;       /* from 1 on */
	uint32_t previous_end; /* bytes of the segment before this one that count; 0: there is none
				*/
	uint32_t uncertain; /* the last ones of them, whose sync has failed: they may be missing */
	unsigned char journal[SPOKEI_JOURNAL_ID];
	uint64_t wall_ns;  /* when it was made, since 1970 */
	uint64_t consumer; /* hash of the consumer's name */
};

/* Writes the head of a segment. */
void spokei_segment_put(const struct spokei_crc *crc, const struct spokei_segment *segment,
			unsigned char ret_head[SPOKEI_SEGMENT_HEAD]);

/* Are all bytes zero, as in a segment that was never finished? */
bool spokei_segment_is_blank(const void *bytes, size_t len);

/* Reads the head. Returns 0; SPOKE_ETRUNCATED: the head is missing, all zero, or just begun,
 * because its segment was never finished; SPOKE_EINVAL: no segment of a journal;
 * SPOKE_EUNSUPPORTED: of a newer version; SPOKE_ECORRUPT: damaged, be it in the version. */
SPOKE_MUST_USE int spokei_segment_read(const struct spokei_crc *crc, const void *bytes, size_t len,
				       struct spokei_segment *ret);

/* Reads the number of the journal, and the consumer, from a damaged head, without a check. */
void spokei_segment_guess(const unsigned char *head, struct spokei_segment *ret);

/* --- records */

enum spokei_record_kind {
	SPOKEI_RECORD_OPEN = 1, /* a ticket; the last one of an id counts */
	SPOKEI_RECORD_TRIED,    /* attempts were begun */
	SPOKEI_RECORD_ENDED,    /* the ticket was settled */
	SPOKEI_RECORD_BASE,     /* `ticket` is the first segment that counts */
	SPOKEI_RECORD_ANSWER,   /* of a provider, for repeats; the last one of a number counts */
};

struct spokei_record {
	enum spokei_record_kind kind;
	uint64_t ticket;
	uint32_t segment;        /* in which it was found; set by the log */
	uint32_t durable;        /* bytes of the segment that were durable when it was written */
	struct spoke_value body; /* a map, in the memory of the segment */
};

/* The attempts of a ticket. Spans are borrowed. */
struct spokei_record_tried {
	uint32_t attempts; /* begun so far, the first call's included */
	bool unsure;       /* one of them may have run, and was not answered */
	/* The instance of a provider that can recognise a repeat of it, as in "spoke.repeat";
	 * empty: none is known. */
	struct spoke_span mark;
};

#define SPOKEI_RECORD_ONE_WAY 1u /* flags of OPEN: no answer is asked for */
#define SPOKEI_RECORD_ONCE 2u    /* ... the request must not run twice */

/* The body of OPEN. Spans are borrowed; an empty one is left out. */
struct spokei_record_open {
	struct spoke_span service;
	struct spoke_span group;
	struct spoke_span version;
	struct spoke_span method;
	struct spoke_span arguments;        /* packed values */
	struct spoke_span attachments;      /* a packed map */
	struct spoke_span key;              /* of the call */
	unsigned char id[SPOKEI_RECORD_ID]; /* of the call; zero: it bears none of ours */
	uint64_t begun_ns;                  /* when the call began, since 1970 */
	uint64_t lasts_ns;                  /* its deadline, after that */
	uint64_t period_ns;                 /* between attempts */
	uint32_t retries;
	uint32_t flags;
	struct spokei_record_tried tried;
};

/* The body of ANSWER. Spans are borrowed; an empty one is left out. */
struct spokei_record_answer {
	struct spoke_span service;
	struct spoke_span group;
	struct spoke_span version;
	struct spoke_span method; /* empty: of a handler for all other methods */
	struct spoke_span id;     /* of the request, required */
	uint64_t print;           /* hash of the arguments, under the journal's number */
	uint64_t caller;          /* ... and of the names that the caller has proven */
	uint64_t ended_ns;        /* when it was answered, since 1970 */
	uint64_t keeps_ns;        /* how long it is remembered, after that */
	bool dropped;             /* the answer was too large to be kept: the next ones are none */
	uint32_t error;           /* the bits of SPOKE_OK or a number of <spoke/error.h> ... */
	uint32_t error_code;      /* ... and of the caller's */
	uint32_t status;
	struct spoke_span value;
	struct spoke_span attachments; /* a packed map */
	struct spoke_span text;
	struct spoke_span class_name;
};

/* Append a record, which spokei_records_seal() completes. Return 0, SPOKE_ENOMEM or
 * SPOKE_ETOOLARGE; after an error `out` is unchanged. */
SPOKE_MUST_USE int spokei_record_put_open(struct spokei_buffer *out, uint64_t ticket,
					  const struct spokei_record_open *open);
SPOKE_MUST_USE int spokei_record_put_tried(struct spokei_buffer *out, uint64_t ticket,
					   const struct spokei_record_tried *tried);
SPOKE_MUST_USE int spokei_record_put_ended(struct spokei_buffer *out, uint64_t ticket,
					   uint32_t settlement);
SPOKE_MUST_USE int spokei_record_put_answer(struct spokei_buffer *out, uint64_t number,
					    const struct spokei_record_answer *answer);
SPOKE_MUST_USE int spokei_record_put_base(struct spokei_buffer *out, uint32_t number);

/* Returns the bytes of an appended record with its padding. */
size_t spokei_record_size(const unsigned char *record);

/* Completes appended records for a place in a segment of which `durable` bytes are durable. May be
 * repeated for another segment. */
void spokei_records_seal(const struct spokei_crc *crc, const struct spokei_segment *segment,
			 uint32_t durable, unsigned char *bytes, size_t len);

/* Read a body. Return 0 or SPOKE_ECORRUPT: a field is missing, or is of another type. */
SPOKE_MUST_USE int spokei_record_read_open(const struct spokei_record *record,
					   struct spokei_record_open *ret);
SPOKE_MUST_USE int spokei_record_read_tried(const struct spokei_record *record,
					    struct spokei_record_tried *ret);
SPOKE_MUST_USE int spokei_record_read_answer(const struct spokei_record *record,
					     struct spokei_record_answer *ret);
SPOKE_MUST_USE int spokei_record_read_ended(const struct spokei_record *record,
					    uint32_t *ret_settlement);

/* --- reading a segment */

struct spokei_record_reader {
	const struct spokei_crc *crc;
	const unsigned char *bytes; /* of the whole segment */
	size_t len;                 /* those that count */
	size_t at;                  /* the next record, or the end of the records */
	size_t bad;                 /* where the last torn or damaged bytes begin */
	uint64_t search_left;       /* bytes to be summed in searches for a record */
	uint32_t seed;              /* sum of the segment's number and the journal */
	size_t certain;             /* up to here all bytes are records, in the file or not ... */
	bool missing;               /* ... namely not */
};

enum spokei_record_found {
	SPOKEI_RECORD_FOUND,
	SPOKEI_RECORD_END,
	/* Bytes at `bad` are no record, and no record after them shows that they were durable: the
	 * log ends there. */
	SPOKEI_RECORD_TORN,
	/* Bytes at `bad` are no record, although they were durable. Reading goes on at the next
	 * record, or ends. */
	SPOKEI_RECORD_DAMAGED,
};

/* The end of a segment, as in the head of the next one; 0: it is the last one. */
struct spokei_segment_end {
	uint32_t at;
	uint32_t uncertain; /* bytes before it; all earlier ones are durable */
};

/* Begins to read a segment of these bytes after its head. */
void spokei_record_begin(struct spokei_record_reader *reader, const struct spokei_crc *crc,
			 const struct spokei_segment *segment, const void *bytes, size_t len,
			 struct spokei_segment_end end);

/* Reads the next record. */
enum spokei_record_found spokei_record_next(struct spokei_record_reader *reader,
					    struct spokei_record *ret);

#endif
