/* SPDX-License-Identifier: Apache-2.0 */
/* Copies texts into one block of memory. */
#include "cluster/config/texts.h"

#include <spoke/error.h>

#include <string.h>

static size_t size_of(const char *text)
{
	return text ? strlen(text) + 1 : 0;
}

int spokei_texts_copy(const struct spoke_env *env, const char *const *from,
		      const char **const *copies, size_t count, char **ret_block, size_t *ret_size)
{
	size_t size = 0;
	char *at;

	for (size_t i = 0; i < count; i++)
		size += size_of(from[i]);
	*ret_block = NULL;
	*ret_size = size;
	if (size == 0)
		return SPOKE_OK;
	at = spokei_alloc_unset(env, size);
	if (at == NULL)
		return SPOKE_ENOMEM;
	*ret_block = at;
	for (size_t i = 0; i < count; i++) {
		size_t len = size_of(from[i]);

		if (len == 0)
			continue;
		memcpy(at, from[i], len);
		*copies[i] = at;
		at += len;
	}
	return SPOKE_OK;
}
