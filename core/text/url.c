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
#include "core/base/span.h"
#include "core/text/encoding.h"
#include "core/text/range.h"
#include "core/text/secret.h"

#include <stdio.h>

/* Characters that are printed unchanged, in addition to letters and digits. */
#define MARKS_USER "-._~!$&'()*+,;="
#define MARKS_HOST "-._~:"
#define MARKS_PATH "-._~!$&'()*+,;=:@/"
#define MARKS_KEY "-._~!$'()*+,;:@/?"
#define MARKS_VALUE "-._~!$'()*+,;:@/?="
#define MARKS_COMPONENT "-._*" /* as in Java's URLEncoder */

#define HIDDEN "***" /* printed in place of a secret */
#define PORT_MAX 65535

/* --- slices: the grammar, read from left to right by cutting slices off the rest */

/* A part of the text. */
struct slice {
	size_t at;
	size_t len;
};

struct split {
	const char *text;              /* borrowed */
	struct spoke_url_error *error; /* never NULL */
	struct slice scheme;           /* without "+unix" or "+shm"; may be empty */
	struct slice user;
	struct slice password;
	struct slice host;  /* without brackets */
	struct slice path;  /* without its first slash; of a unix socket: with it */
	struct slice more;  /* addresses after the first one, for the parameter "backup" */
	struct slice query; /* input of next_parameter() */
	bool has_user;
	bool has_password;
	bool is_unix; /* or shm */
	bool is_shm;
	int port; /* -1: not given */
	unsigned parameter_count;
};

static size_t end_of(struct slice slice)
{
	return slice.at + slice.len;
}

/* Notes the error and its position; returns `code`. */
static int fail(struct split *split, int code, size_t at, const char *sentence)
{
	split->error->at = at;
	(void)snprintf(split->error->text, sizeof(split->error->text), "%s", sentence);
	return code;
}

static int refuse(struct split *split, size_t at, const char *sentence)
{
	return fail(split, SPOKE_ESYNTAX, at, sentence);
}

static bool is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

/* Returns the position of the first of these bytes in a slice, or its end. */
static size_t find_in(const struct split *split, struct slice slice, const char *bytes)
{
	size_t at = slice.at;

	while (at < end_of(slice) && strchr(bytes, split->text[at]) == NULL)
		at++;
	return at;
}

/* Cuts off and returns the part before `at`; the slice then begins after it. */
static struct slice cut_at(struct slice *slice, size_t at)
{
	struct slice head = { slice->at, at - slice->at };
	size_t skipped = head.len < slice->len ? head.len + 1 : head.len;

	slice->at += skipped;
	slice->len -= skipped;
	return head;
}

static int check_bytes(struct split *split, size_t len)
{
	for (size_t at = 0; at < len; at++) {
		unsigned char byte = (unsigned char)split->text[at];

		if (byte < 0x20 || byte == 0x7f)
			return refuse(split, at, "a control byte cannot be part of a URL");
		if (byte == '#')
			return refuse(split, at,
				      "a URL of spoke has no fragment; write %23 for the sign");
	}
	return SPOKE_OK;
}

/* Cuts a name of sockets off the end of the scheme, with a "+" unless it is the whole. Returns
 * whether it was there. */
static bool cut_name(const struct split *split, struct slice *scheme, const char *name)
{
	size_t len = strlen(name);

	/* A bare name counts as if a "+" stood before it. */
	if (scheme->len == len - 1)
		len--;
	if (scheme->len < len)
		return false;
	for (size_t i = 1; i <= len; i++)
		if (spokei_lower(split->text[scheme->len - i]) != name[strlen(name) - i])
			return false;
	scheme->len -= len;
	return true;
}

/* Cuts the scheme off the rest, and "unix" or "+unix" off the scheme; or "shm". */
static int split_scheme(struct split *split, struct slice *rest)
{
	size_t at = find_in(split, *rest, ":/?");
	struct slice *scheme = &split->scheme;

	if (at == end_of(*rest) || split->text[at] != ':' || !is_letter(split->text[rest->at]))
		return refuse(split, rest->at,
			      "a URL begins with a scheme, e.g. dubbo://127.0.0.1:20880/demo.Echo");
	*scheme = cut_at(rest, at);
	for (size_t i = 0; i < scheme->len; i++) {
		char byte = split->text[i];

		if (!is_letter(byte) && !is_digit(byte) && (strchr("+-.", byte) == NULL))
			return refuse(split, i,
				      "a scheme is made of letters, digits and + - . only");
	}
	split->is_shm = cut_name(split, scheme, "+shm");
	split->is_unix = split->is_shm || cut_name(split, scheme, "+unix");
	return SPOKE_OK;
}

