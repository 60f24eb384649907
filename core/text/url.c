/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and prints URLs. Parsing has two steps. First the text is split into slices, which checks
 * the grammar without any memory. Then one block is allocated, for the parameters followed by all
 * strings, and the slices are decoded into it. The size of the block follows from the text alone,
 * because decoding never makes a text longer.
 */
#include <spoke/url.h>

#include "core/base/env.h"
#include "core/base/log.h"
#include "core/text/hide.h"
#include "core/text/percent.h"
#include "core/text/url_split.h"

#include <stdio.h>

/* Characters that are printed unchanged, in addition to letters and digits. */
#define MARKS_USER "-._~!$&'()*+,;="
#define MARKS_HOST "-._~:"
#define MARKS_PATH "-._~!$&'()*+,;=:@/"
#define MARKS_KEY "-._~!$'()*+,;:@/?"
#define MARKS_VALUE "-._~!$'()*+,;:@/?="
#define MARKS_COMPONENT "-._*" /* as in Java's URLEncoder */

#define HIDDEN "***" /* printed in place of a secret */

/* The strings of a block that is being filled. */
struct reader {
	struct spokei_url_split split;
	char *strings; /* where the next string goes */
	char *end;     /* where the room ends */
};

static int refuse(struct reader *reader, size_t at, const char *sentence)
{
	(void)spokei_url_fail(&reader->split, SPOKE_ESYNTAX, at, sentence);
	return SPOKE_ESYNTAX;
}

/* Decodes a slice into a string of the block. */
static int read_string(struct reader *reader, struct spokei_slice slice, const char **ret_string)
{
	char *string = reader->strings;
	size_t len;

	SPOKE_ASSERT(slice.len < (size_t)(reader->end - string));
	switch (spokei_percent_decode(reader->split.text + slice.at, slice.len, string, &len)) {
	case SPOKEI_PERCENT_BAD:
		return refuse(reader, slice.at + len,
			      "a percent sign comes before two hex digits; alone it is %25");
	case SPOKEI_PERCENT_NUL:
		return refuse(reader, slice.at + len, "%00 cannot be part of a URL");
	case SPOKEI_PERCENT_FINE:
		break;
	}
	string[len] = '\0';
	reader->strings = string + len + 1;
	*ret_string = string;
	return SPOKE_OK;
}

/* Like read_string(), in lower case up to the zone of an address. */
static int read_lower(struct reader *reader, struct spokei_slice slice, const char **ret_string)
{
	char *string = reader->strings;
	int error = read_string(reader, slice, ret_string);

	if (error)
		return error;
	for (; *string != '\0' && *string != '%'; string++)
		*string = spokei_to_lower(*string);
	return SPOKE_OK;
}

static int read_path(struct reader *reader, const char **ret_path)
{
	size_t space = spokei_slice_find(&reader->split, reader->split.path, " ");

	if (space < spokei_slice_end(reader->split.path))
		return refuse(reader, space, "in a path a space is written %20");
	return read_string(reader, reader->split.path, ret_path);
}

static int fail_twice(struct reader *reader, struct spokei_slice slice, const char *key)
{
	char quoted[SPOKE_URL_ERROR_MAX / 2];
	char sentence[SPOKE_URL_ERROR_MAX];

	(void)spokei_log_escape(quoted, sizeof(quoted), key, strlen(key));
	(void)snprintf(sentence, sizeof(sentence), "the parameter %s is given twice", quoted);
	return refuse(reader, slice.at, sentence);
}

static int read_parameters(struct reader *reader, struct spoke_url_parameter *parameters)
{
	struct spokei_slice query = reader->split.query;
	struct spokei_slice value;
	unsigned count = 0;

	if (reader->split.more.len > 0) {
		int error = read_string(reader, reader->split.more, &parameters[count].value);

		if (error)
			return error;
		parameters[count++].key = "backup";
	}
	while (spokei_url_next_parameter(&reader->split, &query, &value)) {
		struct spoke_url_parameter *parameter = &parameters[count];
		struct spokei_slice key = spokei_slice_cut(&value, spokei_slice_find(&reader->split,
										     value, "="));
		int error = read_string(reader, key, &parameter->key);

		if (error == SPOKE_OK)
			error = read_string(reader, value, &parameter->value);
		if (error)
			return error;
		for (unsigned i = 0; i < count; i++) {
			if (strcmp(parameters[i].key, parameter->key) == 0)
				return fail_twice(reader, key, parameter->key);
		}
		count++;
	}
	return SPOKE_OK;
}

