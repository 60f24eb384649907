/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack-RPC: a stream of msgpack arrays, without lengths, handshake or version.
 *
 *     request       [0, id, method, params]    id: 0 to 2^32 - 1
 *     reply         [1, id, error, result]     error: nil, or any object
 *     notification  [2, method, params]        the one-way request
 *
 * A frame ends where its array does, which only skimming tells; the limits of values count the
 * whole frame, so an argument may be nested two levels less, a result one level less. See
 * transport/WIRE.md.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_MPRPC_H
#define SPOKEI_TRANSPORT_WIRE_MPRPC_H

#include "transport/wire/message.h"

/*
 * knows: 0x93, 0x94, and 0xdc and 0xdd, for an array may announce its length in more bytes than it
 * needs. cut is bounded by frame_max and by the limits of values; it looks at each byte once, and
 * *ret_len, when it wants more, grows by what the content that has begun lacks.
 *
 * read takes a frame that cut has found. Array, type and id are the head of a frame:
 *
 * - Not an array, no type, a type other than 0, 1, 2, or no id that fits into 32 bits where one has
 *   to be: nobody knows whom to answer. SPOKE_EPROTOCOL, of cut or of read; the stream is broken.
 * - A request or notification of another length, whose method is no str, empty or too long, or
 *   whose params are no array: SPOKE_EBADREQUEST.
 * - A reply of another length: SPOKE_EBADREPLY.
 *
 * The method's name is split at its last dot into service and method; without a dot the service is
 * empty. Names are bytes: they may contain NUL and need not be UTF-8. An error that is a str or bin
 * is the reply's error_text; of an array the first two elements are looked at for a text and a code
 * (Neovim: [type, text]); of anything else nothing is kept. The error is SPOKE_EREMOTE, and its
 * result is not looked at. Peers answer what they cannot parse with id 0, so ids should begin at 1.
 *
 * write says SPOKE_EUNSUPPORTED to an id above 2^32 - 1, to all kinds but requests and replies, and
 * to a method that is empty, ends in a dot, or has a dot beside a service; SPOKE_ETOOLARGE to names
 * over name_max. Version, group, types, timeout, attachments, status and error_code have no place
 * here and are left out. An error is written as its error_text, or as the sentence of its number.
 * Nothing is written that cut and read would refuse under the same limits.
 */
extern const struct spokei_wire spokei_wire_mprpc;

#endif
