/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lists of a registry, as a directory applies them. The texts of a list are compared with those of
 * the one before, one by one; only those that differ are read. That, changes of endpoints and the
 * first connects are done in slices, one each turn. Part of a directory, on its
 * thread.
 */
#ifndef SPOKEI_CLUSTER_ENDPOINTS_LISTING_H
#define SPOKEI_CLUSTER_ENDPOINTS_LISTING_H

#include "core/engine/task.h"
#include "core/memory/buffer.h"
#include "core/memory/map.h"

#include <spoke/url.h>
#include <spoke/wheel.h>

struct spokei_directory;
struct spokei_endpoint;

/* Kinds of texts. */
enum spokei_listed_kind {
	SPOKEI_LISTED_UNREAD,
	SPOKEI_LISTED_USED,
	SPOKEI_LISTED_DISABLED, /* of the service, but disabled */
	SPOKEI_LISTED_OTHER,    /* of another version or group */
	SPOKEI_LISTED_IGNORED,
	SPOKEI_LISTED_KINDS,
};

/* A text of a list. */
struct spokei_listed {
	struct spokei_endpoint *endpoint; /* of a used one; else NULL */
	uint64_t timestamp_ms;            /* of the provider's start */
	size_t at;                        /* offset of the text */
	enum spokei_listed_kind kind;
};

struct spokei_text_list {
	struct spokei_buffer texts;    /* each with its NUL */
	struct spokei_listed *entries; /* and one more, for the end of the texts */
	size_t count;
};

struct spokei_listing {
	struct spokei_directory *directory;
	enum {
		SPOKEI_LISTING_DONE,
		SPOKEI_LISTING_COMPARES, /* `now` with `before` */
		SPOKEI_LISTING_READS,    /* the texts that are unread */
		SPOKEI_LISTING_APPLIES,  /* to the endpoints that were touched */
		SPOKEI_LISTING_CONNECTS, /* those that are asleep */
	} step;
	bool anew;        /* all texts are to be read again */
	bool over;        /* the last list was longer than the limit, and logged */
	bool others_told; /* that the empty list has providers of other versions or groups */
	bool keeps;       /* that endpoints are kept in place of an empty list was logged */
	struct spokei_text_list now;
	struct spokei_text_list before; /* while it is compared */
	struct spokei_text_list next;   /* arrived meanwhile */
	struct spokei_buffer spare;     /* memory for the texts of a later list */
	bool has_next;
	size_t at;                          /* progress in `now` */
	size_t old_at;                      /* and in `before` */
	size_t counts[SPOKEI_LISTED_KINDS]; /* texts of each kind */
	size_t bad;                         /* invalid texts of this list */
	struct spoke_url_error why;         /* of the first one */
	int error;                          /* some endpoint could not be added */
	size_t failed;                      /* connects */
	const struct spokei_endpoint *failed_first;
	int failed_error;
	size_t to_connect;         /* endpoints that are left */
	struct spokei_map keys;    /* endpoints by key */
	struct spoke_list touched; /* endpoints whose texts have changed */
	struct spoke_list asleep;  /* endpoints to be connected */
	uint64_t host_id;          /* of this process; 0: paths of providers are not used */
	struct spokei_task go_on;
	struct spoke_timer retry; /* of failed steps */
};

/* Has each endpoint know its newest text. */
void spokei_listing_index(struct spokei_listing *listing);

/* Returns that text; NULL: none is known, e.g. because the endpoint is about to be removed. */
const char *spokei_listing_text(const struct spokei_listing *listing,
				const struct spokei_endpoint *endpoint);

/* Ends the application of a list, without changes of endpoints. NULL is fine, here and below. */
void spokei_listing_end(struct spokei_listing *listing);
void spokei_listing_free(struct spokei_listing *listing);

/*
 * Sets the list of a registry: `count` texts, each with its NUL, whose memory is exchanged for
 * other. Endpoints that are missing are removed once their calls have ended, new ones are
 * connected. URLs of other groups and versions are ignored, invalid ones too, with an event. Of
 * several with one address the newest wins. Texts after the first endpoints.max are ignored, with
 * an event until a list fits again. A short list is applied at once, the rest of a longer one in
 * the next turns. Steps for which there is no memory are tried again later. Returns 0, or
 * SPOKE_ENOMEM and nothing was taken.
 */
SPOKE_MUST_USE int spokei_directory_set(struct spokei_directory *directory,
					struct spokei_buffer *texts, size_t count);

/* Reads all texts again, because the rules of operators have changed. */
void spokei_directory_reread(struct spokei_directory *directory);

#endif
