/* SPDX-License-Identifier: Apache-2.0 */
/* TLS for the stages of tests: the certificates of both sides, in files of a folder, and the
 * options of providers and consumers that use them. Both sides show a certificate. */
#ifndef TESTS_CLUSTER_SECURERIG_H
#define TESTS_CLUSTER_SECURERIG_H

#include "core/virtual/world.h"
#include "transport/stream/stream.h"

#include <spoke/tls.h>

#define SECURE_ROUND_TRIPS 1u /* of a consumer, before its stream is open */

/* Stands for TLS in a setting; no stream uses it. */
extern const struct spokei_stream_kind secure_stream;

struct secure {
	char paths[5][128];
	struct spoke_tls_options provider;
	struct spoke_tls_options consumer;
};

/* Writes the files, into the world or, if it is NULL, to the disk. Returns false: spoke is built
 * without TLS. */
bool secure_begin(struct secure *secure, struct spokei_world *world, const char *folder);

/* Removes the files from the disk. */
void secure_end(const struct secure *secure);

#endif
