/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule which maps are objects of a Java class: all keys are str, the last key is "class", and
 * its value is the name. Pure; any thread.
 */
#ifndef SPOKEI_CORE_VALUE_JAVA_H
#define SPOKEI_CORE_VALUE_JAVA_H

#include "core/value/shape.h"

/* The maps that count as objects. */
enum spokei_objects {
	/* Those that a reader made of an object, or a program built with a qualified class name. */
	SPOKEI_OBJECTS_NAMED,
	SPOKEI_OBJECTS_ANY, /* and all others whose last pair is a class */
};

/* A reader writes objects with a map head of 16 bits. If the head needs these bits, the key "class"
 * has a longer head than necessary. */
#define SPOKEI_OBJECT_HEAD 0xdeu
#define SPOKEI_OBJECT_SHORT 15u /* pairs of a map that needs no head of 16 bits */
#define SPOKEI_CLASS_KEY                                                                           \
	"\xa5"                                                                                     \
	"class"
#define SPOKEI_CLASS_KEY_LONG                                                                      \
	"\xd9\x05"                                                                                 \
	"class"

/* Reads a str. A str inside an ext does not count. */
SPOKE_MUST_USE static inline bool spokei_plain_str(struct spoke_value value, struct spoke_span *ret)
{
	return value.len > 0 && spokei_shapes[*value.data].type == SPOKE_VALUE_STR &&
	       spoke_value_str(value, ret) == 0;
}

/* Returns the number of identifiers, joined by dots, of which the text consists; 0: it is no name
 * of Java. */
size_t spokei_java_identifiers(struct spoke_span text);

/* Returns whether the map that begins with this byte may be an object, so that the last pair
 * decides. */
static inline bool spokei_may_be_object(enum spokei_objects objects, unsigned char head)
{
	return objects == SPOKEI_OBJECTS_ANY || head != 0xdf;
}

/* Decides whether a map of which all keys are str is an object, by its first bytes and its last
 * pair, and writes the name of the class. */
SPOKE_MUST_USE bool spokei_is_object(enum spokei_objects objects, struct spoke_value map,
				     struct spoke_value key, struct spoke_value value,
				     struct spoke_span *ret_class);

#endif
