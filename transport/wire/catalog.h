/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What this floor has to offer, by the names, bytes and numbers that users and peers have for it.
 * A new wire is a line in catalog.c; codecs have a table of their own. Constant; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_CATALOG_H
#define SPOKEI_TRANSPORT_WIRE_CATALOG_H

#include "transport/wire/message.h"

/* The wire that a connection speaks which begins with this byte, or NULL. */
const struct spokei_wire *spokei_catalog_sniff(unsigned char first);

/* The wire of this name ("dubbo", "msgpack-rpc"; small letters, as schemes of URLs are), or NULL.
 */
const struct spokei_wire *spokei_catalog_wire(const char *name);

#endif
