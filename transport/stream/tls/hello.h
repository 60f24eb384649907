/* SPDX-License-Identifier: Apache-2.0 */
/* Judges the first bytes of a peer before the library sees them: a peer that is slow or silent
 * costs what it has sent, and the memory of a handshake is spent only on a whole ClientHello. Pure.
 */
#ifndef SPOKEI_TRANSPORT_STREAM_TLS_HELLO_H
#define SPOKEI_TRANSPORT_STREAM_TLS_HELLO_H

#include <spoke/value.h>

#define SPOKEI_HELLO_MAX 16384u  /* bytes of a ClientHello */
#define SPOKEI_HELLO_RECORDS 16u /* that it may come in */
/* Bytes of the largest one, with the heads of its message and its records. */
#define SPOKEI_HELLO_BYTES (SPOKEI_HELLO_MAX + 4u + 5u * SPOKEI_HELLO_RECORDS)

enum spokei_hello {
	SPOKEI_HELLO_MORE,   /* the rest has not come yet */
	SPOKEI_HELLO_WHOLE,  /* a ClientHello is there */
	SPOKEI_HELLO_PLAIN,  /* the first byte is not of TLS */
	SPOKEI_HELLO_BROKEN, /* no ClientHello, or one over a limit */
};

enum spokei_hello spokei_hello_judge(struct spoke_span bytes);

#endif