/* The path of a unix socket. Two leading slashes would read as those of a host. */
static int read_socket(struct reader *reader, struct spoke_url *url)
{
	int error = read_path(reader, &url->socket);

	if (error)
		return error;
	if (url->socket[1] == '\0' || url->socket[1] == '/')
		return refuse(reader, reader->split.path.at,
			      "a unix socket is named as unix:/run/echo.sock");
	url->path = url->socket + strlen(url->socket);
	return SPOKE_OK;
}

static int read_place(struct reader *reader, struct spoke_url *url)
{
	int error = read_lower(reader, reader->split.host, &url->host);

	return error ? error : read_path(reader, &url->path);
}

/* Decodes everything into the block of `url`. */
static int read_strings(struct reader *reader, struct spoke_url *url)
{
	int error = read_lower(reader, reader->split.scheme, &url->scheme);

	if (error == SPOKE_OK && reader->split.has_user)
		error = read_string(reader, reader->split.user, &url->user);
	if (error == SPOKE_OK && reader->split.has_password)
		error = read_string(reader, reader->split.password, &url->password);
	if (error == SPOKE_OK)
		error = reader->split.is_unix ? read_socket(reader, url) : read_place(reader, url);
	if (error == SPOKE_OK)
		error = read_parameters(reader, url->memory);
	return error;
}

/* Allocates the block for the slices and fills it. */
static int build_url(struct reader *reader, size_t len, struct spoke_url *url)
{
	size_t parameters_size;
	int error;

	url->parameter_count = reader->split.parameter_count;
	/* No string is longer than its slice; each of the five parts and each parameter has a NUL.
	 */
	parameters_size = url->parameter_count * sizeof(*url->parameters);
	url->memory_size = parameters_size + len + 5 + 2 * (size_t)url->parameter_count;
	url->memory = spokei_alloc(url->env, url->memory_size, 1);
	if (url->memory == NULL)
		return spokei_url_fail(&reader->split, SPOKE_ENOMEM, 0,
				       spoke_strerror(SPOKE_ENOMEM));
	reader->strings = (char *)url->memory + parameters_size;
	reader->end = (char *)url->memory + url->memory_size;
	url->parameters = url->memory;
	url->shm = reader->split.is_shm;
	url->port = reader->split.port;
	error = read_strings(reader, url);
	if (error == SPOKE_OK && spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0) > SPOKE_URL_MAX)
		error = spokei_url_fail(
			&reader->split, SPOKE_ETOOLARGE, len,
			"with percent signs where they belong it has more than 65536 bytes");
	if (error)
		spoke_url_fini(url);
	return error;
}

int spoke_url_parse(const struct spoke_env *env, const char *text, size_t len,
		    struct spoke_url *ret_url, struct spoke_url_error *error)
{
	struct spoke_url_error unwanted;
	struct reader reader = {
		.split = { .text = text, .error = error ? error : &unwanted, .port = -1 },
	};
	struct spoke_url url = { .env = env };
	int code;

	if (env == NULL || text == NULL)
		return spokei_url_fail(&reader.split, SPOKE_EINVAL, 0,
				       spoke_strerror(SPOKE_EINVAL));
	code = spokei_url_split(&reader.split, len);
	if (code == SPOKE_OK)
		code = build_url(&reader, len, &url);
	if (code == SPOKE_OK)
		*ret_url = url;
	return code;
}

void spoke_url_fini(struct spoke_url *url)
{
	if (url->env)
		spokei_free(url->env, url->memory, url->memory_size, 1);
	*url = (struct spoke_url){ 0 };
}

