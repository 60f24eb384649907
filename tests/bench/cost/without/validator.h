/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Included before every other header: bytes are taken as valid values without a check. The search
 * for the end of a value stays where values are read one after another, as in handlers.
 */
#include "core/value/shape.h"
#include "tests/bench/cost/without/stands_for.h"
#include "transport/wire/message.h"
#include "transport/wire/skip.h" /* before it is replaced: it finds where values end */

STANDS_FOR(spokei_attachments_check);
STANDS_FOR(spokei_shape_len);
STANDS_FOR(spokei_shape_is_one);
STANDS_FOR(spokei_shape_is_scalar);
STANDS_FOR(spokei_shape_is_short);
STANDS_FOR(spokei_shape_is_told);

#define spokei_attachments_check(attachments, of_reply)                                            \
	((void)(attachments), (void)(of_reply), SPOKE_OK)
/* All remaining bytes are one value. */
#define spokei_shape_len(at, end) ((size_t)((end) - (at)))
#define spokei_shape_is_one(bytes, len) ((void)(bytes), (void)(len), true)
#define spokei_shape_is_short(bytes, len) ((void)(bytes), (void)(len), true)
#define spokei_shape_is_told(bytes, len) ((void)(bytes), (void)(len), true)
#define spokei_shape_is_scalar(bytes, len) ((void)(bytes), (void)(len), true)
