/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a call is: of which method, with which options, and how it ended. Consumers call
 * (<spoke/consumer.h>), and providers call consumers that are connected (<spoke/provider.h>: push).
 */
#ifndef SPOKE_CALL_H
#define SPOKE_CALL_H

#include <spoke/balancer.h>
#include <spoke/policy.h>
#include <spoke/value.h>

#include <stdbool.h>

SPOKE_BEGIN_DECLS

/* A method to call; it belongs to the consumer or the provider that made it. */
struct spoke_method;

/* Zero-initialised, every default stands; all texts are copied. The fields are in the order of what
 * belongs together. */
/* NOLINTNEXTLINE(clang-analyzer-optin.performance.Padding) */
struct spoke_method_options {
	const char *service; /* NULL: of the consumer's URL; a provider has to say it */
	const char *version; /* NULL: of the consumer's URL, else none */
	const char *group;   /* NULL: of the consumer's URL, else none */
	/* JVM descriptors of the arguments, as "Ljava/lang/String;I"; NULL: derived from the
	 * values of each call. */
	const char *types;
	uint64_t timeout_ns; /* 0: the consumer's; of a provider's: 1 s */
	/* Called as Dubbo's "$invoke", which needs no class at a Java provider. `type_names`: Java
	 * names of the argument types, with commas between, as "java.lang.String,int"; NULL: none
	 * are sent. */
	bool generic;
	const char *type_names;
	/* From here on: of consumers' methods only. What is not said is the consumer's. */
	const struct spoke_policy *policy;
	const struct spoke_balancer *balancer;
	/* More attempts than the first; SPOKE_NONE: none. Up to 100. */
	uint32_t retries;
	/* It may be run more often than it is called: an attempt that may have been run is
	 * repeated. */
	bool idempotent;
	uint32_t actives;    /* calls of it under way at a time; beyond: ELIMIT. 0: no limit */
	uint32_t per_second; /* calls of it a second, on average and at once; beyond: ELIMIT */
	/* What a call that fails ends with in place of the error, unless its handler has answered
	 * with one: OK and this value, which is copied, and result->fallback. { 0 }: the error. */
	struct spoke_value fallback;
};

/* For options that are numbers, where 0 is the default: none. */
#define SPOKE_NONE UINT32_MAX

/* Names a call that is tried on after its caller was told: <spoke/ticket.h>. By value. */
struct spoke_ticket {
	uint64_t handle;
};

/* How a call ended; borrowed for the callback. */
struct spoke_result {
	int error;                      /* SPOKE_OK, or one of <spoke/error.h> */
	struct spoke_value value;       /* of OK: what the handler answered; nil for nothing */
	struct spoke_value attachments; /* of a reply: a map, or none */
	struct spoke_span error_text;   /* from the provider, for people; may be empty */
	struct spoke_span error_class;  /* of an exception of a Java provider; may be empty */
	int32_t error_code;             /* of EREMOTE: the handler's; else 0 */
	/* Had the request begun to be written, or could it not be taken back any more? If not, it
	 * was never run and never will be. */
	bool written;
	/* Of the last attempt: from its beginning until that, or until its end ... */
	uint64_t queued_ns;
	uint64_t waited_ns;         /* ... and from then until its end */
	uint32_t attempts;          /* that were begun: 1, unless the policy makes more; 0: none */
	struct spoke_ticket ticket; /* of EDEFERRED; else { 0 } */
	bool fallback;              /* OK, for the method has a fallback */
};

/* A sentence for a result, as "timeout: written after 0.2 ms, waited 499.8 ms". Returns the length
 * of the text; `size` with the NUL, longer ones are cut. */
SPOKE_API size_t spoke_result_print(const struct spoke_result *result, char *text, size_t size);

typedef void (*spoke_call_done_fn)(void *arg, const struct spoke_result *result);

/* Zero-initialised, every default stands. */
struct spoke_call_options {
	uint64_t timeout_ns; /* 0: the method's */
	/* A map with texts as keys, each once, borrowed; { 0 }: none. What time remains ("timeout",
	 * "_TO") spoke says itself. */
	struct spoke_value attachments;
	bool one_way; /* no answer is wanted; ends with OK once it is being written */
	const struct spoke_policy *policy; /* of a consumer's call; NULL: the method's */
	/* What consistenthash hashes, borrowed; { 0 }: the first argument. */
	struct spoke_span hash_key;
};

/* Names a call, by value; one that is over is noticed. { 0 } names none. */
struct spoke_call {
	uint64_t handle;
};

SPOKE_END_DECLS

#endif
