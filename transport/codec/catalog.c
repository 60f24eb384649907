/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The registration lines of the codecs. The table is constant; any thread may read it.
 */
#include "transport/codec/codec.h"

static const struct spokei_codec *const codecs[] = {
	&spokei_codec_msgpack,
	&spokei_codec_hessian2,
};

const struct spokei_codec *spokei_codec_find(uint8_t id)
{
	for (size_t i = 0; i < sizeof(codecs) / sizeof(codecs[0]); i++)
		if (codecs[i]->id == id)
			return codecs[i];
	return NULL;
}
