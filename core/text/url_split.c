/* SPDX-License-Identifier: Apache-2.0 */
/* The grammar of URLs, read from left to right by cutting slices off the rest. */
#include "core/text/url_split.h"
#include "core/text/range.h"

#include <stdio.h>
#include <string.h>

#define PORT_MAX 65535

int spokei_url_fail(struct spokei_url_split *split, int code, size_t at, const char *sentence)
{
	split->error->at = at;
	(void)snprintf(split->error->text, sizeof(split->error->text), "%s", sentence);
	return code;
}

static int refuse(struct spokei_url_split *split, size_t at, const char *sentence)
{
	return spokei_url_fail(split, SPOKE_ESYNTAX, at, sentence);
}

static bool is_letter(char byte)
{
	return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

static bool is_digit(char byte)
{
	return byte >= '0' && byte <= '9';
}

size_t spokei_slice_find(const struct spokei_url_split *split, struct spokei_slice slice,
			 const char *bytes)
{
	size_t at = slice.at;

	while (at < spokei_slice_end(slice) && strchr(bytes, split->text[at]) == NULL)
		at++;
	return at;
}

struct spokei_slice spokei_slice_cut(struct spokei_slice *slice, size_t at)
{
	struct spokei_slice head = { slice->at, at - slice->at };
	size_t skipped = head.len < slice->len ? head.len + 1 : head.len;

	slice->at += skipped;
	slice->len -= skipped;
	return head;
}

static int check_bytes(struct spokei_url_split *split, size_t len)
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
static bool cut_name(const struct spokei_url_split *split, struct spokei_slice *scheme,
		     const char *name)
{
	size_t len = strlen(name);

	/* A bare name counts as if a "+" stood before it. */
	if (scheme->len == len - 1)
		len--;
	if (scheme->len < len)
		return false;
	for (size_t i = 1; i <= len; i++)
		if (spokei_to_lower(split->text[scheme->len - i]) != name[strlen(name) - i])
			return false;
	scheme->len -= len;
	return true;
}

/* Cuts the scheme off the rest, and "unix" or "+unix" off the scheme; or "shm". */
static int split_scheme(struct spokei_url_split *split, struct spokei_slice *rest)
{
	size_t at = spokei_slice_find(split, *rest, ":/?");
	struct spokei_slice *scheme = &split->scheme;

	if (at == spokei_slice_end(*rest) || split->text[at] != ':' ||
	    !is_letter(split->text[rest->at]))
		return refuse(split, rest->at,
			      "a URL begins with a scheme, e.g. dubbo://127.0.0.1:20880/demo.Echo");
	*scheme = spokei_slice_cut(rest, at);
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

static int split_user(struct spokei_url_split *split, struct spokei_slice *authority)
{
	size_t at = spokei_slice_find(split, *authority, "@");
	struct spokei_slice user;

	if (at == spokei_slice_end(*authority))
		return SPOKE_OK;
	user = spokei_slice_cut(authority, at);
	at = spokei_slice_find(split, *authority, "@");
	if (at < spokei_slice_end(*authority))
		return refuse(split, at,
			      "there is one @ already; in a user or a password write %40");
	at = spokei_slice_find(split, user, ":");
	split->has_user = true;
	split->has_password = at < spokei_slice_end(user);
	split->user = spokei_slice_cut(&user, at);
	split->password = user;
	return SPOKE_OK;
}

/* An IPv6 address with an optional zone. */
static int check_ipv6(struct spokei_url_split *split)
{
	size_t end = spokei_slice_end(split->host);
	size_t zone = spokei_slice_find(split, split->host, "%");
	struct spoke_span digits = { split->text + split->host.at, zone - split->host.at };
	struct spokei_machine machine;

	for (size_t at = split->host.at; at < zone; at++) {
		char byte = spokei_to_lower(split->text[at]);

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

static int check_name(struct spokei_url_split *split)
{
	if (split->host.len == 0)
		return refuse(split, split->host.at,
			      "a host is missing; for all addresses write 0.0.0.0 or [::]");
	for (size_t at = split->host.at; at < spokei_slice_end(split->host); at++) {
		char byte = split->text[at];

		if (!is_letter(byte) && !is_digit(byte) && strchr("-._", byte) == NULL)
			return refuse(split, at,
				      "a host is made of letters, digits and - . _ only");
	}
	return SPOKE_OK;
}

static int read_port(struct spokei_url_split *split, struct spokei_slice port)
{
	int value = 0;

	if (port.len == 0)
		return refuse(split, port.at, "a port is missing after the colon");
	for (size_t at = port.at; at < spokei_slice_end(port); at++) {
		if (split->text[at] == ':')
			return refuse(split, at,
				      "an IPv6 address stands in brackets, as [::1]:20880");
		if (!is_digit(split->text[at]))
			return refuse(split, at, "a port is a number, e.g. 20880");
		value = value * 10 + (split->text[at] - '0');
		if (value > PORT_MAX)
			return spokei_url_fail(split, SPOKE_ERANGE, port.at,
					       "a port is at most 65535");
	}
	split->port = value;
	return SPOKE_OK;
}

static bool is_scheme(const struct spokei_url_split *split, const char *name)
{
	if (split->scheme.len != strlen(name))
		return false;
	for (size_t i = 0; name[i]; i++)
		if (spokei_to_lower(split->text[i]) != name[i])
			return false;
	return true;
}

/* Cuts ",host:port" off the end, as often as it stands there: registries have several addresses. */
static void split_more(struct spokei_url_split *split, struct spokei_slice *authority)
{
	size_t at = spokei_slice_find(split, *authority, ",");
	struct spokei_slice first;

	if (at == spokei_slice_end(*authority) ||
	    (!is_scheme(split, "static") && !is_scheme(split, "zookeeper")))
		return;
	first = spokei_slice_cut(authority, at);
	split->more = *authority;
	*authority = first;
}

/* [user[:password]@]host[:port][,host:port]... */
static int split_authority(struct spokei_url_split *split, struct spokei_slice authority)
{
	int error = split_user(split, &authority);
	bool in_brackets = authority.len > 0 && split->text[authority.at] == '[';
	size_t end;
	size_t at;

	if (error)
		return error;
	split_more(split, &authority);
	end = spokei_slice_end(authority);
	at = spokei_slice_find(split, authority, in_brackets ? "]" : ":");
	if (in_brackets && at == end)
		return refuse(split, authority.at, "a closing bracket is missing");
	split->host = spokei_slice_cut(&authority, at);
	if (in_brackets) {
		split->host.at++;
		split->host.len--;
		at = authority.at;
		if (at < end && split->text[at] != ':')
			return refuse(split, at, "behind the bracket comes a port or a path");
		(void)spokei_slice_cut(&authority, at);
	}
	error = in_brackets ? check_ipv6(split) : check_name(split);
	if (error)
		return error;
	if (split->host.len > SPOKE_URL_HOST_MAX)
		return spokei_url_fail(split, SPOKE_ETOOLARGE, split->host.at,
				       "a host has at most 255 bytes");
	return at < end ? read_port(split, authority) : SPOKE_OK;
}

/* The path of a socket: "/run/x.sock", or the same after an empty host. */
static int split_socket(struct spokei_url_split *split, struct spokei_slice path)
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
static bool is_file(const struct spokei_url_split *split, struct spokei_slice rest)
{
	const char *text = split->text + rest.at;

	return is_scheme(split, "file") && rest.len > 0 && text[0] == '/' &&
	       (rest.len < 2 || text[1] != '/' || rest.len < 3 || text[2] == '/');
}

/* The path of a file after an empty host, or without any host part. */
static int split_file(struct spokei_url_split *split, struct spokei_slice path)
{
	size_t slashes = path.len > 1 && split->text[path.at + 1] == '/' ? 3 : 1;

	if (path.len <= slashes)
		return refuse(split, path.at,
			      "a file is named by its whole path, e.g. file:///run/providers");
	split->path = (struct spokei_slice){ path.at + slashes, path.len - slashes };
	return SPOKE_OK;
}

static int split_parts(struct spokei_url_split *split, size_t len)
{
	struct spokei_slice rest = { 0, len };
	struct spokei_slice authority;
	struct spokei_slice before_query;
	int error = split_scheme(split, &rest);

	if (error)
		return error;
	before_query = spokei_slice_cut(&rest, spokei_slice_find(split, rest, "?"));
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
	authority = spokei_slice_cut(&before_query, spokei_slice_find(split, before_query, "/"));
	split->path = before_query;
	return split_authority(split, authority);
}

bool spokei_url_next_parameter(const struct spokei_url_split *split, struct spokei_slice *query,
			       struct spokei_slice *ret)
{
	while (query->len > 0) {
		*ret = spokei_slice_cut(query, spokei_slice_find(split, *query, "&"));
		if (ret->len > 0)
			return true;
	}
	return false;
}

static int count_parameters(struct spokei_url_split *split)
{
	struct spokei_slice query = split->query;
	struct spokei_slice parameter;
	unsigned count = split->more.len > 0;

	while (spokei_url_next_parameter(split, &query, &parameter)) {
		if (split->text[parameter.at] == '=')
			return refuse(split, parameter.at,
				      "a key is missing before the equals sign");
		if (count++ == SPOKE_URL_PARAMETERS_MAX)
			return spokei_url_fail(split, SPOKE_ETOOLARGE, parameter.at,
					       "a URL has at most 256 parameters");
	}
	split->parameter_count = count;
	return SPOKE_OK;
}

int spokei_url_split(struct spokei_url_split *split, size_t len)
{
	int error;

	if (len > SPOKE_URL_MAX)
		return spokei_url_fail(split, SPOKE_ETOOLARGE, SPOKE_URL_MAX,
				       "a URL has at most 65536 bytes");
	error = check_bytes(split, len);
	if (error == SPOKE_OK)
		error = split_parts(split, len);
	if (error == SPOKE_OK)
		error = count_parameters(split);
	return error;
}
