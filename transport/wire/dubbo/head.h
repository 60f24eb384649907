/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dubbo's header: da bb, flags, status, id (8 bytes), length of the body (4 bytes), in big-endian
 * order. Combinations that are not listed here are sent by no peer and rejected. Constant; any
 * thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_HEAD_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_HEAD_H

#include "transport/wire/put.h"

#define SPOKEI_DUBBO_HEAD_LEN 16u
#define SPOKEI_DUBBO_MAGIC 0xdau /* the first byte ... */
#define SPOKEI_DUBBO_MAGIC_2 0xbbu
#define SPOKEI_DUBBO_REQUEST 0x80u
#define SPOKEI_DUBBO_TWO_WAY 0x40u
#define SPOKEI_DUBBO_EVENT 0x20u
#define SPOKEI_DUBBO_CODEC 0x1fu /* the bits with the id of the serialization */
#define SPOKEI_DUBBO_OK 20u

/* Limits of a map of attachments in both directions; above them: SPOKE_ETOOLARGE. */
#define SPOKEI_DUBBO_ATTACHMENTS_MAX 256u /* pairs */
#define SPOKEI_DUBBO_KEY_MAX 256u         /* bytes of a key */

/* The protocol version of spoke, and the text that means no version. */
#define SPOKEI_DUBBO_VERSION "2.0.2"
#define SPOKEI_DUBBO_NO_VERSION "0.0.0"

/* The generic call: a method by its name, with types and arguments as arrays. */
#define SPOKEI_DUBBO_GENERIC "$invoke"
#define SPOKEI_DUBBO_GENERIC_ASYNC "$invokeAsync"
#define SPOKEI_DUBBO_GENERIC_TYPES "Ljava/lang/String;[Ljava/lang/String;[Ljava/lang/Object;"

/* Returns whether a method of this name is the generic call. */
static inline bool spokei_dubbo_is_generic(struct spoke_span method)
{
	return spokei_span_is(method, SPOKEI_DUBBO_GENERIC) ||
	       spokei_span_is(method, SPOKEI_DUBBO_GENERIC_ASYNC);
}

/* The exception class that every Dubbo consumer can load. */
#define SPOKEI_DUBBO_EXCEPTION "org.apache.dubbo.rpc.RpcException"
/* The field that tells a refusal from an error of the handler with the same code. */
#define SPOKEI_DUBBO_FORBIDDEN "forbidden"

struct spokei_dubbo_head {
	uint8_t flags;
	uint8_t status;
	uint64_t id;
	size_t body_len;
};

/* Returns the fields of a header that was checked before. */
static inline struct spokei_dubbo_head spokei_dubbo_head_take(const unsigned char *at)
{
	return (struct spokei_dubbo_head){
		.flags = at[2],
		.status = at[3],
		.id = spokei_get_64(at + 4),
		.body_len = (size_t)spokei_get_32(at + 12),
	};
}

static inline void spokei_dubbo_head_write(struct spokei_dubbo_head head, unsigned char *at)
{
	at[0] = SPOKEI_DUBBO_MAGIC;
	at[1] = SPOKEI_DUBBO_MAGIC_2;
	at[2] = head.flags;
	at[3] = head.status;
	(void)spokei_put_32(spokei_put_64(at + 4, head.id), head.body_len);
}

/* Returns whether replies have this status. */
bool spokei_dubbo_status_known(uint8_t status);

#endif
