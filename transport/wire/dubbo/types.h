/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The descriptors of the arguments' types, in one text, as a request says them. Stateless; any
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_TYPES_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_TYPES_H

#include "transport/wire/put.h"

#define SPOKEI_DUBBO_TYPES_KEPT 8

/* A type's descriptor, in a size that is copied at once. */
struct spokei_dubbo_type {
	unsigned char len;
	char text[23];
};

/* Bytes behind the types that putting them may write to. */
#define SPOKEI_DUBBO_TYPES_BEYOND 23u

/* The types that are told, or else those of the arguments; of the latter the first few are kept, so
 * that most arguments are looked at once. */
struct spokei_dubbo_types {
	struct spoke_span told;
	const struct spokei_dubbo_type *first[SPOKEI_DUBBO_TYPES_KEPT];
	size_t count; /* of the arguments; 0: told */
	size_t len;
};

/* The types of a message; of a generic call there are none here. */
void spokei_dubbo_types_plan(const struct spokei_message *message, struct spokei_dubbo_types *ret);

/* Puts them as a str; `args`: those of the message. Returns where the next byte goes; what lies
 * BEYOND it is void. */
unsigned char *spokei_dubbo_types_put(unsigned char *at, const struct spokei_dubbo_types *types,
				      struct spoke_span args);

/* The same of one argument. */
unsigned char *spokei_dubbo_types_put_one(unsigned char *at, struct spoke_span arg);

#endif
