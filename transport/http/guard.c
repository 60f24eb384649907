/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the Host, Origin, Sec-Fetch-Site and Authorization headers of a request. */
#include "transport/http/guard.h"

#include "core/text/option.h"
#include "core/text/range.h"
#include "core/text/secret.h"
#include "transport/http/request.h"

#include <stdio.h>

#define LETTERS 26u
/* Browsers send wildcard addresses to loopback, and no foreign name can be a wildcard. */
#define OWN_NAMES "localhost,0.0.0.0,[::]"

/* Removes the port, if there is one. "[::1]:80" keeps its brackets. */
static struct spoke_span host_of(struct spoke_span host)
{
	const char *text = host.data;
	size_t len = host.len;

	while (len > 0 && text[len - 1] >= '0' && text[len - 1] <= '9')
		len--;
	if (len > 0 && text[len - 1] == ':')
		host.len = len - 1;
	return host;
}

/* Reads an address in digits; only one of IPv6 stands in brackets. */
static bool read_machine(struct spoke_span host, struct spokei_machine *ret)
{
	bool bracketed = spokei_span_begins(host, "[") && spokei_span_ends(host, "]");

	if (bracketed) {
		host = spokei_span_after(host, 1);
		host.len--;
	}
	return host.len > 0 && (memchr(host.data, ':', host.len) != NULL) == bracketed &&
	       spokei_machine_read(host, ret);
}

/* Is it one of the comma-separated names, in either case? */
static bool is_named(struct spoke_span host, const char *names)
{
	struct spoke_span name;

	while (spokei_option_item(&names, &name)) {
		if (name.len > 0 && spokei_span_same_letters(host, name))
			return true;
	}
	return false;
}

bool spokei_guard_host(struct spoke_span host, const char *local, const char *names)
{
	struct spoke_span here = host_of(spokei_span_of(local));
	struct spokei_machine machine;
	struct spokei_machine own;

	if (strncmp(local, "unix:", 5) == 0)
		return true;
	if (host.data == NULL)
		return true; /* HTTP/1.0, which browsers do not use */
	host = host_of(host);
	/* Only a socket for both families prints addresses of IPv4 as [::ffff:1.2.3.4]. */
	if (read_machine(host, &machine) &&
	    (spokei_machine_is_here(&machine) ||
	     (read_machine(here, &own) && spokei_machine_same(&machine, &own))))
		return true;
	return (here.len > 0 && spokei_span_same(host, here)) || is_named(host, OWN_NAMES) ||
	       is_named(host, names);
}

bool spokei_guard_digits(struct spoke_span host, const char *names)
{
	struct spokei_machine machine;

	if (host.data == NULL)
		return true;
	host = host_of(host);
	return read_machine(host, &machine) || is_named(host, "localhost") || is_named(host, names);
}

struct spoke_span spokei_guard_origin_of(const char *origins, unsigned number)
{
	struct spoke_span origin = { NULL, 0 };

	while (number > 0 && spokei_option_item(&origins, &origin))
		number--;
	return number == 0 ? origin : (struct spoke_span){ NULL, 0 };
}

unsigned spokei_guard_listed(struct spoke_span origin, const char *origins)
{
	struct spoke_span one;

	for (unsigned number = 1; spokei_option_item(&origins, &one); number++) {
		if (one.len > 0 && spokei_span_same(origin, one))
			return number;
	}
	return 0;
}

/* Is it a scheme, "://", a host, and maybe a port, as a browser writes them? */
static bool is_origin(struct spoke_span origin)
{
	static const char scheme[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
	static const char allowed[] = "abcdefghijklmnopqrstuvwxyz0123456789-._[]:";
	const char *text = origin.data;
	size_t at = 0;

	while (at < origin.len && memchr(scheme, text[at], at ? sizeof(scheme) - 1 : LETTERS))
		at++;
	if (at == 0 || origin.len - at < 4 || memcmp(text + at, "://", 3) != 0)
		return false;
	for (at += 3; at < origin.len; at++) {
		if (memchr(allowed, text[at], sizeof(allowed) - 1) == NULL)
			return false;
	}
	return !spokei_span_ends(origin, ":") &&
	       !(spokei_span_begins(origin, "http://") && spokei_span_ends(origin, ":80")) &&
	       !(spokei_span_begins(origin, "https://") && spokei_span_ends(origin, ":443"));
}

/* Is it a host without a port? Only addresses of IPv6 have colons, in brackets. */
static bool is_name(struct spoke_span host)
{
	const char *text = host.data;
	struct spokei_machine machine;

	for (size_t i = 0; i < host.len; i++) {
		if (text[i] <= ' ' || text[i] > '~' || text[i] == '/' || text[i] == ':')
			return read_machine(host, &machine);
	}
	return true;
}

/* Writes a sentence about the first item that is not good; the item stands in its middle. */
static const char *check_list(const char *list, bool (*is_good)(struct spoke_span item),
			      const char *before, const char *after, char why[SPOKEI_GUARD_WHY])
{
	struct spoke_span item;

	while (spokei_option_item(&list, &item)) {
		if (item.len == 0 || is_good(item))
			continue;
		(void)snprintf(why, SPOKEI_GUARD_WHY, "%s\"%.*s\"%s", before,
			       item.len < 100 ? (int)item.len : 100, (const char *)item.data,
			       after);
		return why;
	}
	return NULL;
}

const char *spokei_guard_check_origins(const char *origins, char why[SPOKEI_GUARD_WHY])
{
	return check_list(origins, is_origin, "no page of one site has the origin ",
			  "; write e.g. https://shop.example or http://localhost:3000", why);
}

const char *spokei_guard_check_names(const char *names, char why[SPOKEI_GUARD_WHY])
{
	return check_list(names, is_name, "", " is no host without a port; write e.g. shop.example",
			  why);
}

bool spokei_guard_origin_at(struct spoke_span origin, const char *scheme, struct spoke_span host)
{
	return host.data != NULL && host.len > 0 && spokei_span_begins(origin, scheme) &&
	       spokei_span_same(spokei_span_after(origin, strlen(scheme)), host);
}

bool spokei_guard_origin(struct spoke_span origin, struct spoke_span host)
{
	return origin.data == NULL || spokei_guard_origin_at(origin, "http://", host);
}

bool spokei_guard_site(struct spoke_span site)
{
	return site.data == NULL || spokei_span_is(site, "same-origin") ||
	       spokei_span_is(site, "none");
}

bool spokei_guard_token(struct spoke_span authorization, const char *token)
{
	static const char scheme[] = "bearer ";
	const size_t len = sizeof(scheme) - 1;

	return authorization.data != NULL && authorization.len > len &&
	       spokei_span_is_any_case(spokei_span(authorization.data, len), scheme) &&
	       spokei_secret_is(spokei_span_after(authorization, len), token);
}
