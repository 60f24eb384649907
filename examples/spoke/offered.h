/* SPDX-License-Identifier: Apache-2.0 */
/* The methods that a provider offers, for a call of one that it does not have. */
#ifndef COMMAND_OFFERED_H
#define COMMAND_OFFERED_H

#include <spoke/consumer.h>

/* Asks for the methods of a service and prints them on stderr, then calls `then`. Returns false,
 * and does not call it, if the call cannot begin. */
bool offered_print(struct spoke_consumer *consumer, const char *service, void (*then)(void *arg),
		   void *arg);

#endif
