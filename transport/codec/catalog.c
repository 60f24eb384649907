/* SPDX-License-Identifier: Apache-2.0 */
/* The registration lines of the codecs, by id. The table is constant; any thread may read it. */
#include "transport/codec/codec.h"

const struct spokei_codec *const spokei_codecs[SPOKEI_CODEC_IDS] = {
	[SPOKEI_CODEC_HESSIAN2] = &spokei_codec_hessian2,
	[SPOKEI_CODEC_MSGPACK] = &spokei_codec_msgpack,
};
