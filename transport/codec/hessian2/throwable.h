/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes exceptions. In a reply, an exception is its class and a map of its fields, in which
 * Throwable's field "detailMessage" is called "message". Owned by one function call; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_HESSIAN2_THROWABLE_H
#define SPOKEI_TRANSPORT_CODEC_HESSIAN2_THROWABLE_H

#include "transport/codec/hessian2/writer.h"

/* Writes the next two values, the class and the map of the fields, as an exception. */
void spokei_hessian2_write_throwable(struct spokei_hessian2_writer *writer);

#endif
