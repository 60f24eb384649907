/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the URL of a provider says, as a directory understands it. A value; any thread.
 */
#ifndef SPOKEI_LISTING_H
#define SPOKEI_LISTING_H

#include "cluster/settings.h"
#include "transport/place.h"

#define SPOKEI_LISTING_KEY (32u + sizeof(((struct spokei_place *)0)->name))

struct spokei_listing {
	struct spokei_connector_options options; /* the texts are the URL's */
	char key[SPOKEI_LISTING_KEY];            /* "dubbo 127.0.0.1:20880": two of one key are one
						  * provider */
	size_t key_len;
	size_t name_at; /* bytes of the key before the place */
};

/* Returns 0 or an error, of which the engine's newest event has a sentence. */
SPOKE_MUST_USE int spokei_listing_read(struct spoke_engine *engine, const struct spoke_url *url,
				       struct spokei_listing *ret);

#endif
