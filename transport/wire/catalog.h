/* SPDX-License-Identifier: Apache-2.0 */
/* The wires, by first byte and by name. A new wire is a line in catalog.c. Constant; any thread. */
#ifndef SPOKEI_TRANSPORT_WIRE_CATALOG_H
#define SPOKEI_TRANSPORT_WIRE_CATALOG_H

#include "transport/wire/message.h"

/* Returns the wire of a connection that begins with this byte, or NULL. */
const struct spokei_wire *spokei_catalog_sniff(unsigned char first);

/* Returns the wire with this name ("dubbo", "msgpack-rpc", in lower case) for calls of this side,
 * or NULL. */
const struct spokei_wire *spokei_catalog_wire(const char *name);

#endif
