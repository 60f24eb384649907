/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Dubbo wire: a header of 16 bytes, then a body in one of several serializations. Constant; any
 * thread.
 *
 * The call: a Java provider finds it by the attachments "path", "version" and "group". Its decoder
 * first sets path and version from the service and version before the arguments, then applies the
 * attachments of the caller over them. read() does the same. It ignores "interface", as Dubbo does.
 * Version "0.0.0" means none. write() puts service and version before the arguments. To the
 * attachments of the caller it adds only those with content: group, timeout, generic.
 *
 * The time: attachment "_TO" (Dubbo's countdown), else "timeout", as a text or a number.
 *
 * Errors of read(): SPOKE_EUNSUPPORTED for a serialization without a codec, SPOKE_EBADREQUEST and
 * SPOKE_EBADREPLY for a body with wrong values, SPOKE_ETOOLARGE for names and attachments above a
 * limit, and errors of the codec and of the validator. SPOKE_EPROTOCOL for a frame that cut() would
 * reject. Heartbeats are understood in every serialization.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_DUBBO_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_DUBBO_H

#include "transport/wire/message.h"

extern const struct spokei_wire spokei_wire_dubbo;

#endif
