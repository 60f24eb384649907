/* SPDX-License-Identifier: Apache-2.0 */
/* Checks a settings file as a start would, without its addresses. */
#include "examples/spoke/startable.h"

#include "examples/spoke/settings.h"

#include <spoke/admin.h>
#include <spoke/comet.h>
#include <spoke/consumer.h>
#include <spoke/host.h>
#include <spoke/lease.h>
#include <spoke/provider.h>
#include <spoke/stats.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The registry of the file is not asked. */
static int open_nothing(struct spoke_engine *engine, const struct spoke_url *url,
			const struct spoke_registry_up *up, void *arg, void **ret_registry)
{
	(void)engine;
	(void)url;
	(void)up;
	*ret_registry = arg;
	return SPOKE_OK;
}

static void want_nothing(void *registry, struct spoke_registry_entry *entry)
{
	(void)registry;
	(void)entry;
}

static void close_nothing(void *registry)
{
	(void)registry;
}

static const struct spoke_registry no_registry = {
	.scheme = "none",
	.open = open_nothing,
	.want = want_nothing,
	.unwant = want_nothing,
	.close = close_nothing,
};

static int connect_nowhere(void *ctx, const struct spoke_address *to, int *ret_fd)
{
	(void)ctx;
	(void)to;
	(void)ret_fd;
	return -EACCES;
}

/* Takes no address of the file, and makes no file of a unix socket. */
static int listen_elsewhere(void *ctx, const struct spoke_address *at, int backlog, int *ret_fd)
{
	const struct spoke_net *net = spoke_host_env()->net;
	struct spoke_address loopback;
	const int error = net->parse(ctx, "127.0.0.1:0", &loopback);

	(void)at;
	return error ? error : net->listen(ctx, &loopback, backlog, ret_fd);
}

/* A journal of the file is neither locked, read nor written: a process may use it. Its folder has
 * to take the lock's file. */
static int open_elsewhere(int *ret_fd)
{
	const struct spoke_env *env = spoke_host_env();

	return env->files->open_log(env->ctx, "/dev/null", false, ret_fd);
}

static int lock_elsewhere(void *ctx, const char *path, int *ret_fd)
{
	int error = spoke_host_env()->files->append(ctx, path, NULL, 0);

	return error ? error : open_elsewhere(ret_fd);
}

static void unlock_elsewhere(void *ctx, int fd)
{
	spoke_host_env()->net->close(ctx, fd);
}

static int open_log_elsewhere(void *ctx, const char *path, bool is_new, int *ret_fd)
{
	(void)ctx;
	(void)path;
	(void)is_new;
	return open_elsewhere(ret_fd);
}

static int write_nothing(void *ctx, int fd, uint64_t at, const void *bytes, size_t len)
{
	(void)ctx;
	(void)fd;
	(void)at;
	(void)bytes;
	(void)len;
	return 0;
}

static int allocate_nothing(void *ctx, int fd, uint64_t size)
{
	(void)ctx;
	(void)fd;
	(void)size;
	return 0;
}

static int sync_nothing(void *ctx, int fd)
{
	(void)ctx;
	(void)fd;
	return 0;
}

static int sync_no_folder(void *ctx, const char *folder)
{
	(void)ctx;
	(void)folder;
	return 0;
}

static ssize_t list_nothing(void *ctx, const char *folder, char *names, size_t size)
{
	(void)ctx;
	(void)folder;
	(void)names;
	(void)size;
	return 0;
}

static int remove_nothing(void *ctx, const char *path)
{
	(void)ctx;
	(void)path;
	return -ENOENT;
}

static struct spoke_files files_elsewhere(const struct spoke_files *host)
{
	struct spoke_files files = *host;

	files.lock = lock_elsewhere;
	files.unlock = unlock_elsewhere;
	files.open_log = open_log_elsewhere;
	files.write_at = write_nothing;
	files.allocate = allocate_nothing;
	files.sync = sync_nothing;
	files.sync_folder = sync_no_folder;
	files.list = list_nothing;
	files.remove = remove_nothing;
	return files;
}

static void handle_nothing(struct spoke_request *request, void *arg)
{
	(void)request;
	(void)arg;
}

static void admit_nobody(void *arg, struct spoke_comet_entry entry,
			 const struct spoke_comet_request *request)
{
	(void)arg;
	(void)entry;
	(void)request;
}

