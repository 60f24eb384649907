/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds the end of a body in chunks (RFC 9112, section 7.1), and joins the chunks. Strict: sizes
 * have at most eight hexadecimal digits, lines end with CRLF, and a line has a limit. Extensions of
 * chunks and trailers are checked and ignored. Pure; any thread.
 */
#ifndef SPOKEI_TRANSPORT_HTTP_CHUNKS_H
#define SPOKEI_TRANSPORT_HTTP_CHUNKS_H

#include "core/memory/buffer.h"

#define SPOKEI_HTTP_CHUNK_LINE 256u    /* bytes of the line before a chunk, with its end */
#define SPOKEI_HTTP_TRAILERS_MAX 1024u /* bytes of all trailers, with the empty line */

/* How far a body was scanned; all zero at first. */
struct spokei_http_chunks {
	size_t at;  /* offset of the next chunk's line */
	size_t len; /* bytes of the chunks before it, joined */
};

/*
 * Scans the body that begins with these `len` bytes; earlier calls saw a prefix of them. Returns
 * SPOKEI_HTTP_WHOLE, and chunks->at is the offset of the body's end; SPOKEI_HTTP_MORE (*ret_needed:
 * bytes needed in all, as far as known); 400 (bad syntax), or 413 (more than `max` bytes when
 * joined).
 */
int spokei_http_chunks_scan(struct spokei_http_chunks *chunks, const void *bytes, size_t len,
			    size_t max, size_t *ret_needed);

/* Copies the chunks of a whole body, which was scanned, to `to`. Returns their length. */
size_t spokei_http_chunks_join(const void *bytes, void *to);

#endif
