/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings from a file, as spoke.conf(5) describes it:
 *
 *     [registry]
 *     url = file:///run/spoke/providers
 *
 *     [consumer]
 *     heartbeat    = 5s
 *     retry.period = 2s
 *
 *     [method.demo.EchoService.echo]
 *     timeout = 200ms
 *
 * What is said of something narrower counts more: of a call, its method, its service, all consumers
 * or providers. A consumer calls one service, so that its URL and its options speak of that
 * service. Of what is said of the same the later counts: the default, what a provider says of
 * itself in the registry, the file, the URL in the program, its options. A file is read whole or
 * refused whole, with a sentence for everything that is wrong.
 *
 * A config is given to consumers and providers by their option `config`. While one of them lives,
 * or a signal is watched for it, it belongs to that engine's thread, and to no other engine. It is
 * to be freed after them; freed before, nothing breaks, but what they settle anew from then on they
 * settle without it.
 */
#ifndef SPOKE_CONFIG_H
#define SPOKE_CONFIG_H

#include <spoke/engine.h>
#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_config;

/* Told of each line that is wrong, in their order, as "spoke.conf:3: heartbeat = 5: a duration
 * needs a unit; write 5ms or 5s". Borrowed for the call. */
typedef void (*spoke_config_changed_fn)(void *arg, const char *sentence);

/*
 * Reads a file. `env` NULL: the host's. `told` may be NULL. Returns 0; ESYNTAX, if anything in it
 * is wrong: all of it has been told; ENOENT, ESYSTEM (it cannot be read), ETOOLARGE (over
 * SPOKE_CONFIG_MAX) or ENOMEM, also told; or EINVAL. Free it with spoke_config_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_config_load(const struct spoke_env *env, const char *path,
					       spoke_config_changed_fn told, void *arg,
					       struct spoke_config **ret_config);

#define SPOKE_CONFIG_MAX 1048576u /* bytes of a file */

/* The same from a text; `name` stands for the file in sentences. */
SPOKE_API SPOKE_MUST_USE int spoke_config_parse(const struct spoke_env *env, const char *name,
						struct spoke_span text,
						spoke_config_changed_fn told, void *arg,
						struct spoke_config **ret_config);

/* NULL is fine. Anywhere on the thread it belongs to, also where something is told of it. */
SPOKE_API void spoke_config_free(struct spoke_config *config);

/*
 * Reads the file again. If all of it is right, what can change in what lives does so from the next
 * call, connection or heartbeat on; of what cannot and is not as it was when the config was loaded,
 * `told` is told that it counts when the process is started again. Else nothing changes, and the
 * return value and what is told are as by spoke_config_load(); or ESTATE (it is of a text, or being
 * read again by whom `told` is told), or EFORKED. `told` may free anything, the config too. The
 * engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_config_reload(struct spoke_config *config,
						 spoke_config_changed_fn told, void *arg);

/*
 * Reads it again on every SIGHUP from now on, for as long as the engine and the config live; what
 * there is to tell becomes events, and lines of the log, which has ten of a kind a second. Returns
 * as spoke_signal_watch(); or ESTATE (it is of a text) or EINVAL (it belongs to another engine).
 */
SPOKE_API SPOKE_MUST_USE int spoke_config_reload_on_signal(struct spoke_config *config,
							   struct spoke_engine *engine);

/* What the file says of the engine, into the fields of options that are 0; `spin` not when there is
 * a loop of yours (`native`), set before: whoever writes the file need not know. */
SPOKE_API void spoke_config_engine(const struct spoke_config *config,
				   struct spoke_engine_options *options);

/* What the file says, as it is written there: the text of a key, NULL if it is not said. `section`
 * as "consumer" or "method.demo.EchoService.echo". Good until the next reload. */
SPOKE_API const char *spoke_config_get(const struct spoke_config *config, const char *section,
				       const char *key);

/* One row of the table of keys. */
struct spoke_config_key {
	const char *name;     /* as "retry.period"; this and the other texts live for ever */
	const char *kind;     /* "duration", "size", "count", "boolean", "name", "text", "list" */
	const char *sentence; /* what it is for */
	char sections[96];    /* where it may stand, as "consumer, service.NAME, method.NAME" */
	char preset[48];      /* as "5s"; "" if there is none */
	char range[192];      /* as "10ms to 596h"; for names all of them; "" if there is none */
	bool live;            /* a reload changes it in what lives */
};

/* The row number `index` of the table, from 0 on. Returns whether there is one. */
SPOKE_API bool spoke_config_key(size_t index, struct spoke_config_key *ret_key);

SPOKE_END_DECLS

#endif
