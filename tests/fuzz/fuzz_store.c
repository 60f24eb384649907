/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the parser of stores' URLs. An accepted URL names exactly one place, within all limits; a
 * rejected one has a printable message with a position in the text.
 */
#include "cluster/config/keys.h"
#include "cluster/config/store.h"
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

static void check_text(const char *text, size_t max)
{
	demand(text && *text, "a text is not empty");
	demand(strlen(text) <= max, "a text has a limit");
}

static void check_host(const struct spokei_store_host *host)
{
	check_text(host->host, SPOKE_URL_HOST_MAX);
	demand(host->port != 0, "a port is set");
}

static void check_store(const struct spokei_store *store)
{
	struct spokei_key_values values;

	demand((store->server.host != NULL) + (store->path != NULL) + (store->primary != NULL) == 1,
	       "a store is a server, a socket or sentinels");
	if (store->server.host)
		check_host(&store->server);
	if (store->path)
		check_text(store->path, 107);
	if (store->primary)
		check_text(store->primary, SPOKEI_STORE_TEXT_MAX);
	demand((store->sentinel_count > 0) == (store->primary != NULL),
	       "sentinels and the primary's name belong together");
	demand(store->sentinel_count <= SPOKEI_STORE_SENTINELS_MAX, "few sentinels");
	for (unsigned i = 0; i < store->sentinel_count; i++)
		check_host(&store->sentinels[i]);
	if (store->user)
		check_text(store->user, SPOKEI_STORE_TEXT_MAX);
	if (store->password)
		check_text(store->password, SPOKEI_STORE_TEXT_MAX);
	demand(store->db <= SPOKEI_STORE_DB_MAX, "a database is in range");
	spokei_keys_preset(&values);
	spokei_store_keys(store, &values);
	for (unsigned i = 0; i < SPOKEI_KEYS; i++) {
		const struct spokei_option *row = &spokei_key_row((enum spokei_key)i)->option;

		demand(values.from[i] == SPOKEI_FROM_DEFAULT ||
			       (i >= SPOKEI_KEY_LEASE_TTL && i <= SPOKEI_KEY_LEASE_MAX),
		       "only keys of leases are set");
		demand(values.from[i] == SPOKEI_FROM_DEFAULT || values.of[i] <= row->max,
		       "values are in range");
	}
}

FUZZ(store)
{
	struct spoke_url_error why = { SIZE_MAX, "" };
	struct spokei_store store;
	struct memory memory;
	char *text = malloc(size ? size : 1);

	demand(text != NULL, "there is memory");
	if (size > 0)
		memcpy(text, data, size);
	memory_init(&memory);
	if (spokei_store_parse(&memory.env, text, size, &store, &why) == SPOKE_OK) {
		check_store(&store);
		spokei_store_fini(&store);
	} else {
		demand(why.at <= size, "the place of an error lies in the text");
		demand(*why.text != '\0', "an error has a message");
		for (const char *at = why.text; *at; at++)
			demand(*at >= ' ' && *at < 0x7f, "a message is printable");
	}
	demand(memory.bytes == 0, "no memory leaks");
	free(text);
	return 0;
}