static int split_user(struct split *split, struct slice *authority)
{
	size_t at = find_in(split, *authority, "@");
	struct slice user;

	if (at == end_of(*authority))
		return SPOKE_OK;
	user = cut_at(authority, at);
	at = find_in(split, *authority, "@");
	if (at < end_of(*authority))
		return refuse(split, at,
			      "there is one @ already; in a user or a password write %40");
	at = find_in(split, user, ":");
	split->has_user = true;
	split->has_password = at < end_of(user);
	split->user = cut_at(&user, at);
	split->password = user;
	return SPOKE_OK;
}

/* An IPv6 address with an optional zone. */
static int check_ipv6(struct split *split)
{
	size_t end = end_of(split->host);
	size_t zone = find_in(split, split->host, "%");
	struct spoke_span digits = { split->text + split->host.at, zone - split->host.at };
	struct spokei_machine machine;

	for (size_t at = split->host.at; at < zone; at++) {
		char byte = spokei_lower(split->text[at]);

		if (!is_digit(byte) && (byte < 'a' || byte > 'f') && strchr(":.", byte) == NULL)
			return refuse(split, at,
				      "between brackets stands an IPv6 address, as [::1]");
	}
	if (memchr(digits.data, ':', digits.len) == NULL || !spokei_machine_read(digits, &machine))
		return refuse(split, split->host.at,
			      "between brackets stands an IPv6 address, as [::1]");
	if (zone == end)
		return SPOKE_OK;
	if (end - zone < 4 || memcmp(split->text + zone, "%25", 3) != 0)
		return refuse(split, zone,
			      "a zone follows the address behind %25, as [fe80::1%25eth0]");
	for (size_t at = zone + 3; at < end; at++) {
		char byte = split->text[at];

		if (!is_letter(byte) && !is_digit(byte) && strchr("-._~", byte) == NULL)
			return refuse(split, at,
				      "a zone is made of letters, digits and - . _ ~ only");
	}
	return SPOKE_OK;
}

static bool is_scheme(const struct split *split, const char *name)
{
	if (split->scheme.len != strlen(name))
		return false;
	for (size_t i = 0; name[i]; i++)
		if (spokei_lower(split->text[i]) != name[i])
			return false;
	return true;
}

static int check_name(struct split *split)
{
	if (split->host.len == 0)
		return refuse(split, split->host.at,
			      "a host is missing; for all addresses write 0.0.0.0 or [::]");
	for (size_t at = split->host.at; at < end_of(split->host); at++) {
		char byte = split->text[at];

		if (!is_letter(byte) && !is_digit(byte) && strchr("-._", byte) == NULL)
			return refuse(split, at,
				      "a host is made of letters, digits and - . _ only");
	}
	/* A socket that was passed may have any name: fd://NAME. */
	if (!is_scheme(split, "fd") && spokei_machine_misspelt((struct spoke_span){
					       split->text + split->host.at, split->host.len }))
		return refuse(split, split->host.at,
			      "this is no IPv4 address; write one, e.g. 127.0.0.1");
	return SPOKE_OK;
}

static int read_port(struct split *split, struct slice port)
{
	int value = 0;

	if (port.len == 0)
		return refuse(split, port.at, "a port is missing after the colon");
	for (size_t at = port.at; at < end_of(port); at++) {
		if (split->text[at] == ':')
			return refuse(split, at,
				      "an IPv6 address stands in brackets, as [::1]:20880");
		if (!is_digit(split->text[at]))
			return refuse(split, at, "a port is a number, e.g. 20880");
		value = value * 10 + (split->text[at] - '0');
		if (value > PORT_MAX)
			return fail(split, SPOKE_ERANGE, port.at, "a port is at most 65535");
	}
	split->port = value;
	return SPOKE_OK;
}

