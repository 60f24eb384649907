/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Packs arguments for one call or reply. Short ones are encoded on the stack of the caller, without
 * a builder; only long or nested ones take memory. Any thread.
 */
#ifndef SPOKEI_CORE_VALUE_ARGS_H
#define SPOKEI_CORE_VALUE_ARGS_H

#include <spoke/args.h>

#define SPOKEI_PACKED_LOCAL 512u                   /* bytes that need no memory */
#define SPOKEI_ARGS_BYTES_MAX (UINT32_C(64) << 20) /* no frame is larger */

/* Packed arguments. Must not be copied. */
struct spokei_packed {
	struct spoke_span values;
	const struct spoke_env *env;
	unsigned char *kept; /* memory of the environment; NULL: none */
	size_t kept_size;
	unsigned char local[SPOKEI_PACKED_LOCAL];
};

/* Packs arguments. Returns 0 or an error of spoke_builder_finish() or spoke_value_check(). Undo
 * with spokei_packed_free(), after an error too. */
SPOKE_MUST_USE int spokei_args_pack(const struct spoke_env *env, struct spoke_args args,
				    struct spokei_packed *ret);

/* Returns the value of a single argument. */
static inline struct spoke_value spokei_packed_value(const struct spokei_packed *packed)
{
	return (struct spoke_value){ packed->values.data, packed->values.len };
}

/* Frees the memory of packed arguments. */
void spokei_packed_free(struct spokei_packed *packed);

#endif
