/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message with a copy of everything it points to, for uses that outlive the frame: a request
 * answered later, a reply from another thread. Created on any thread, owned by one object.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_COPY_H
#define SPOKEI_TRANSPORT_WIRE_COPY_H

#include "transport/wire/message.h"

struct spokei_copy {
	struct spokei_message message; /* points into `bytes` */
	size_t size;                   /* bytes of this struct with `bytes` */
	unsigned char bytes[];
};

/* Copies a request or a reply; NULL: no memory. */
struct spokei_copy *spokei_copy_new(const struct spoke_env *env,
				    const struct spokei_message *message);

/* NULL is allowed. */
void spokei_copy_free(const struct spoke_env *env, struct spokei_copy *copy);

#endif
