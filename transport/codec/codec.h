/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codecs that are built in. Constant; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_CODEC_H
#define SPOKEI_TRANSPORT_CODEC_CODEC_H

#include "transport/wire/message.h"

#define SPOKEI_CODEC_HESSIAN2 2 /* known of, not built in */
#define SPOKEI_CODEC_MSGPACK 27

extern const struct spokei_codec spokei_codec_msgpack;

/* The codec with this id, or NULL. */
static inline const struct spokei_codec *spokei_codec_find(uint8_t id)
{
	return id == SPOKEI_CODEC_MSGPACK ? &spokei_codec_msgpack : NULL;
}

#endif
