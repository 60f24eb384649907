/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory that both ends of a stream share: a ring of bytes in each direction, and the words by
 * which a side that sleeps is woken. Pure: no system call. Each end is used by one thread.
 *
 * A ring has one writer and one reader. The writer owns `put`, the number of bytes that it has put
 * in so far, and the reader `taken`; both wrap. Each side counts privately and only publishes its
 * counter. It loads the other's once, checks that put - taken is at most the size of the ring, and
 * uses the copy: a hostile peer can give wrong bytes, and nothing else. Bytes are copied out before
 * anything looks at them.
 *
 * `asleep` of a side tells the peer which changes are to wake that side. No wake-up is lost. The
 * side that falls asleep (1) stores its bits, (2) has a full fence, (3) looks at the rings once
 * more. The other side (a) publishes a counter, (b) has a full fence, (c) loads the bits. Of the
 * two fences one is the first in the one order of all of them. If (2) is, then (c) sees the bits,
 * and the peer rings. If (b) is, then (3) sees the counter, and the side stays awake. The exchange
 * with 0 by which the bits are taken back gives them to one side only: so there is at most one bell
 * for each time that a side falls asleep.
 */
#ifndef SPOKEI_TRANSPORT_STREAM_SHM_RING_H
#define SPOKEI_TRANSPORT_STREAM_SHM_RING_H

#include "timer/base.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>
#include <sys/uio.h>

#define SPOKEI_RING_LINE 128 /* bytes: two cache lines, because processors fetch pairs */
#define SPOKEI_RING_AT 4096u /* where the rings begin in the memory */

/* Bits of `asleep`. */
#define SPOKEI_RING_BYTES 1u /* bytes were put into its ring, or the peer's end */
#define SPOKEI_RING_ROOM 2u  /* there is room in the ring that it writes */

/* The words of a ring. */
struct spokei_ring_words {
	_Alignas(SPOKEI_RING_LINE) _Atomic(uint32_t) put;   /* the writer's */
	_Atomic(uint32_t) ended;                            /* not 0: it puts no more */
	_Alignas(SPOKEI_RING_LINE) _Atomic(uint32_t) taken; /* the reader's */
};

struct spokei_ring_sleep {
	_Alignas(SPOKEI_RING_LINE) _Atomic(uint32_t) bits;
};

/* The beginning of the memory. Index 0: the ring that the connecting side writes, and the sleep of
 * that side; 1: the other. */
struct spokei_ring_front {
	struct spokei_ring_words rings[2];
	struct spokei_ring_sleep asleep[2];
};

_Static_assert(sizeof(struct spokei_ring_front) <= SPOKEI_RING_AT, "the rings lie behind it");
_Static_assert(sizeof(_Atomic(uint32_t)) == 4, "the layout is that of SHARED_MEMORY.md");

/* The end that writes, and the end that reads. */
struct spokei_ring_out {
	struct spokei_ring_words *words;
	unsigned char *bytes;
	uint32_t size; /* a power of two */
	uint32_t put;
	uint32_t taken; /* by the peer, as of the last look */
};

struct spokei_ring_in {
	struct spokei_ring_words *words;
	const unsigned char *bytes;
	uint32_t size;
	uint32_t taken;
};

/* A full fence. ThreadSanitizer knows none, so it sees a read and a write in one step, which is one
 * on the processors on which it runs. */
static inline void spokei_ring_fence(void)
{
#if defined(__SANITIZE_THREAD__)
	static atomic_uint order;

	(void)atomic_fetch_add(&order, 1);
#else
	atomic_thread_fence(memory_order_seq_cst);
#endif
}

/* Returns the bytes of memory with rings of this size. */
static inline size_t spokei_ring_memory(uint32_t size)
{
	return SPOKEI_RING_AT + 2 * (size_t)size;
}

/* Attaches both ends of one side. The memory is zero where nothing was put. */
static inline void spokei_ring_attach(void *memory, uint32_t size, bool accepted,
				      struct spokei_ring_in *in, struct spokei_ring_out *out)
{
	struct spokei_ring_front *front = memory;
	unsigned char *rings = (unsigned char *)memory + SPOKEI_RING_AT;
	size_t own = accepted ? 1 : 0;

	*out = (struct spokei_ring_out){ .words = &front->rings[own],
					 .bytes = rings + own * size,
					 .size = size };
	*in = (struct spokei_ring_in){ .words = &front->rings[1 - own],
				       .bytes = rings + (1 - own) * size,
				       .size = size };
}

/* Returns how many bytes can be read, or -EPROTO: the peer's counter is impossible. */
static inline ssize_t spokei_ring_len(const struct spokei_ring_in *in)
{
	uint32_t len = atomic_load_explicit(&in->words->put, memory_order_acquire) - in->taken;

	return SPOKEI_LIKELY(len <= in->size) ? (ssize_t)len : -EPROTO;
}

