/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A second codec, for tests. Each value is a length of four bytes and a text of that length. The
 * first character of the text is the type.
 *
 *     n t f          nil, true, false
 *     i-12           an integer in decimal digits
 *     g d            a float or a double: its bits in hexadecimal digits
 *     s b            a str or a bin: its bytes
 *     x-1:           an ext: its type, and its bytes after the colon
 *     a3 m2          an array or a map: the number of elements or pairs that follow
 *     e              the class of an exception in a reply
 */
#ifndef TESTS_TRANSPORT_CODEC_TEXTCODEC_H
#define TESTS_TRANSPORT_CODEC_TEXTCODEC_H

#include "transport/codec/codec.h"

extern const struct spokei_codec textcodec;

#endif
