/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The built-in codecs, by Dubbo's ids of serializations. Constant; any thread.
 */
#ifndef SPOKEI_TRANSPORT_CODEC_CATALOG_H
#define SPOKEI_TRANSPORT_CODEC_CATALOG_H

#include "transport/codec/codec.h"

/* Returns the codec with this id, or NULL. */
const struct spokei_codec *spokei_codec_find(uint8_t id);

#endif
