/* SPDX-License-Identifier: Apache-2.0 */
/* The state of a stream over shared memory. */
#ifndef SPOKEI_TRANSPORT_STREAM_SHM_PARTS_H
#define SPOKEI_TRANSPORT_STREAM_SHM_PARTS_H

#include "core/engine/source.h"
#include "transport/stream/shm/ring.h"
#include "transport/stream/stream.h"

/* Reasons of failures: stream->fault. */
enum spokei_shm_fault {
	SPOKEI_SHM_FINE,
	SPOKEI_SHM_NO_HELLO,
	SPOKEI_SHM_NO_MEMORY_SENT,
	SPOKEI_SHM_BAD_MEMORY,
	SPOKEI_SHM_BAD_SIZE,
	SPOKEI_SHM_BAD_VERSION,
	SPOKEI_SHM_CANNOT_MAP,
	SPOKEI_SHM_CANNOT_MAKE,
	SPOKEI_SHM_NOT_AVAILABLE,
	SPOKEI_SHM_NO_ANSWER,
	SPOKEI_SHM_REFUSED,
	SPOKEI_SHM_BAD_COUNTER,
	SPOKEI_SHM_FAULTS,
};

struct spokei_shm_link {
	struct spokei_stream *stream;
	struct spokei_source source; /* awake while the engine looks at the rings */
	struct spokei_ring_in in;
	struct spokei_ring_out out;
	struct spokei_ring_sleep *own;
	struct spokei_ring_sleep *peer;
	uint64_t passed; /* bytes put into the ring */
	int end;         /* the errno with which the socket has ended; 0: not, or as it should */
	size_t low;      /* to write, the connection waits until so few bytes are unread */
	uint8_t wants;   /* events for which the connection waits, of enum spoke_io */
	bool open;
	bool slept;  /* the peer may have been asked to ring */
	bool quiet;  /* the descriptor has told nothing: no bell is looked for */
	bool owes;   /* a bell, or the answer to the hello, that the socket did not take yet */
	bool gone;   /* the socket has ended: no process reads the other ring any more */
	bool broken; /* the peer's counter was impossible */
	bool told;   /* read() has given the end */
	struct spoke_shared shared;
};

#endif
