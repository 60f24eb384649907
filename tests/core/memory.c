/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for tests, counted and failing on demand: see memory.h. */
#include "tests/core/memory.h"

#include <stdlib.h>
#include <string.h>

static void *memory_resize(void *ctx, void *block, size_t old_len, size_t len)
{
	struct memory *memory = ctx;
	void *grown;

	if (len == 0) {
		memory->bytes -= old_len;
		free(block);
		return NULL;
	}
	memory->asked++;
	if (memory->asked == memory->fail_at)
		return NULL;
	grown = realloc(block, len);
	if (grown)
		memory->bytes += len - old_len;
	return grown;
}

void memory_init(struct memory *memory)
{
	*memory = (struct memory){ .env = { .ctx = memory, .resize = memory_resize } };
}

int memory_parse_url(struct memory *memory, const char *text, size_t len, struct spoke_url *ret_url,
		     struct spoke_url_error *error)
{
	char *copy = malloc(len > 0 ? len : 1);
	int code;

	if (copy == NULL)
		return SPOKE_ENOMEM;
	memcpy(copy, text, len);
	code = spoke_url_parse(&memory->env, copy, len, ret_url, error);
	free(copy);
	return code;
}
