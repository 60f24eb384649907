/* SPDX-License-Identifier: Apache-2.0 */
/* Parses addresses of the command line and resolves host names. */
#include "examples/spoke/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_MAX 256u
#define PORT_MAX 65535ul

/* Copies the address part of a URL. Returns false if it does not fit. */
static bool cut_url(const char *text, char *place)
{
	const char *scheme_end = strstr(text, "://");
	size_t len;

	if (scheme_end)
		text = scheme_end + 3;
	len = scheme_end ? strcspn(text, "/?#") : strlen(text);
	if (len == 0 || len >= TEXT_MAX)
		return false;
	memcpy(place, text, len);
	place[len] = '\0';
	return true;
}

static bool read_port(const char *text, uint16_t *ret)
{
	size_t digits = strspn(text, "0123456789");
	unsigned long port = digits && digits < 6 && !text[digits] ? strtoul(text, NULL, 10)
								   : PORT_MAX + 1;

	*ret = (uint16_t)port;
	return port <= PORT_MAX;
}

int place_parse(const struct spoke_env *env, const char *text, struct spoke_address *ret)
{
	char place[TEXT_MAX];
	char *colon;
	uint16_t port;
	int count;

	if (env->net->parse(env->ctx, text, ret) == 0)
		return 1;
	if (!cut_url(text, place))
		return 0;
	if (env->net->parse(env->ctx, place, ret) == 0)
		return 1;
	colon = strrchr(place, ':');
	if (!read_port(colon ? colon + 1 : place, &port))
		return 0;
	if (!colon || colon == place) {
		(void)snprintf(place, sizeof(place), "127.0.0.1:%u", (unsigned)port);
		return env->net->parse(env->ctx, place, ret) == 0;
	}
	*colon = '\0';
	count = env->net->resolve(env->ctx, place, port, ret, PLACE_MAX);
	return count > 0 ? count : 0;
}

const char *place_error(int error)
{
	return strerror(-error); /* NOLINT(concurrency-mt-unsafe): there is one thread */
}
