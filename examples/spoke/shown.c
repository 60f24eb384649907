/* SPDX-License-Identifier: Apache-2.0 */
/* Prepares texts of the command line for messages. */
#include "examples/spoke/shown.h"

#include <spoke/host.h>
#include <spoke/url.h>

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define HIDDEN "***"
#define ENDS "?#&;" /* parameters may follow, in a correct URL or in a wrong one */

/* Returns the part after "://"; the text itself if that could belong to a parameter or password. */
static const char *after_scheme(const char *place)
{
	const char *slashes = strstr(place, "://");

	return slashes && strcspn(place, ENDS "=@") > (size_t)(slashes - place) ? slashes + 3
										: place;
}

/* Shows a text that is not valid as a URL. */
static void show_part(const char *place, char *out, size_t size)
{
	const char *host = after_scheme(place);
	const char *at = strrchr(host, '@');
	int scheme_len = (int)(host - place);

	if (!at || at == host)
		(void)snprintf(out, size, "%.*s", (int)strcspn(place, ENDS), place);
	else if (strcspn(host, ENDS "=") < (size_t)(at - host)) /* the @ of a parameter, perhaps */
		(void)snprintf(out, size, "%.*s" HIDDEN, scheme_len, place);
	else /* everything before the @ could belong to a password */
		(void)snprintf(out, size, "%.*s" HIDDEN "@%.*s", scheme_len, place,
			       (int)strcspn(at + 1, ENDS), at + 1);
}

/* Can the path contain parameters by mistake, e.g. "x&token=..."? */
static bool is_odd(const struct spoke_url *url)
{
	const char *path = url->socket ? url->socket : url->path;

	return path[strcspn(path, ENDS)] != '\0';
}

struct shown shown_of(const char *place)
{
	struct shown shown;
	struct spoke_url url;

	if (!strpbrk(place, "@" ENDS)) {
		(void)snprintf(shown.text, sizeof(shown.text), "%s", place);
		return shown;
	}
	if (spoke_url_parse(spoke_host_env(), place, strlen(place), &url, NULL)) {
		show_part(place, shown.text, sizeof(shown.text));
		return shown;
	}
	if (is_odd(&url)) {
		show_part(place, shown.text, sizeof(shown.text));
	} else {
		struct spoke_url bare = url;

		bare.parameter_count = 0;
		(void)spoke_url_print(&bare, SPOKE_URL_DISPLAY, shown.text, sizeof(shown.text));
	}
	spoke_url_fini(&url);
	return shown;
}