const char *spoke_url_get(const struct spoke_url *url, const char *key)
{
	for (unsigned i = 0; i < url->parameter_count; i++) {
		if (strcmp(url->parameters[i].key, key) == 0)
			return url->parameters[i].value;
	}
	return NULL;
}

static void put_string(struct spokei_text *text, const char *string, const char *marks)
{
	spokei_percent_put(text, string, strlen(string), marks);
}

static void put_authority(struct spokei_text *text, const struct spoke_url *url,
			  enum spoke_url_form form)
{
	bool in_brackets = strchr(url->host, ':') != NULL;
	char port[16];

	spokei_text_put(text, "//");
	if (url->user)
		put_string(text, url->user, MARKS_USER);
	if (url->password) {
		spokei_text_put(text, ":");
		if (form == SPOKE_URL_DISPLAY)
			spokei_text_put(text, HIDDEN);
		else
			put_string(text, url->password, MARKS_USER);
	}
	spokei_text_put(text, url->user ? "@" : "");
	spokei_text_put(text, in_brackets ? "[" : "");
	put_string(text, url->host, MARKS_HOST);
	spokei_text_put(text, in_brackets ? "]" : "");
	if (url->port >= 0) {
		(void)snprintf(port, sizeof(port), ":%d", url->port);
		spokei_text_put(text, port);
	}
	spokei_text_put(text, url->path[0] != '\0' ? "/" : "");
	put_string(text, url->path, MARKS_PATH);
}

static void put_parameter(struct spokei_text *text, const struct spoke_url_parameter *parameter,
			  enum spoke_url_form form)
{
	const struct spoke_span key = { parameter->key, strlen(parameter->key) };

	put_string(text, parameter->key, MARKS_KEY);
	spokei_text_put(text, "=");
	if (form == SPOKE_URL_DISPLAY && spokei_hide_is_secret(key))
		spokei_text_put(text, HIDDEN);
	else
		put_string(text, parameter->value, MARKS_VALUE);
}

size_t spoke_url_print(const struct spoke_url *url, enum spoke_url_form form, char *out,
		       size_t size)
{
	struct spokei_text text = { out, size, 0 };

	if (url->scheme == NULL)
		return spokei_text_end(&text);
	spokei_text_put(&text, url->scheme);
	if (url->socket) {
		spokei_text_put(&text, url->scheme[0] != '\0' ? "+" : "");
		spokei_text_put(&text, url->shm ? "shm:" : "unix:");
		put_string(&text, url->socket, MARKS_PATH);
	} else {
		spokei_text_put(&text, ":");
		put_authority(&text, url, form);
	}
	for (unsigned i = 0; i < url->parameter_count; i++) {
		spokei_text_put(&text, i == 0 ? "?" : "&");
		put_parameter(&text, &url->parameters[i], form);
	}
	return spokei_text_end(&text);
}

/* A space is encoded as %20 first; later the plus sign replaces it. No mark is a plus sign. */
size_t spoke_url_encode(const void *bytes, size_t len, char *out, size_t size)
{
	struct spokei_text text = { out, size, 0 };
	const char *from = bytes;
	const char *end = from + len;

	while (from < end) {
		const char *space = memchr(from, ' ', (size_t)(end - from));
		const char *stop = space ? space : end;

		spokei_percent_put(&text, from, (size_t)(stop - from), MARKS_COMPONENT);
		spokei_text_put(&text, space ? "+" : "");
		from = space ? stop + 1 : stop;
	}
	return spokei_text_end(&text);
}

int spoke_url_decode(const char *text, size_t len, char *out, size_t size, size_t *ret_len)
{
	size_t out_len;

	if (size <= len)
		return SPOKE_ETOOLARGE;
	for (size_t i = 0; i < len; i++) {
		unsigned char byte = (unsigned char)text[i];

		if (byte < 0x20 || byte == 0x7f)
			return SPOKE_ESYNTAX;
		out[i] = byte == '+' ? ' ' : text[i];
	}
	if (spokei_percent_decode(out, len, out, &out_len) != SPOKEI_PERCENT_FINE)
		return SPOKE_ESYNTAX;
	out[out_len] = '\0';
	if (ret_len)
		*ret_len = out_len;
	return SPOKE_OK;
}
