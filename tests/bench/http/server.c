/* SPDX-License-Identifier: Apache-2.0 */
/* Serves demo.EchoService at a free port of loopback, and prints the port. */
#include "tests/support/echo_handler.h"

#include <spoke/engine.h>
#include <spoke/provider.h>

#include <stdio.h>
#include <string.h>

int main(void)
{
	static const struct spoke_service_options service = { .name = "demo.EchoService" };
	static const struct spoke_handler handler = { .method = "echo", .handle = echo_handler };
	struct spoke_engine *engine;
	struct spoke_provider *provider;
	char text[64];

	if (spoke_engine_new(NULL, &engine) || spoke_provider_new(engine, NULL, &provider) ||
	    spoke_provider_add(provider, &service, &handler, 1) ||
	    spoke_provider_listen(provider, "dubbo://127.0.0.1:0") ||
	    spoke_provider_address(provider, 0, text, sizeof(text)) == 0) {
		(void)fprintf(stderr, "the provider does not listen\n");
		return 1;
	}
	printf("%s\n", strrchr(text, ':') + 1);
	(void)fflush(stdout);
	return spoke_engine_run(engine);
}
