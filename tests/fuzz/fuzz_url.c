/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the URL parser and the encoding of components. A URL that can be parsed must print to a
 * text that parses as the same URL and prints as the same text; decoding must reverse encoding.
 */
#include "tests/core/memory.h"
#include "tests/fuzz/fuzz.h"

#include <spoke/url.h>

#include <stdlib.h>
#include <string.h>

static int same(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Prints to a block of exactly the returned length. */
static char *print_url(const struct spoke_url *url, size_t *ret_len)
{
	size_t len = spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0);
	char *text = malloc(len + 1);

	demand(text != NULL, "there is memory");
	demand(spoke_url_print(url, SPOKE_URL_WHOLE, text, len + 1) == len, "lengths agree");
	demand(strlen(text) == len, "no NUL inside a URL");
	*ret_len = len;
	return text;
}

static void compare_urls(const struct spoke_url *a, const struct spoke_url *b)
{
	demand(same(a->scheme, b->scheme), "the same scheme");
	demand(same(a->user, b->user), "the same user");
	demand(same(a->password, b->password), "the same password");
	demand(same(a->host, b->host), "the same host");
	demand(same(a->path, b->path), "the same path");
	demand(same(a->socket, b->socket), "the same socket");
	demand(a->port == b->port, "the same port");
	demand(a->parameter_count == b->parameter_count, "as many parameters");
	for (unsigned i = 0; i < a->parameter_count; i++) {
		const struct spoke_url_parameter *parameter = &a->parameters[i];

		demand(same(parameter->key, b->parameters[i].key), "the same key");
		demand(same(parameter->value, b->parameters[i].value), "the same value");
		demand(same(spoke_url_get(b, parameter->key), parameter->value), "found by key");
	}
}

static void try_url(struct memory *memory, const char *text, size_t len)
{
	struct spoke_url_error error = { .at = SIZE_MAX };
	struct spoke_url url;
	struct spoke_url again;
	char *printed;
	char *reprinted;
	size_t printed_len;
	size_t reprinted_len;

	if (spoke_url_parse(&memory->env, text, len, &url, &error) != SPOKE_OK) {
		demand(error.at <= len, "the place of an error lies in the text");
		demand(strlen(error.text) > 0, "an error has a message");
		return;
	}
	printed = print_url(&url, &printed_len);
	demand(spoke_url_parse(&memory->env, printed, printed_len, &again, NULL) == SPOKE_OK,
	       "printed text can be parsed");
	compare_urls(&url, &again);
	reprinted = print_url(&again, &reprinted_len);
	demand(same(printed, reprinted), "printing is a fixed point");
	spoke_url_fini(&again);
	spoke_url_fini(&url);
	free(reprinted);
	free(printed);
}

static void try_component(const char *text, size_t len)
{
	size_t encoded_len = spoke_url_encode(text, len, NULL, 0);
	char *encoded = malloc(encoded_len + 1);
	char *decoded = malloc(encoded_len + 1);
	size_t decoded_len;
	int code;

	demand(encoded != NULL && decoded != NULL, "there is memory");
	demand(encoded_len <= 3 * len, "encoding at most triples the length");
	demand(spoke_url_encode(text, len, encoded, encoded_len + 1) == encoded_len,
	       "lengths agree");
	code = spoke_url_decode(encoded, encoded_len, decoded, encoded_len + 1, &decoded_len);
	if (len > 0 && memchr(text, '\0', len) != NULL) {
		demand(code == SPOKE_ESYNTAX, "an encoded NUL is refused");
	} else {
		demand(code == SPOKE_OK, "encoded text can be decoded");
		demand(decoded_len == len && strlen(decoded) == len, "to as many bytes");
		demand(len == 0 || memcmp(decoded, text, len) == 0, "and the same ones");
	}
	free(decoded);
	free(encoded);
}

/* Decodes arbitrary bytes, which need not be the output of the encoder. */
static void try_decode(const char *text, size_t len)
{
	char *decoded = malloc(len + 1);
	size_t decoded_len;

	demand(decoded != NULL, "there is memory");
	if (spoke_url_decode(text, len, decoded, len + 1, &decoded_len) == SPOKE_OK) {
		demand(decoded_len <= len, "decoding makes nothing longer");
		demand(strlen(decoded) == decoded_len, "no NUL inside a component");
	}
	free(decoded);
}

FUZZ(url)
{
	struct memory memory;
	const char *text = (const char *)data;

	memory_init(&memory);
	try_url(&memory, text, size);
	demand(memory.bytes == 0, "no memory leaks");
	try_component(text, size);
	try_decode(text, size);
	return 0;
}
