/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parses and prints socket addresses. Numbers are read strictly: forms that inet_aton() would
 * accept ("127.1", "0x7f.1") are not addresses here, so a text has one meaning everywhere.
 */
#define _GNU_SOURCE
#include "core/base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#define HOST_TEXT_SIZE (INET6_ADDRSTRLEN + IF_NAMESIZE + 1)
#define MAPPED "::ffff:"
#define UNIX_PREFIX "unix:"
#define UNIX_PREFIX_LEN (sizeof(UNIX_PREFIX) - 1)
#define UNIX_PATH_AT offsetof(struct sockaddr_un, sun_path)

_Static_assert(sizeof(struct sockaddr_un) <= sizeof(((struct spoke_address *)0)->bytes),
	       "any address fits");
_Static_assert(sizeof(struct sockaddr_in6) <= sizeof(((struct spoke_address *)0)->bytes),
	       "any address fits");

static const char ellipsis[] = "...";

static void set_address(struct spoke_address *address, const void *bytes, size_t len)
{
	*address = (struct spoke_address){ .len = (uint32_t)len };
	memcpy(address->bytes, bytes, len);
}

/* Reads a decimal number without sign or leading zeros, at most `max`. */
static int parse_number(const char *text, uint32_t max, uint32_t *ret_number)
{
	uint64_t number = 0;
	const char *digit = text;

	if (text[0] == '\0' || (text[0] == '0' && text[1] != '\0'))
		return -EINVAL;
	for (; *digit >= '0' && *digit <= '9' && number <= max; digit++)
		number = number * 10 + (uint64_t)(*digit - '0');
	if (*digit != '\0' || number > max)
		return -EINVAL;
	*ret_number = (uint32_t)number;
	return 0;
}

/* Reads the port after `colon`, in network order, and the host before it, ended by a NUL. */
static int split(const char *begin, const char *end, const char *colon, char *ret_host,
		 in_port_t *ret_port)
{
	size_t len = (size_t)(end - begin);
	uint32_t port;

	if (*colon != ':' || len == 0 || len >= HOST_TEXT_SIZE ||
	    parse_number(colon + 1, UINT16_MAX, &port) != 0)
		return -EINVAL;
	memcpy(ret_host, begin, len);
	ret_host[len] = '\0';
	*ret_port = htons((uint16_t)port);
	return 0;
}

static int parse_v4(const char *text, struct spoke_address *ret_address)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	const char *colon = strchr(text, ':');
	char host[HOST_TEXT_SIZE];

	if (colon == NULL || split(text, colon, colon, host, &at.sin_port) != 0 ||
	    inet_pton(AF_INET, host, &at.sin_addr) != 1)
		return -EINVAL;
	set_address(ret_address, &at, sizeof(at));
	return 0;
}

static int parse_v6(const char *text, struct spoke_address *ret_address)
{
	struct sockaddr_in6 at = { .sin6_family = AF_INET6 };
	const char *bracket = strchr(text, ']');
	char host[HOST_TEXT_SIZE];
	char *scope;

	if (bracket == NULL || split(text + 1, bracket, bracket + 1, host, &at.sin6_port) != 0)
		return -EINVAL;
	scope = strchr(host, '%');
	if (scope) {
		*scope++ = '\0';
		if (parse_number(scope, UINT32_MAX, &at.sin6_scope_id) != 0)
			at.sin6_scope_id = if_nametoindex(scope);
		if (at.sin6_scope_id == 0)
			return -EINVAL;
	}
	if (inet_pton(AF_INET6, host, &at.sin6_addr) != 1)
		return -EINVAL;
	set_address(ret_address, &at, sizeof(at));
	return 0;
}

static int parse_unix(const char *path, struct spoke_address *ret_address)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	size_t len = strlen(path);

	if (len == 0 || (path[0] == '@' && len == 1))
		return -EINVAL;
	if (len >= sizeof(at.sun_path))
		return -ENAMETOOLONG;
	memcpy(at.sun_path, path, len);
	if (path[0] == '@')
		at.sun_path[0] = '\0'; /* no NUL at the end: it would be part of the name */
	else
		len++;
	set_address(ret_address, &at, UNIX_PATH_AT + len);
	return 0;
}

int spokei_address_parse(const char *text, struct spoke_address *ret_address)
{
	if (strncmp(text, UNIX_PREFIX, UNIX_PREFIX_LEN) == 0)
		return parse_unix(text + UNIX_PREFIX_LEN, ret_address);
	if (text[0] == '[')
		return parse_v6(text, ret_address);
	return parse_v4(text, ret_address);
}

