/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JVM descriptors of the argument types of a request, as one text. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_TYPES_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_TYPES_H

#include "transport/wire/put.h"

#define SPOKEI_DUBBO_TYPES_KEPT 8

/* A descriptor, in a size that is copied at once. */
struct spokei_dubbo_type {
	unsigned char len;
	char text[23];
};

/* Bytes after the types that the put functions may overwrite. */
#define SPOKEI_DUBBO_TYPES_BEYOND 23u

/* The given types, or those derived from the arguments. The first few derived ones are kept, so
 * most arguments are examined once. */
struct spokei_dubbo_types {
	struct spoke_span told;
	const struct spokei_dubbo_type *first[SPOKEI_DUBBO_TYPES_KEPT];
	size_t count; /* number of arguments; 0: the types were given */
	size_t len;
	bool named; /* one is the class of an object, so all are derived once more */
};

/* Determines the types of a message; generic calls have none here. */
void spokei_dubbo_types_plan(const struct spokei_message *message, struct spokei_dubbo_types *ret);

/* Writes the types as a str; `args` are those of the message. Returns the address of the next byte;
 * up to BEYOND bytes after it are overwritten. */
unsigned char *spokei_dubbo_types_put(unsigned char *at, const struct spokei_dubbo_types *types,
				      struct spoke_span args);

/* Does the same for one argument. Returns NULL for an object, whose type has no bound. */
unsigned char *spokei_dubbo_types_put_one(unsigned char *at, struct spoke_span arg);

#endif
