/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A stream for tests that does all that a stream may do and a socket does not. It needs three round
 * trips before it is open. It puts bytes into small frames and masks them, and holds some back in
 * both directions. After some frames it has to read the peer's consent before it may write more. It
 * declines lent memory, and its peer has a name. Both sides have to use it.
 */
#ifndef TESTS_TRANSPORT_STREAM_STRANGE_H
#define TESTS_TRANSPORT_STREAM_STRANGE_H

#include "transport/stream/stream.h"

#define STRANGE_NAME "strange peer"
#define STRANGE_ROUND_TRIPS 3u /* before it is open */

extern const struct spokei_stream_kind strange_stream;

#endif
