/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A shop whose page shows the people who look at it now, and gets announcements of the seller.
 *
 *     comet_shop [page [listen [url [retry_max_ms]]]]
 *
 * Defaults: examples/comet/shop.html, 127.0.0.1:8080, tcp://127.0.0.1:20881, 15000. Open the page
 * in two browsers, and announce an offer:
 *
 *     spoke call tcp://127.0.0.1:20881 spoke.Comet.push_all '"offer"' '"Green tea: 3 EUR"'
 *
 * A real shop has its page served by a proxy, and knows its users by a cookie. This one believes
 * the names in the query, if they consist of letters and digits.
 */
#include <spoke/comet.h>
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MS UINT64_C(1000000)
#define DRAIN_NS (5000 * MS)
#define PAGE_MAX 65536u
#define SHOWN_MAX 100u /* names that the page shows */
#define NAME_MAX_LEN 16u

static struct spoke_comet *comet;

/* --- users */

static void authorize(void *arg, struct spoke_comet_entry entry,
		      const struct spoke_comet_request *request)
{
	static const char letters[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	char query[256] = "";
	const char *name;
	size_t len;

	(void)arg;
	if (request->query.len < sizeof(query) && request->query.len > 0)
		memcpy(query, request->query.data, request->query.len);
	name = strstr(query, "user=");
	name = name ? name + strlen("user=") : "";
	len = strspn(name, letters);
	if (len > 0 && len <= NAME_MAX_LEN && (name[len] == '\0' || name[len] == '&'))
		(void)spoke_comet_admit(entry, (struct spoke_span){ name, len });
	else
		(void)spoke_comet_refuse(entry, "a name consists of 1 to 16 letters and digits");
}

/* Pushes the list of all names to one user, or to all for an empty one. */
static void show(struct spoke_span user)
{
	struct spoke_span users[SHOWN_MAX];
	char list[SHOWN_MAX * (NAME_MAX_LEN + 3) + 3] = "[";
	size_t total = spoke_comet_users(comet, users, SHOWN_MAX);
	size_t len = 1;
	struct spoke_comet_message here = { .event = spoke_comet_text("here") };
	int error;

	for (size_t i = 0; i < total && i < SHOWN_MAX; i++)
		len += (size_t)snprintf(list + len, sizeof(list) - len, "%s\"%.*s\"", i ? "," : "",
					(int)users[i].len, (const char *)users[i].data);
	(void)snprintf(list + len, sizeof(list) - len, "]");
	here.data = spoke_comet_text(list);
	error = user.len ? spoke_comet_push(comet, user, &here, NULL)
			 : spoke_comet_push_all(comet, &here, NULL);
	if (error)
		(void)fprintf(stderr, "comet_shop: %s\n", spoke_strerror(error));
}

static void changed(void *arg, struct spoke_span user, enum spoke_comet_change change)
{
	(void)arg;
	(void)user;
	if (change != SPOKE_COMET_ENDED)
		show((struct spoke_span){ NULL, 0 });
}

/* A page asks for the list, when it is connected for the first time or has missed messages. */
static void asked(void *arg, struct spoke_span user, struct spoke_span text)
{
	(void)arg;
	(void)text;
	show(user);
}

/* --- the program */

static int open_shop(struct spoke_engine *engine, int argc, char **argv, char *page)
{
	struct spoke_comet_options options = {
		.listen = argc > 2 ? argv[2] : "127.0.0.1:8080",
		.authorize = authorize,
		.message = asked,
		.change = changed,
		.retry_max_ns = argc > 4 ? strtoul(argv[4], NULL, 10) * MS : 0,
		.page = page,
	};
	struct spoke_provider *provider;
	char address[128];
	int error;

	options.retry_min_ns = options.retry_max_ns / 4;
	error = spoke_comet_new(engine, &options, &comet);
	if (!error)
		error = spoke_provider_new(engine, NULL, &provider);
	if (!error)
		error = spoke_comet_serve(comet, provider);
	if (!error)
		error = spoke_provider_listen(provider,
					      argc > 3 ? argv[3] : "tcp://127.0.0.1:20881");
	if (error)
		return error;
	if (spoke_comet_address(comet, 0, address, sizeof(address)))
		printf("the shop is at http://%s/\n", address);
	if (spoke_provider_address(provider, 0, address, sizeof(address)))
		printf("spoke.Comet listens at %s\n", address);
	return fflush(stdout);
}

int main(int argc, char **argv)
{
	static char page[PAGE_MAX];
	const char *path = argc > 1 ? argv[1] : "examples/comet/shop.html";
	FILE *file = fopen(path, "r");
	struct spoke_engine *engine = NULL;
	int error;

	if (file == NULL || fread(page, 1, sizeof(page) - 1, file) == 0) {
		(void)fprintf(stderr, "comet_shop: %s cannot be read\n", path);
		return 1;
	}
	(void)fclose(file);
	error = spoke_engine_new(NULL, &engine);
	if (!error)
		error = open_shop(engine, argc, argv, page);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "comet_shop: %s\n",
			      engine && *spoke_engine_why(engine) ? spoke_engine_why(engine)
								  : spoke_strerror(error));
	spoke_engine_free(engine);
	return error != 0;
}
