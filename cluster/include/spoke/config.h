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
 * A narrower scope overrides a wider one: call, then method, then service, then consumer or
 * provider. A consumer calls one service, so its URL and options belong to the scope of the
 * service. Within a scope the later source wins: default, provider's URL from the registry, file,
 * URL in the program, options. A file is accepted or refused as a whole, with a sentence for every
 * error.
 *
 * Consumers, providers and gateways receive a config by their option `config`. While one of them
 * exists, or a
 * signal is watched for the config, it belongs to that engine and its thread alone.
 * Free the config after them. If it is freed earlier, they ignore it when they next read their
 * settings.
 */
#ifndef SPOKE_CONFIG_H
#define SPOKE_CONFIG_H

#include <spoke/engine.h>
#include <spoke/value.h>

SPOKE_BEGIN_DECLS

struct spoke_config;

/* Called for each message about a file, in the order of the lines, with a sentence, e.g.
 * "spoke.conf:3: heartbeat = 5: a duration needs a unit; write 5ms or 5s". The sentence is borrowed
 * for the call.
 */
typedef void (*spoke_config_message_fn)(void *arg, const char *sentence);

/*
 * Reads a file. `env`: borrowed, NULL: the host's. `report` may be NULL; it is called for every
 * error before the function returns. Blocks while it reads. Returns 0, ESYNTAX (errors in the
 * file), ENOENT, ESYSTEM (not readable), ETOOLARGE (more than SPOKE_CONFIG_MAX bytes), ENOMEM or
 * EINVAL. Free it with spoke_config_free().
 */
SPOKE_API SPOKE_MUST_USE int spoke_config_load(const struct spoke_env *env, const char *path,
					       spoke_config_message_fn report, void *arg,
					       struct spoke_config **ret_config);

#define SPOKE_CONFIG_MAX 1048576u /* greatest size of a file, in bytes */

/* Like spoke_config_load(), for a text; `name` replaces the file name in sentences. Both are
 * borrowed for the call. */
SPOKE_API SPOKE_MUST_USE int spoke_config_parse(const struct spoke_env *env, const char *name,
						struct spoke_span text,
						spoke_config_message_fn report, void *arg,
						struct spoke_config **ret_config);

/* Frees a config; NULL is allowed. The thread that the config belongs to, also in `report`. */
SPOKE_API void spoke_config_free(struct spoke_config *config);

/*
 * Reads the file again, the files of tokens and keys that it or the options of its users name, and
 * their files of TLS; blocks meanwhile. If all are good, live settings take effect from the next
 * call, connection or heartbeat on. For each other setting that has changed since the config was
 * loaded, `report` is called with a sentence that a restart is needed. If anything is wrong,
 * nothing changes; errors in the file are reported, and the engine's newest event explains the
 * others.
 *
 * Returns like spoke_config_load(), EINVAL (a file that the file names, or values that do not fit
 * together), EUNSUPPORTED, ESTATE (the config was made from a text, `report` itself called the
 * function, or a signal has begun a reload) or EFORKED. `report` may free anything, the config too.
 * The engine's thread.
 */
SPOKE_API SPOKE_MUST_USE int spoke_config_reload(struct spoke_config *config,
						 spoke_config_message_fn report, void *arg);

/*
 * Does the same on every SIGHUP, as long as engine and config exist, but a thread of the pool
 * reads. Sentences become events and log lines, of which at most ten per second are logged. Returns
 * like spoke_signal_watch(), and ESTATE (the config was made from a text) or EINVAL (it belongs to
 * another engine).
 */
SPOKE_API SPOKE_MUST_USE int spoke_config_reload_on_signal(struct spoke_config *config,
							   struct spoke_engine *engine);

/* Copies the file's settings of the engine into those fields of `options` that are 0. The key
 * `spin` is ignored if `native` is set, so a file works with and without a loop of the user. */
SPOKE_API void spoke_config_engine(const struct spoke_config *config,
				   struct spoke_engine_options *options);

struct spoke_comet_options;

/* Copies the file's settings of gateways ([comet]) into those fields of `options` that are 0 or
 * NULL, e.g. to check them; the option `config` of a gateway does the same. Texts stay in the
 * config, until its next reload. The keys page, backend and ticket.life, which are for programs,
 * are not used. */
SPOKE_API void spoke_config_comet(const struct spoke_config *config,
				  struct spoke_comet_options *options);

/* Returns the text of a key as written in the file; NULL if the file does not set it. `section`:
 * e.g. "consumer" or "method.demo.EchoService.echo". Valid until the next reload. */
SPOKE_API const char *spoke_config_get(const struct spoke_config *config, const char *section,
				       const char *key);

/* Returns the name in heading `index`, from 0 on, of the sections of a kind, "service" or "method":
 * e.g. "demo.EchoService" of [service.demo.EchoService]. NULL: the file has no more of them. Valid
 * until the next reload. */
SPOKE_API const char *spoke_config_name(const struct spoke_config *config, const char *kind,
					size_t index);

/* One row of the table of keys. */
struct spoke_config_key {
	const char *name;     /* e.g. "retry.period"; this and the other texts are static */
	const char *kind;     /* "duration", "size", "count", "boolean", "name", "text", "list" */
	const char *sentence; /* description */
	char sections[96];    /* allowed sections, e.g. "consumer, service.NAME, method.NAME" */
	char preset[48];      /* default, e.g. "5s"; "": none */
	char range[192];      /* e.g. "10ms to 596h"; for names the list of them; "": none */
	bool live;            /* a reload changes it without a restart */
};

/* Copies row `index` of the table, from 0 on. Returns whether there is such a row. Any thread. */
SPOKE_API bool spoke_config_key(size_t index, struct spoke_config_key *ret_key);

SPOKE_END_DECLS

#endif
