/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The exceptions in Dubbo's replies: a class, then a map of its fields. Stateless; any thread.
 *
 * An error without a class is an org.apache.dubbo.rpc.RpcException with `message` and `code` for
 * consumers of spoke. Other Dubbo consumers get a java.lang.RuntimeException whose message ends
 * with the code: version 3.2 throws a new RpcException in place of one that it receives, and the
 * code of the new one is 0.
 *
 * EFORBIDDEN is an RpcException for every consumer. Its codes are the ones that Dubbo has for that,
 * but a handler may use the same numbers. So consumers of spoke get the field `forbidden` as well.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_EXCEPTION_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_EXCEPTION_H

#include "transport/wire/put.h"

/* Returns the largest length of what put() writes. */
size_t spokei_dubbo_exception_max(const struct spokei_message *message);

/* Writes class and fields in the form that the caller of the message expects. `codec` of the
 * message is that of the whole reply. Returns the address of the next byte. */
unsigned char *spokei_dubbo_put_exception(unsigned char *at, const struct spokei_message *message);

#endif
