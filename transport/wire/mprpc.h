/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MessagePack-RPC: a stream of msgpack arrays, without lengths, handshake or version.
 *
 *     request       [0, id, method, params]    id: 0 to 2^32 - 1
 *     reply         [1, id, error, result]     error: nil, or any object
 *     notification  [2, method, params]        the one-way request
 *
 * A frame ends where its array ends, which only the validator can find. The limits of values count
 * the whole frame, so an argument may be nested two levels less, a result one level less. See
 * transport/MSGPACK_RPC.md.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_MPRPC_H
#define SPOKEI_TRANSPORT_WIRE_MPRPC_H

#include "transport/wire/message.h"

/*
 * knows(): 0x93 and 0x94, and 0xdc and 0xdd, because an array may use more bytes for its length
 * than it needs.
 *
 * cut() is bounded by frame_max and by the limits of values. It reads each byte once; *ret_len of
 * NEXT_MORE includes the missing bytes of the content that has begun.
 *
 * read() takes a frame that cut() found. Array, type and id are the head of a frame:
 *
 * - Not an array, no type, a type other than 0, 1, 2, or no 32-bit id where one is required: the
 *   sender cannot be answered. cut() or read() returns SPOKE_EPROTOCOL and the stream is broken.
 * - A request or notification of another length, a method that is not a str, is empty or too long,
 *   or params that are not an array: SPOKE_EBADREQUEST.
 * - A reply of another length: SPOKE_EBADREPLY.
 *
 * read() splits the name of the method at its last dot into service and method; without a dot the
 * service is empty. Names are bytes: they may contain NUL and need not be UTF-8. An error of a
 * reply is SPOKE_EREMOTE. If it is a str or bin, that is the error_text; of an array, the first two
 * elements are searched for a text and a code (Neovim: [type, text]); anything else is dropped. The
 * result beside an error is ignored. Peers answer unreadable requests with id 0, so ids should
 * begin at 1.
 *
 * write() returns SPOKE_EUNSUPPORTED for an id above 2^32 - 1, for all kinds but requests and
 * replies, and for a method that is empty, ends in a dot, or contains a dot in addition to a
 * service; SPOKE_ETOOLARGE for names above name_max. The wire has no place for version, group,
 * types, timeout, attachments, status and error_code; they are dropped. An error is written as its
 * error_text, or as the sentence of its number. write() writes nothing that cut() and read() would
 * reject under the same limits.
 */
extern const struct spokei_wire spokei_wire_mprpc;

#endif