/* Returns whether the peer puts no more. Bytes that it has put are seen by the next call of
 * spokei_ring_len(). */
static inline bool spokei_ring_ended(const struct spokei_ring_in *in)
{
	return atomic_load_explicit(&in->words->ended, memory_order_acquire) != 0;
}

/* Copies at most `len` bytes out. Returns how many; 0: there are none; or -EPROTO. */
static inline ssize_t spokei_ring_read(struct spokei_ring_in *in, void *bytes, size_t len)
{
	ssize_t there = spokei_ring_len(in);
	uint32_t at = in->taken & (in->size - 1);
	size_t first;

	if (there <= 0)
		return there;
	if (len > (size_t)there)
		len = (size_t)there;
	first = len < in->size - at ? len : in->size - at;
	memcpy(bytes, in->bytes + at, first);
	if (first < len)
		memcpy((unsigned char *)bytes + first, in->bytes, len - first);
	in->taken += (uint32_t)len;
	atomic_store_explicit(&in->words->taken, in->taken, memory_order_release);
	return (ssize_t)len;
}

/* Returns how many bytes the peer has not taken yet, or -EPROTO. */
static inline ssize_t spokei_ring_unread(const struct spokei_ring_out *out)
{
	uint32_t len = out->put - atomic_load_explicit(&out->words->taken, memory_order_acquire);

	return SPOKEI_LIKELY(len <= out->size) ? (ssize_t)len : -EPROTO;
}

/* The same, for later writes too. */
static inline ssize_t spokei_ring_look(struct spokei_ring_out *out)
{
	ssize_t unread = spokei_ring_unread(out);

	if (SPOKEI_LIKELY(unread >= 0))
		out->taken = out->put - (uint32_t)unread;
	return unread;
}

/* Returns whether so much of the ring is free that it is worth waking its writer. */
static inline bool spokei_ring_roomy(size_t unread, uint32_t size)
{
	uint32_t worth = size / 4 < 65536 ? size / 4 : 65536;

	return unread <= size - worth;
}

static inline void spokei_ring_put(struct spokei_ring_out *out, const void *bytes, size_t len)
{
	uint32_t at = out->put & (out->size - 1);
	size_t first = len < out->size - at ? len : out->size - at;

	memcpy(out->bytes + at, bytes, first);
	if (first < len)
		memcpy(out->bytes, (const unsigned char *)bytes + first, len - first);
	out->put += (uint32_t)len;
}

/* Copies as much of the parts as there is room for. Returns how many bytes; -EAGAIN: the ring is
 * full; or -EPROTO: the peer's counter is impossible. */
static inline ssize_t spokei_ring_write(struct spokei_ring_out *out, const struct iovec *parts,
					int count)
{
	size_t left = 0;
	size_t room;
	size_t done = 0;

	/* The copy was checked when it was made. */
	SPOKE_ASSERT(out->put - out->taken <= out->size);
	for (int i = 0; i < count; i++)
		left += parts[i].iov_len;
	room = out->size - (out->put - out->taken);
	if (room < left) {
		ssize_t unread = spokei_ring_look(out);

		if (unread < 0)
			return unread;
		room = out->size - (size_t)unread;
	}
	if (room == 0 && left > 0)
		return -EAGAIN;
	for (int i = 0; i < count && room > 0; i++) {
		size_t len = parts[i].iov_len < room ? parts[i].iov_len : room;

		spokei_ring_put(out, parts[i].iov_base, len);
		room -= len;
		done += len;
	}
	atomic_store_explicit(&out->words->put, out->put, memory_order_release);
	return (ssize_t)done;
}

/* The writer puts no more. */
static inline void spokei_ring_end(struct spokei_ring_out *out)
{
	atomic_store_explicit(&out->words->ended, 1, memory_order_release);
}

/* Tells the peer which changes are to wake this side, which falls asleep now. The caller looks at
 * the rings afterwards: see above. */
static inline void spokei_ring_sleep(struct spokei_ring_sleep *own, uint32_t bits)
{
	atomic_store_explicit(&own->bits, bits, memory_order_relaxed);
	spokei_ring_fence();
}

/* This side is awake. */
static inline void spokei_ring_wake(struct spokei_ring_sleep *own)
{
	(void)atomic_exchange_explicit(&own->bits, 0, memory_order_acq_rel);
}

/* A counter was published. Returns whether the peer sleeps and is to be woken for this bit, by the
 * caller alone. */
static inline bool spokei_ring_wakes(struct spokei_ring_sleep *peer, uint32_t bit)
{
	spokei_ring_fence();
	if (SPOKEI_LIKELY(!(atomic_load_explicit(&peer->bits, memory_order_relaxed) & bit)))
		return false;
	return atomic_exchange_explicit(&peer->bits, 0, memory_order_acq_rel) != 0;
}

#endif
