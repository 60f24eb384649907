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

/* Shows a text that is not valid as a URL. */
static void show_part(const char *place, char *out, size_t size)
{
	const char *scheme_end = strstr(place, "://");
	const char *host = scheme_end ? scheme_end + 3 : place;
	const char *at = strrchr(place, '@');
	size_t scheme_len = (size_t)(host - place);

	/* Everything before the last @ could belong to a password. */
	if (at && at + 1 > host) {
		(void)snprintf(out, size, "%.*s" HIDDEN "@%.*s", (int)scheme_len, place,
			       (int)strcspn(at + 1, ENDS), at + 1);
		return;
	}
	(void)snprintf(out, size, "%.*s", (int)strcspn(place, ENDS), place);
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
