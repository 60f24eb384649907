/* SPDX-License-Identifier: Apache-2.0 */
/* Reads and prints with yyjson, in a pool of memory that is kept. It does not look for repeated
 * keys. */
#include "tests/bench/json/yyjson.h"

#include <yyjson.h>

#include <stdio.h>
#include <stdlib.h>

#define POOL 16777216u

struct yyjson {
	yyjson_doc *document;
	void *pool;
};

static void die(const char *why)
{
	(void)fprintf(stderr, "bench_json: %s\n", why);
	exit(1);
}

struct yyjson *yyjson_make(const char *text, size_t len)
{
	struct yyjson *yyjson = malloc(sizeof(*yyjson));

	if (yyjson == NULL)
		die("out of memory");
	yyjson->document = yyjson_read(text, len, 0);
	yyjson->pool = malloc(POOL);
	if (yyjson->document == NULL || yyjson->pool == NULL)
		die("yyjson cannot read a document");
	return yyjson;
}

void yyjson_drop(struct yyjson *yyjson)
{
	if (yyjson == NULL)
		return;
	yyjson_doc_free(yyjson->document);
	free(yyjson->pool);
	free(yyjson);
}

size_t yyjson_run_read(struct yyjson *yyjson, const char *text, size_t len)
{
	yyjson_doc *document;
	yyjson_alc pool;
	size_t count;

	(void)yyjson_alc_pool_init(&pool, yyjson->pool, POOL);
	/* Without the flag for reading in place, the text is only read. */
	document = yyjson_read_opts((char *)(uintptr_t)text, len, 0, &pool, NULL);
	if (document == NULL)
		die("yyjson cannot read a document");
	count = yyjson_doc_get_val_count(document);
	yyjson_doc_free(document);
	return count;
}

size_t yyjson_run_print(struct yyjson *yyjson)
{
	yyjson_alc pool;
	size_t len;
	char *text;

	(void)yyjson_alc_pool_init(&pool, yyjson->pool, POOL);
	text = yyjson_write_opts(yyjson->document, 0, &pool, &len, NULL);
	if (text == NULL)
		die("yyjson cannot print a document");
	pool.free(pool.ctx, text);
	return len;
}
