/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Splits the text of a URL into slices, still encoded, without any memory. The lower half of url,
 * which decodes them; stateless; any thread.
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
	struct spokei_slice scheme;    /* without "+unix" or "+shm"; may be empty */
	struct spokei_slice user;
	struct spokei_slice password;
	struct spokei_slice host;  /* without brackets */
	struct spokei_slice path;  /* without its first slash; of a unix socket: with it */
	struct spokei_slice more;  /* addresses after the first one, for the parameter "backup" */
	struct spokei_slice query; /* input of spokei_url_next_parameter() */
	bool has_user;
	bool has_password;
	bool is_unix; /* or shm */
	bool is_shm;
	int port; /* -1: not given */
	unsigned parameter_count;
};

/* Splits the text; the slices are zero before. Returns 0, ESYNTAX, ERANGE or ETOOLARGE. */
SPOKE_MUST_USE int spokei_url_split(struct spokei_url_split *split, size_t len);

/* Notes the error and its position; returns `code`. */
int spokei_url_fail(struct spokei_url_split *split, int code, size_t at, const char *sentence);

/* Cuts the next parameter off; an empty one is skipped. Returns false if there is none left. */
bool spokei_url_next_parameter(const struct spokei_url_split *split, struct spokei_slice *query,
			       struct spokei_slice *ret);

/* Returns the position of the first of these bytes in a slice, or its end. */
size_t spokei_slice_find(const struct spokei_url_split *split, struct spokei_slice slice,
			 const char *bytes);

/* Cuts off and returns the part before `at`; the slice then begins after it. */
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
