/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The meaning of each error for the parts that decide by it: one row per error, so that a new one
 * does not compile without its row. Its name, number and sentence are in <spoke/error.h>.
 * Stateless; any thread.
 */
#ifndef SPOKEI_CORE_BASE_ERROR_H
#define SPOKEI_CORE_BASE_ERROR_H

#include "core/base/log.h"

#include <spoke/error.h>
#include <spoke/stats.h>

/* Means for another attempt that one has ended with the error. */
enum spokei_error_fate {
	SPOKEI_FATE_ANSWERED, /* it would end so everywhere */
	SPOKEI_FATE_SAFE,     /* the request did not run */
	SPOKEI_FATE_WRITTEN,  /* the request may have run if it was written */
};

/* Counts as this at the endpoint of the attempt that has ended with the error. */
enum spokei_error_blame {
	SPOKEI_BLAME_NONE,    /* nothing: the cause lies on this side */
	SPOKEI_BLAME_ANSWER,  /* an answer */
	SPOKEI_BLAME_REFUSAL, /* a failure, for which no endpoint is ejected */
	SPOKEI_BLAME_LOSS,    /* a failure; once for all attempts that end in one turn */
	SPOKEI_BLAME_FAILURE, /* a failure */
};

/* May be replaced by a value at the end of a call. */
enum spokei_error_replaced {
	SPOKEI_REPLACED_BY_NOTHING,  /* this side wanted it, or its holder has to stop */
	SPOKEI_REPLACED_BY_POLICY,   /* by a policy that excuses failures */
	SPOKEI_REPLACED_BY_FALLBACK, /* by the method's fallback, and by such a policy */
};

struct spokei_error {
	uint8_t dubbo_status; /* of a reply */
	uint16_t http_status; /* of a response */
	/* ... of a response whose handler has failed with the error as its code */
	uint16_t http_status_thrown;
	bool may_have_run; /* the handler, if a provider answers with the error */
	bool passes_later; /* a request that a filter refuses with it may pass later */
	uint8_t fate;      /* enum spokei_error_fate */
	uint8_t blame;     /* enum spokei_error_blame */
	uint8_t replaced;  /* enum spokei_error_replaced */
	uint8_t log_class; /* enum spokei_log_class: of events */
	/* The sentence names only the kind of fault; the texts of events say which one it is. */
	bool texts_say_it;
	uint8_t stat; /* enum spoke_stat: counts calls that end with it */
	uint8_t exit; /* enum spoke_exit: the status of a program that ends with it */
};

/* Returns the row of an error; that of an unknown error for numbers without one. */
const struct spokei_error *spokei_error_of(int error);

/* May a value replace the error at the end of a call? */
static inline bool spokei_error_is_replaced(int error)
{
	return spokei_error_of(error)->replaced != SPOKEI_REPLACED_BY_NOTHING;
}

#endif