/* Cuts ",host:port" off the end, as often as it stands there: registries have several addresses. */
static void split_more(struct split *split, struct slice *authority)
{
	size_t at = find_in(split, *authority, ",");
	struct slice first;

	if (at == end_of(*authority) ||
	    (!is_scheme(split, "static") && !is_scheme(split, "zookeeper")))
		return;
	first = cut_at(authority, at);
	split->more = *authority;
	*authority = first;
}

/* [user[:password]@]host[:port][,host:port]... */
static int split_authority(struct split *split, struct slice authority)
{
	int error = split_user(split, &authority);
	bool in_brackets = authority.len > 0 && split->text[authority.at] == '[';
	size_t end;
	size_t at;

	if (error)
		return error;
	split_more(split, &authority);
	end = end_of(authority);
	at = find_in(split, authority, in_brackets ? "]" : ":");
	if (in_brackets && at == end)
		return refuse(split, authority.at, "a closing bracket is missing");
	split->host = cut_at(&authority, at);
	if (in_brackets) {
		split->host.at++;
		split->host.len--;
		at = authority.at;
		if (at < end && split->text[at] != ':')
			return refuse(split, at, "behind the bracket comes a port or a path");
		(void)cut_at(&authority, at);
	}
	error = in_brackets ? check_ipv6(split) : check_name(split);
	if (error)
		return error;
	if (split->host.len > SPOKE_URL_HOST_MAX)
		return fail(split, SPOKE_ETOOLARGE, split->host.at, "a host has at most 255 bytes");
	return at < end ? read_port(split, authority) : SPOKE_OK;
}

/* The path of a socket: "/run/x.sock", or the same after an empty host. */
static int split_socket(struct split *split, struct slice path)
{
	if (path.len >= 3 && memcmp(split->text + path.at, "///", 3) == 0) {
		path.at += 2;
		path.len -= 2;
	}
	if (path.len == 0 || split->text[path.at] != '/')
		return refuse(split, path.at,
			      "a unix socket is named by its whole path, e.g. unix:/run/echo.sock");
	split->path = path;
	return SPOKE_OK;
}

/* Returns whether this is the URL of a file. Only those have no host. */
static bool is_file(const struct split *split, struct slice rest)
{
	const char *text = split->text + rest.at;

	return is_scheme(split, "file") && rest.len > 0 && text[0] == '/' &&
	       (rest.len < 2 || text[1] != '/' || rest.len < 3 || text[2] == '/');
}

/* The path of a file after an empty host, or without any host part. */
static int split_file(struct split *split, struct slice path)
{
	size_t slashes = path.len > 1 && split->text[path.at + 1] == '/' ? 3 : 1;

	if (path.len <= slashes)
		return refuse(split, path.at,
			      "a file is named by its whole path, e.g. file:///run/providers");
	split->path = (struct slice){ path.at + slashes, path.len - slashes };
	return SPOKE_OK;
}

static int split_parts(struct split *split, size_t len)
{
	struct slice rest = { 0, len };
	struct slice authority;
	struct slice before_query;
	int error = split_scheme(split, &rest);

	if (error)
		return error;
	before_query = cut_at(&rest, find_in(split, rest, "?"));
	split->query = rest;
	if (split->is_unix)
		return split_socket(split, before_query);
	if (is_file(split, before_query))
		return split_file(split, before_query);
	if (before_query.len < 2 || memcmp(split->text + before_query.at, "//", 2) != 0)
		return refuse(split, before_query.at,
			      "after the scheme come // and a host, e.g. dubbo://127.0.0.1:20880");
	before_query.at += 2;
	before_query.len -= 2;
	authority = cut_at(&before_query, find_in(split, before_query, "/"));
	split->path = before_query;
	return split_authority(split, authority);
}

/* Cuts the next parameter off; an empty one is skipped. Returns false if there is none left. */
static bool next_parameter(const struct split *split, struct slice *query, struct slice *ret)
{
	while (query->len > 0) {
		*ret = cut_at(query, find_in(split, *query, "&"));
		if (ret->len > 0)
			return true;
	}
	return false;
}

static int count_parameters(struct split *split)
{
	struct slice query = split->query;
	struct slice parameter;
	unsigned count = split->more.len > 0;

	while (next_parameter(split, &query, &parameter)) {
		if (split->text[parameter.at] == '=')
			return refuse(split, parameter.at,
				      "a key is missing before the equals sign");
		if (count++ == SPOKE_URL_PARAMETERS_MAX)
			return fail(split, SPOKE_ETOOLARGE, parameter.at,
				    "a URL has at most 256 parameters");
	}
	split->parameter_count = count;
	return SPOKE_OK;
}

