/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A message with a copy of all it points to, for those who need it longer than the frame it came
 * in: a request that is answered later, an answer that comes from another thread. Made on any
 * thread, owned by one object.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_COPY_H
#define SPOKEI_TRANSPORT_WIRE_COPY_H

#include "transport/wire/message.h"

struct spokei_copy {
	struct spokei_message message; /* points into `bytes` */
	size_t size;                   /* of this, with them */
	unsigned char bytes[];
};

/* Copies a request or an answer of this side's; NULL: no memory. */
struct spokei_copy *spokei_copy_new(const struct spoke_env *env,
				    const struct spokei_message *message);

/* NULL is fine. */
void spokei_copy_free(const struct spoke_env *env, struct spokei_copy *copy);

#endif
