/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the text of a URL is made of, still encoded: slices of it, found without any memory. Half of
 * the url room, which decodes them; stateless; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_URL_SPLIT_H
#define SPOKEI_CORE_TEXT_URL_SPLIT_H

#include <spoke/url.h>

/* A part of the text. */
struct spokei_slice {
	size_t at;
	size_t len;
};

struct spokei_url_split {
	const char *text;              /* borrowed */
	struct spoke_url_error *error; /* never NULL */
	struct spokei_slice scheme;    /* without "+unix"; may be empty */
	struct spokei_slice user;
	struct spokei_slice password;
	struct spokei_slice host;  /* without brackets */
	struct spokei_slice path;  /* without its first slash; of a unix socket: with it */
	struct spokei_slice query; /* what spokei_url_next_parameter() cuts from */
	bool has_user;
	bool has_password;
	bool is_unix;
	int port; /* -1: not given */
	unsigned parameter_count;
};

/* Splits the text; the slices are zero before. Returns 0, ESYNTAX, ERANGE or ETOOLARGE. */
SPOKE_MUST_USE int spokei_url_split(struct spokei_url_split *split, size_t len);

/* Notes what is wrong and where; returns `code`. */
int spokei_url_fail(struct spokei_url_split *split, int code, size_t at, const char *sentence);

/* Cuts the next parameter off; an empty one is none. False: there is no more. */
bool spokei_url_next_parameter(const struct spokei_url_split *split, struct spokei_slice *query,
			       struct spokei_slice *ret);

/* The place of the first of these bytes in a slice; its end: there is none. */
size_t spokei_slice_find(const struct spokei_url_split *split, struct spokei_slice slice,
			 const char *bytes);

/* Cuts off and returns what stands before `at`; the slice then begins behind it. */
struct spokei_slice spokei_slice_cut(struct spokei_slice *slice, size_t at);

static inline size_t spokei_slice_end(struct spokei_slice slice)
{
	return slice.at + slice.len;
}

static inline char spokei_to_lower(char byte)
{
	return byte >= 'A' && byte <= 'Z' ? (char)(byte - 'A' + 'a') : byte;
}

#endif