/* Splits the text; the slices are zero before. Returns 0, ESYNTAX, ERANGE or ETOOLARGE. */
static int split_url(struct split *split, size_t len)
{
	int error;

	if (len > SPOKE_URL_MAX)
		return fail(split, SPOKE_ETOOLARGE, SPOKE_URL_MAX, "a URL has at most 65536 bytes");
	error = check_bytes(split, len);
	if (error == SPOKE_OK)
		error = split_parts(split, len);
	if (error == SPOKE_OK)
		error = count_parameters(split);
	return error;
}

/* --- strings */

/* The strings of a block that is being filled. */
struct reader {
	struct split split;
	char *strings; /* where the next string goes */
	char *end;     /* where the room ends */
};

/* Decodes a slice into a string of the block. */
static int read_string(struct reader *reader, struct slice slice, const char **ret_string)
{
	char *string = reader->strings;
	size_t len;

	SPOKE_ASSERT(slice.len < (size_t)(reader->end - string));
	switch (spokei_percent_decode(reader->split.text + slice.at, slice.len, string, &len)) {
	case SPOKEI_PERCENT_BAD:
		return refuse(&reader->split, slice.at + len,
			      "a percent sign comes before two hex digits; alone it is %25");
	case SPOKEI_PERCENT_NUL:
		return refuse(&reader->split, slice.at + len, "%00 cannot be part of a URL");
	case SPOKEI_PERCENT_FINE:
		break;
	}
	string[len] = '\0';
	reader->strings = string + len + 1;
	*ret_string = string;
	return SPOKE_OK;
}

/* Like read_string(), in lower case up to the zone of an address. */
static int read_lower(struct reader *reader, struct slice slice, const char **ret_string)
{
	char *string = reader->strings;
	int error = read_string(reader, slice, ret_string);

	if (error)
		return error;
	for (; *string != '\0' && *string != '%'; string++)
		*string = spokei_lower(*string);
	return SPOKE_OK;
}

static int read_path(struct reader *reader, const char **ret_path)
{
	size_t space = find_in(&reader->split, reader->split.path, " ");

	if (space < end_of(reader->split.path))
		return refuse(&reader->split, space, "in a path a space is written %20");
	return read_string(reader, reader->split.path, ret_path);
}

static int fail_twice(struct reader *reader, struct slice slice, const char *key)
{
	char quoted[SPOKE_URL_ERROR_MAX / 2];
	char sentence[SPOKE_URL_ERROR_MAX];

	(void)spokei_log_escape(quoted, sizeof(quoted), key, strlen(key));
	(void)snprintf(sentence, sizeof(sentence), "the parameter %s is given twice", quoted);
	return refuse(&reader->split, slice.at, sentence);
}

static int read_parameters(struct reader *reader, struct spoke_url_parameter *parameters)
{
	struct slice query = reader->split.query;
	struct slice value;
	unsigned count = 0;

	if (reader->split.more.len > 0) {
		int error = read_string(reader, reader->split.more, &parameters[count].value);

		if (error)
			return error;
		parameters[count++].key = "backup";
	}
	while (next_parameter(&reader->split, &query, &value)) {
		struct spoke_url_parameter *parameter = &parameters[count];
		struct slice key = cut_at(&value, find_in(&reader->split, value, "="));
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
		return refuse(&reader->split, reader->split.path.at,
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
		return fail(&reader->split, SPOKE_ENOMEM, 0, spoke_strerror(SPOKE_ENOMEM));
	reader->strings = (char *)url->memory + parameters_size;
	reader->end = (char *)url->memory + url->memory_size;
	url->parameters = url->memory;
	url->shm = reader->split.is_shm;
	url->port = reader->split.port;
	error = read_strings(reader, url);
	if (error == SPOKE_OK && spoke_url_print(url, SPOKE_URL_WHOLE, NULL, 0) > SPOKE_URL_MAX)
		error = fail(&reader->split, SPOKE_ETOOLARGE, len,
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
		return fail(&reader.split, SPOKE_EINVAL, 0, spoke_strerror(SPOKE_EINVAL));
	code = split_url(&reader.split, len);
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
