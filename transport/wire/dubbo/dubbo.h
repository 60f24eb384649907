/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dubbo's wire: a header of 16 bytes, and a body in one of several serializations, of which
 * msgpack (27) is built in. Constant; any thread.
 *
 * Which call it is: a Java provider looks it up by the attachments "path", "version" and "group".
 * Its decoder puts the service's name and version from their places before the arguments there
 * first, and what the caller attached over them. So it is read here; "interface" is not asked, for
 * Dubbo does not ask it. Version "0.0.0" is none. What is written has both in their places, and of
 * attachments, beside the caller's, only those that say something: group, timeout, generic.
 *
 * How long it may take: attachment "_TO" (Dubbo's countdown), else "timeout", as text or number.
 *
 * Errors of read(): SPOKE_EUNSUPPORTED for a serialization that is not built in, SPOKE_EBADREQUEST
 * and SPOKE_EBADREPLY for a body that has not the right values in the right places,
 * SPOKE_ETOOLARGE for names and attachments beyond a limit, and a skim's errors. Of a frame that
 * cut() would refuse: SPOKE_EPROTOCOL. A heartbeat is understood in every serialization.
 */
#ifndef SPOKEI_TRANSPORT_WIRE_DUBBO_DUBBO_H
#define SPOKEI_TRANSPORT_WIRE_DUBBO_DUBBO_H

#include "transport/wire/message.h"

extern const struct spokei_wire spokei_wire_dubbo;

#endif
