/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the codec of an id among the side's own one and the built-in ones. */
#include "transport/wire/codecs.h"

#include "transport/codec/catalog.h"

const struct spokei_codec *spokei_wire_codec(const struct spokei_wire_limits *limits, uint8_t id)
{
	if (limits->codec && limits->codec->id == id)
		return limits->codec;
	return spokei_codec_find(id);
}

uint8_t spokei_wire_codec_id(const struct spokei_wire_limits *limits)
{
	return limits->codec ? limits->codec->id : SPOKEI_CODEC_MSGPACK;
}
