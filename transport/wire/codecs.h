/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The codecs of one side: its own one first, then the built-in ones. Stateless; any thread.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_CODECS_H
#define SPOKEI_TRANSPORT_WIRE_CODECS_H

#include "transport/codec/codec.h"
#include "transport/wire/message.h"

/* Returns the codec with this id, or NULL. */
const struct spokei_codec *spokei_wire_codec(const struct spokei_wire_limits *limits, uint8_t id);

/* Returns the id of the codec of this side's calls and heartbeats. */
static inline uint8_t spokei_wire_codec_id(const struct spokei_wire_limits *limits)
{
	return limits->codec ? limits->codec->id : SPOKEI_CODEC_MSGPACK;
}

#endif
