/* SPDX-License-Identifier: Apache-2.0 */
/* Prints which methods a service has, as its provider says. */
#include "examples/spoke/offered.h"

#include "examples/spoke/json.h"

#include <stdio.h>
#include <stdlib.h>

struct offered {
	const char *service;
	void (*then)(void *arg);
	void *arg;
};

static void came(void *arg, const struct spoke_result *result)
{
	struct offered offered = *(struct offered *)arg;

	free(arg);
	if (!result->error) {
		(void)fprintf(stderr, "methods of %s: ", offered.service);
		json_print(result->value, SPOKE_JSON_LINE, stderr);
		(void)fputc('\n', stderr);
	}
	offered.then(offered.arg);
}

bool offered_print(struct spoke_consumer *consumer, const char *service, void (*then)(void *arg),
		   void *arg)
{
	const struct spoke_method_options of = { .service = service };
	struct offered *offered = malloc(sizeof(*offered));
	struct spoke_method *method;

	if (!offered)
		return false;
	*offered = (struct offered){ service, then, arg };
	if (spoke_consumer_method(consumer, "$methods", &of, &method) == 0 &&
	    spoke_call(method, (struct spoke_span){ NULL, 0 }, NULL, came, offered, NULL) == 0)
		return true;
	free(offered);
	return false;
}