/* A check of a file. */
struct check {
	const char *path;
	struct spoke_config *config;
	spoke_config_message_fn told;
	void *arg;
	struct spoke_engine *engine;
};

static const char *setting(const struct check *check, const char *section, const char *key)
{
	return spoke_config_get(check->config, section, key);
}

/* Reports why an object was not made. Returns whether it was. */
static bool is_made(const struct check *check, int error)
{
	const char *why = check->engine ? spoke_engine_why(check->engine) : spoke_strerror(error);
	const bool names_file = strncmp(why, check->path, strlen(check->path)) == 0;
	char sentence[SPOKE_EVENT_TEXT + 256];

	if (!error)
		return true;
	(void)snprintf(sentence, sizeof(sentence), "%s%s%s", names_file ? "" : check->path,
		       names_file ? "" : ": ", why);
	check->told(check->arg, sentence);
	return false;
}

/* Adds a service for each section of one: its tokens and callers are those of requests. */
static bool add_services(const struct check *check, struct spoke_provider *provider)
{
	static const struct spoke_handler handlers[] = { { .handle = handle_nothing } };
	bool fine = true;

	const char *name;

	for (size_t i = 0; (name = spoke_config_name(check->config, "service", i)) != NULL; i++) {
		const struct spoke_service_options service = { .name = name };

		fine &= is_made(check, spoke_provider_add(provider, &service, handlers, 1));
	}
	return fine;
}

static bool make_consumer(const struct check *check, const char *url,
			  const struct spoke_registry *registry)
{
	const struct spoke_consumer_options calling = {
		.url = url,
		.config = check->config,
		.registry_kind = registry,
	};
	struct spoke_consumer *consumer;

	return is_made(check, spoke_consumer_new(check->engine, &calling, &consumer));
}

/* Makes a gateway with its page and the consumer of its backend. */
static bool make_gateway(const struct check *check, const struct spoke_registry *registry)
{
	const char *backend = setting(check, "comet", "backend");
	struct spoke_comet_options pushing = { .authorize = admit_nobody, .config = check->config };
	struct spoke_comet *comet;
	char *page;
	bool fine = settings_page(check->path, check->config, check->told, check->arg, &page);

	pushing.page = page;
	fine &= is_made(check, spoke_comet_new(check->engine, &pushing, &comet));
	free(page);
	return (!backend || make_consumer(check, backend, registry)) && fine;
}

/* Makes the objects that programs make of the file, at none of its addresses. */
static bool make_objects(const struct check *check)
{
	const bool listed = setting(check, "registry", "url") != NULL;
	const struct spoke_registry *registry = listed ? &no_registry : NULL;
	const struct spoke_provider_options serving = { .config = check->config,
							.registry_kind = registry };
	const struct spoke_leases_options leasing = {
		.store = setting(check, "lease", "store") ? NULL : "redis://127.0.0.1",
		.config = check->config,
	};
	const struct spoke_admin_options showing = {
		.listen = setting(check, "engine", "admin"),
		.config = check->config,
	};
	struct spoke_provider *provider;
	struct spoke_leases *leases;
	struct spoke_admin *page;
	bool fine = is_made(check, spoke_provider_new(check->engine, &serving, &provider));

	fine = fine && add_services(check, provider);
	fine &= make_consumer(check, listed ? "consumer://any/any" : "dubbo://127.0.0.1:1/any",
			      registry);
	fine &= is_made(check, spoke_leases_new(check->engine, &leasing, &leases));
	fine &= make_gateway(check, registry);
	if (showing.listen)
		fine &= is_made(check, spoke_admin_new(check->engine, &showing, &page));
	return fine;
}

bool startable(const char *path, struct spoke_config *config, spoke_config_message_fn told,
	       void *arg)
{
	struct check check = { .path = path, .config = config, .told = told, .arg = arg };
	struct spoke_env env = *spoke_host_env();
	struct spoke_net net = *env.net;
	struct spoke_files files = files_elsewhere(env.files);
	const struct spoke_engine_options options = { .env = &env, .log = "off" };
	bool fine;

	net.connect = connect_nowhere;
	net.listen = listen_elsewhere;
	env.net = &net;
	env.files = &files;
	fine = is_made(&check, spoke_engine_new(&options, &check.engine)) && make_objects(&check);
	spoke_engine_free(check.engine);
	return fine;
}
