/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider for Neovim to call. demo.EchoService:
 *     echo      answers with its argument
 *     describe  the arguments' types, and how many bytes the first text has
 *     refuse    fails
 *     note      counts notifications
 *     large     a text of 1 MiB
 *     highest   2^64 - 1
 *     hold      7, a little later
 *     keep      is kept in provided->held, for the test to answer
 *     leave     the same, and the provider ends
 *     who       the service's name
 * and demo.Default, the default service, with echo and who.
 */
#ifndef TESTS_INTEROP_PROVIDED_H
#define TESTS_INTEROP_PROVIDED_H

#include <spoke/provider.h>

#define SERVICE "demo.EchoService"
#define DEFAULT_SERVICE "demo.Default"

struct provided {
	struct spoke_engine *engine;
	struct spoke_provider *provider; /* NULL: it has ended */
	unsigned notes;                  /* notifications served */
	char note[64];                   /* the last one's argument, printed */
	struct spoke_request *held;
	struct spoke_alarm release;
	unsigned abandoned;
};

/* Makes the provider on provided->engine, which listens nowhere yet. Returns 0 or an error. */
int provided_serve(struct provided *provided);

#endif
