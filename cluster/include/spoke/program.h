/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A whole program in a few lines: an engine with a settings file, a log on stderr, and the usual
 * signals.
 *
 *     int main(void)
 *     {
 *             struct spoke_handler greeter = { .method = "greet", .handle = greet };
 *             struct spoke_program *program = spoke_program_new("greeter.conf");
 *
 *             spoke_program_serve(program, "dubbo://0.0.0.0:20880", "demo.Greeter", &greeter, 1);
 *             return spoke_program_run(program);
 *     }
 *
 * SIGTERM and SIGINT drain the program, SIGHUP reads the settings file again. A service manager is
 * told all of this, see <spoke/notify.h>. The first error is
 * kept and logged with its cause. From then on all functions do nothing and return NULL, and
 * spoke_program_run() returns 1, so a program need not check anything before.
 *
 * All functions: one thread, which is then the engine's.
 */
#ifndef SPOKE_PROGRAM_H
#define SPOKE_PROGRAM_H

#include <spoke/consumer.h>
#include <spoke/provider.h>

SPOKE_BEGIN_DECLS

struct spoke_program;

/* Options of a program. 0 or NULL in a field selects its default. */
struct spoke_program_options {
	const struct spoke_env *env; /* borrowed; NULL: the host's */
	/* Path of a settings file, see <spoke/config.h>; [engine] admin opens the page of
	 * <spoke/admin.h>. NULL: none */
	const char *config;
	const char *log;   /* level of the log; NULL: the variable SPOKE_LOG, else "info" */
	uint64_t drain_ns; /* time for running requests and calls after SIGTERM; 0: 10 s */
};

/* Makes a program, with a settings file (NULL: none) or other options. Returns NULL only without
 * memory; all functions accept NULL. It is freed by spoke_program_run(). */
SPOKE_API struct spoke_program *spoke_program_new(const char *config);
SPOKE_API struct spoke_program *spoke_program_new_with(const struct spoke_program_options *options);

/* Makes the provider of all services that follow, with options; its settings file is that of the
 * program. Returns NULL after an error. */
SPOKE_API struct spoke_provider *spoke_program_provider(
	struct spoke_program *program, const struct spoke_provider_options *options);

/* Makes a provider of a service that listens at a URL of spoke_provider_listen(), and logs the
 * address. If the file sets [provider] listen, one provider has all services, and listens there
 * instead. After spoke_program_provider() that provider has the service; `url` NULL adds no
 * address. `handlers` as in spoke_provider_add(). Returns the provider, which belongs to the
 * program's engine, or NULL. */
SPOKE_API struct spoke_provider *spoke_program_serve(struct spoke_program *program, const char *url,
						     const char *service,
						     const struct spoke_handler *handlers,
						     size_t count);

/* Makes a consumer, whose settings file is that of the program. Returns NULL after an error. */
SPOKE_API struct spoke_consumer *spoke_program_consumer(
	struct spoke_program *program, const struct spoke_consumer_options *options);

/* Makes a method to call; `options` may be NULL, and `consumer` after an error. Returns NULL after
 * an error. */
SPOKE_API struct spoke_method *spoke_program_method(struct spoke_program *program,
						    struct spoke_consumer *consumer,
						    const char *name,
						    const struct spoke_method_options *options);

/* Calls run(arg) every `period_ns`, first one period from now, until the program ends. */
SPOKE_API void spoke_program_every(struct spoke_program *program, uint64_t period_ns,
				   void (*run)(void *arg), void *arg);

/* Returns the engine, for everything else; NULL after an error. */
SPOKE_API struct spoke_engine *spoke_program_engine(struct spoke_program *program);

/* Returns the settings file, e.g. to give it to a gateway or to leases; NULL: none, or an error. */
SPOKE_API struct spoke_config *spoke_program_config(struct spoke_program *program);

/* Warns of each key and of each [service] and [method] of the file that nothing in the program has
 * used, and runs the program until a signal or spoke_engine_drain() ends it, and frees it with all
 * that is on its engine. Returns the exit status: 0, or 1 after an error. */
SPOKE_API SPOKE_MUST_USE int spoke_program_run(struct spoke_program *program);

SPOKE_END_DECLS

#endif
