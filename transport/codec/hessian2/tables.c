/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds types, classes and containers that were already written. Types and classes are searched
 * from the last one back, because the elements of a list tend to have the same class. The sum of
 * all comparisons is bounded by the length of the values.
 */
#include "transport/codec/hessian2/tables.h"

#include <string.h>

#define KEY_PRICE 8u /* of a comparison of two keys, in addition to their bytes */

/* --- names */

struct spokei_hessian2_name spokei_hessian2_name_of(struct spoke_span text)
{
	struct spokei_hessian2_name name = { text.data, text.len, 0, false };

	while (name.len > 0 && *name.text == '[') {
		name.dims++;
		name.text++;
		name.len--;
	}
	return name;
}

static char letter(const struct spokei_hessian2_name *name, size_t i)
{
	return name->steered && name->text[i] == '/' ? '.' : name->text[i];
}

/* Pays for a comparison. Returns false if there have been too many. */
static bool pay(struct spokei_hessian2_tables *tables, size_t price)
{
	if (price > tables->compares) {
		tables->compares = 0;
		return false;
	}
	tables->compares -= price;
	return true;
}

static bool same_letters(const struct spokei_hessian2_name *a, const struct spokei_hessian2_name *b)
{
	for (size_t i = 0; i < a->len; i++)
		if (letter(a, i) != letter(b, i))
			return false;
	return true;
}

/* Compares two names; memcmp() counts as an eighth of its bytes. */
static bool same_name(struct spokei_hessian2_tables *tables, const struct spokei_hessian2_name *a,
		      const struct spokei_hessian2_name *b)
{
	bool alike = a->steered == b->steered;

	if (a->len != b->len || a->dims != b->dims)
		return false;
	if (a->len == 0 || (alike && a->text == b->text))
		return true;
	if (!pay(tables, alike ? 1 + a->len / 8 : a->len))
		return false;
	return alike ? memcmp(a->text, b->text, a->len) == 0 : same_letters(a, b);
}

/* --- types and classes */

/* Returns the first number that is remembered. */
static uint32_t first_of(uint32_t count, uint32_t max)
{
	return count > max ? count - max : 0;
}

bool spokei_hessian2_find_type(struct spokei_hessian2_tables *tables,
			       const struct spokei_hessian2_name *name, uint32_t *ret_number)
{
	uint32_t first = first_of(tables->types, SPOKEI_HESSIAN2_TYPES);

	for (*ret_number = tables->types; *ret_number > first;) {
		--*ret_number;
		if (same_name(tables, &tables->type[*ret_number % SPOKEI_HESSIAN2_TYPES], name))
			return true;
	}
	*ret_number = tables->types++;
	tables->type[*ret_number % SPOKEI_HESSIAN2_TYPES] = *name;
	return false;
}

bool spokei_hessian2_next_key(const struct spokei_hessian2_class *class, size_t i,
			      struct spoke_cursor *pairs, struct spoke_value *ret)
{
	struct spoke_cursor key;
	struct spoke_value value;

	if (class->fields > SPOKEI_HESSIAN2_KEYS)
		return spoke_cursor_next_pair(pairs, ret, &value);
	key = (struct spoke_cursor){ class->key[i], pairs->end, 1 };
	return spoke_cursor_next(&key, ret);
}

/* Compares two keys and moves on. The price includes the pairs that the search passes. */
static bool same_key(struct spokei_hessian2_tables *tables, size_t i,
		     const struct spokei_hessian2_class *a, struct spoke_cursor *pairs_a,
		     const struct spokei_hessian2_class *b, struct spoke_cursor *pairs_b)
{
	const unsigned char *at_a = pairs_a->at;
	const unsigned char *at_b = pairs_b->at;
	struct spoke_value key_a;
	struct spoke_value key_b;

	return spokei_hessian2_next_key(a, i, pairs_a, &key_a) &&
	       spokei_hessian2_next_key(b, i, pairs_b, &key_b) &&
	       pay(tables, KEY_PRICE + key_a.len + (size_t)(pairs_a->at - at_a) +
				   (size_t)(pairs_b->at - at_b)) &&
	       spoke_value_equal(key_a, key_b);
}

static bool same_fields(struct spokei_hessian2_tables *tables,
			const struct spokei_hessian2_class *a,
			const struct spokei_hessian2_class *b)
{
	struct spoke_cursor pairs_a = spoke_cursor_bytes(a->pairs);
	struct spoke_cursor pairs_b = spoke_cursor_bytes(b->pairs);

	for (size_t i = 0; i < a->fields; i++)
		if (!same_key(tables, i, a, &pairs_a, b, &pairs_b))
			return false;
	return true;
}

bool spokei_hessian2_find_class(struct spokei_hessian2_tables *tables,
				const struct spokei_hessian2_class *class, uint32_t *ret_number)
{
	uint32_t first = first_of(tables->classes, SPOKEI_HESSIAN2_CLASSES);

	for (*ret_number = tables->classes; *ret_number > first;) {
		const struct spokei_hessian2_class *known;

		--*ret_number;
		known = &tables->class[*ret_number % SPOKEI_HESSIAN2_CLASSES];
		if (known->fields == class->fields && known->renamed == class->renamed &&
		    same_name(tables, &known->name, &class->name) &&
		    same_fields(tables, known, class))
			return true;
	}
	*ret_number = tables->classes++;
	tables->class[*ret_number % SPOKEI_HESSIAN2_CLASSES] = *class;
	return false;
}

/* --- containers */

bool spokei_hessian2_is_target(const struct spokei_hessian2_tables *tables, uint64_t distance,
			       struct spoke_span copy, const unsigned char *end)
{
	const unsigned char *value;

	if (distance == 0 || distance > tables->containers || distance > SPOKEI_HESSIAN2_RECENT)
		return false;
	value = tables->recent[(tables->containers - distance) % SPOKEI_HESSIAN2_RECENT];
	return value != NULL && copy.len <= (size_t)(end - value) &&
	       memcmp(value, copy.data, copy.len) == 0;
}