static void print_unix(const struct spoke_address *address, char *text, size_t size)
{
	char path[sizeof(((struct sockaddr_un *)0)->sun_path) + 1] = "";
	size_t len = address->len > UNIX_PATH_AT ? address->len - UNIX_PATH_AT : 0;

	if (len >= sizeof(path))
		len = sizeof(path) - 1;
	memcpy(path, address->bytes + UNIX_PATH_AT, len);
	if (len > 0 && path[0] == '\0') {
		for (size_t i = 0; i < len; i++) {
			if (path[i] == '\0')
				path[i] = '@';
		}
	}
	/* Paths differ at their end. */
	len = strlen(path);
	if (UNIX_PREFIX_LEN + len < size || size <= UNIX_PREFIX_LEN + sizeof(ellipsis))
		(void)snprintf(text, size, UNIX_PREFIX "%s", path);
	else
		(void)snprintf(text, size, UNIX_PREFIX "%s%s", ellipsis,
			       path + UNIX_PREFIX_LEN + len + sizeof(ellipsis) - size);
}

void spokei_address_print(const struct spoke_address *address, char *text, size_t size)
{
	char host[INET6_ADDRSTRLEN] = "";
	struct sockaddr_in6 v6;
	struct sockaddr_in v4;
	sa_family_t family = AF_UNSPEC;

	if (address->len >= sizeof(family))
		memcpy(&family, address->bytes + offsetof(struct sockaddr, sa_family),
		       sizeof(family));
	if (family == AF_UNIX) {
		print_unix(address, text, size);
	} else if (family == AF_INET && address->len >= sizeof(v4)) {
		memcpy(&v4, address->bytes, sizeof(v4));
		(void)inet_ntop(AF_INET, &v4.sin_addr, host, sizeof(host));
		(void)snprintf(text, size, "%s:%u", host, (unsigned)ntohs(v4.sin_port));
	} else if (family == AF_INET6 && address->len >= sizeof(v6)) {
		memcpy(&v6, address->bytes, sizeof(v6));
		(void)inet_ntop(AF_INET6, &v6.sin6_addr, host, sizeof(host));
		if (v6.sin6_scope_id != 0)
			(void)snprintf(text, size, "[%s%%%u]:%u", host, v6.sin6_scope_id,
				       (unsigned)ntohs(v6.sin6_port));
		else
			(void)snprintf(text, size, "[%s]:%u", host, (unsigned)ntohs(v6.sin6_port));
	} else {
		(void)snprintf(text, size, "?");
	}
}

void spokei_address_share(char *text)
{
	static const char name[] = "shm:";
	const char *path = text + strlen(UNIX_PREFIX);

	if (strncmp(text, UNIX_PREFIX, strlen(UNIX_PREFIX)) != 0)
		return;
	memmove(text + strlen(name), path, strlen(path) + 1);
	memcpy(text, name, strlen(name));
}

struct spoke_span spokei_address_host(const char *text)
{
	const char *host = text;
	const char *end = NULL;

	if (text[0] == '[') {
		host++;
		end = strchr(host, ']');
		if (strncmp(host, MAPPED, strlen(MAPPED)) == 0 && strchr(host, '.'))
			host += strlen(MAPPED);
	} else if (text[0] >= '0' && text[0] <= '9') {
		end = strrchr(host, ':');
	}
	return (struct spoke_span){ host, end ? (size_t)(end - host) : 0 };
}

const unsigned char *spokei_address_bytes(const struct spoke_address *address, size_t *ret_len)
{
	sa_family_t family = AF_UNSPEC;

	if (address->len >= sizeof(family))
		memcpy(&family, address->bytes + offsetof(struct sockaddr, sa_family),
		       sizeof(family));
	*ret_len = 0;
	if (family == AF_UNIX)
		return address->bytes;
	if (family == AF_INET && address->len == sizeof(struct sockaddr_in)) {
		*ret_len = sizeof(struct in_addr);
		return address->bytes + offsetof(struct sockaddr_in, sin_addr);
	}
	if (family == AF_INET6 && address->len == sizeof(struct sockaddr_in6)) {
		*ret_len = sizeof(struct in6_addr);
		return address->bytes + offsetof(struct sockaddr_in6, sin6_addr);
	}
	return NULL;
}
