/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider that Neovim calls. demo.EchoService:
 *     echo      answers with its argument
 *     describe  answers with the types of the arguments and the length of the first text
 *     refuse    fails
 *     note      counts notifications
 *     large     answers with a text of 1 MiB
 *     highest   answers with 2^64 - 1
 *     hold      answers with 7, a little later
 *     keep      keeps the request in provided->held, for the test to answer
 *     leave     does the same, and the provider ends
 *     who       answers with the service's name
 * and demo.Default, the default service, with echo and who.
 */
#ifndef TESTS_INTEROP_PROVIDED_H
#define TESTS_INTEROP_PROVIDED_H

#include <spoke/provider.h>

#define SERVICE "demo.EchoService"
#define DEFAULT_SERVICE "demo.Default"

struct provided {
	struct spoke_engine *engine;
	struct spoke_provider *provider; /* NULL: the provider has ended */
	unsigned notes;                  /* notifications served */
	char note[64];                   /* argument of the last notification, printed */
	struct spoke_request *held;
	struct spoke_alarm release;
	unsigned abandoned;
};

/* Creates the provider on provided->engine; it does not listen yet. Returns 0 or an error. */
int provided_serve(struct provided *provided);

#endif
