/* SPDX-License-Identifier: Apache-2.0 */
/* A virtual process with an authority that issues certificates, for tests of providers and of the
 * command. */
#ifndef TESTS_TRANSPORT_STREAM_ISSUER_H
#define TESTS_TRANSPORT_STREAM_ISSUER_H

#include "core/virtual/world.h"
#include "examples/spoke/issue.h"

extern struct issuer {
	struct spokei_world world;
	struct spokei_world_process process;
	struct issued ca;
	struct issued issued; /* the last certificate */
} issuer;

int issuer_set_up(void **state);
int issuer_tear_down(void **state);

/* Issues a certificate of a provider. Returns as issue_make(). */
int issuer_issue(const char *names, uint32_t days);

#endif
