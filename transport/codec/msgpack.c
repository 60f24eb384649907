/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Codec 27, msgpack. A body already consists of values, which the Dubbo wire reads and writes in
 * place. So this codec only has the bodies of events.
 */
#include "transport/codec/codec.h"

const struct spokei_codec spokei_codec_msgpack = {
	.id = SPOKEI_CODEC_MSGPACK,
	.name = "msgpack",
	.null = { "\xc0", 1 },
	.readonly = { "\xa1R", 2 },
	.writable = { "\xa1W", 2 },
	.cancel = { "\xa1\x43", 2 },
};
