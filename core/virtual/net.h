/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in memory that implements struct spoke_net: listeners, connections, full duplex streams
 * with latency, bandwidth and bounded capacity, and the faults that networks have. It behaves as
 * TCP of Linux does: data before an RST can be read, closing with unread data resets, an error is
 * reported once. No thread, no clock of its own; the same seed and the same calls give the same
 * trace.
 *
 * Addresses are names: "mem:NAME", and all that the real network parses, so that URLs in tests look
 * real. Descriptors are small numbers from 0 on, the lowest free one first. A call with a
 * descriptor that is not open, or is somebody else's, is a bug and stops the program.
 */
#ifndef SPOKEI_CORE_VIRTUAL_NET_H
#define SPOKEI_CORE_VIRTUAL_NET_H

#include <spoke/env.h>

#include <stdbool.h>

struct spokei_vnet;
struct spokei_vfiles;

/* What the ctx of an environment begins with that uses spokei_vnet_table: a process on the network.
 */
struct spokei_vnet_user {
	struct spokei_vnet *net;
	struct spokei_vfiles *files; /* of who uses spokei_vfiles_table too */
	unsigned fds_max;            /* descriptors it may have; 0: any number; beyond it -EMFILE */
	unsigned fds;                /* it has; a leak shows here */
	uint64_t changes; /* what its descriptors are ready for may differ when this does */
	/* The same of those who stand for loops of one process: what one has becomes another's as
	 * soon as that one uses it. NULL: a process of its own. */
	const void *house;
};

extern const struct spoke_net spokei_vnet_table;

/* One direction of a connection. 0 everywhere: at once, whole, without faults. */
struct spokei_vnet_link {
	uint64_t latency_ns;
	uint64_t jitter_ns;        /* up to so much more, by dice; the order is kept */
	uint64_t bytes_per_s;      /* 0: no limit */
	uint32_t capacity;         /* bytes under way and not yet read; 0: 65,536 */
	uint32_t write_max;        /* a write takes 1 to so many bytes, by dice; 0: all */
	uint32_t read_max;         /* a read gives 1 to so many, by dice; 0: all */
	uint32_t eagain_permille;  /* reads and writes that could be done and say -EAGAIN; < 1000 */
	uint32_t reset_permille;   /* writes that reset the connection instead */
	uint32_t corrupt_permille; /* writes of which one bit is flipped */
	bool blackhole;            /* bytes and ends wait until it is over, resets are lost */
};

enum spokei_vnet_act {
	SPOKEI_VNET_CONNECT, /* an attempt has begun; `name`: where to */
	SPOKEI_VNET_ACCEPT,  /* the other end of a connection was taken */
	SPOKEI_VNET_WRITE,   /* bytes were taken; of one write there may be several */
	SPOKEI_VNET_ARRIVE,  /* `len` bytes can be read now */
	SPOKEI_VNET_READ,    /* bytes were given */
	SPOKEI_VNET_AGAIN,   /* a read or write that could be done was told -EAGAIN */
	SPOKEI_VNET_SHUT,    /* it writes no more */
	SPOKEI_VNET_END,     /* the peer's end has arrived, or the connection is broken */
	SPOKEI_VNET_CLOSE,
};

/* Something that happens at one end of a connection; borrowed for the call. */
struct spokei_vnet_news {
	enum spokei_vnet_act act;
	struct spokei_vnet_user *user; /* whose end it is; NULL: it is not accepted yet */
	int fd;                        /* -1: none yet */
	const char *name;              /* of CONNECT */
	const unsigned char *bytes;    /* of WRITE and READ */
	size_t len;
	void **note;      /* the observer's, of this end */
	void **peer_note; /* of the other one; NULL: there is none yet */
};

/* What guard() was told last; the network in memory does not act on it. */
struct spokei_vnet_guard {
	unsigned calls;
	uint64_t unanswered_ns;
	uint64_t keepalive_ns;
};

struct spokei_vnet_options {
	uint64_t (*now)(void *arg); /* ns, never backwards */
	void *arg;
	uint64_t seed;
	struct spokei_vnet_link
		link; /* of connections, both directions, until spokei_vnet_set_all() */
};

/* An observer, who is told at once and must not call the network meanwhile; NULL: none. */
void spokei_vnet_observe(struct spokei_vnet *net,
			 void (*tell)(void *arg, const struct spokei_vnet_news *news), void *arg);

/* The network, or NULL without memory. */
struct spokei_vnet *spokei_vnet_new(const struct spokei_vnet_options *options);
void spokei_vnet_free(struct spokei_vnet *net);

/* What a descriptor is ready for now, of enum spoke_io; level-triggered. */
unsigned spokei_vnet_ready(struct spokei_vnet *net, int fd);

/* A number that is another one whenever spokei_vnet_ready() of any of the user's descriptors may
 * be. */
uint64_t spokei_vnet_changes(const struct spokei_vnet_user *user);

/* When readiness may change next by itself, UINT64_MAX: never. */
uint64_t spokei_vnet_next(struct spokei_vnet *net);

/* Running hash of all calls, their results and times. */
uint64_t spokei_vnet_trace(const struct spokei_vnet *net);

/* The direction in which a connected descriptor writes: to be changed at any time. */
struct spokei_vnet_link *spokei_vnet_link(struct spokei_vnet *net, int fd);

/* How a descriptor is guarded. */
const struct spokei_vnet_guard *spokei_vnet_guard(const struct spokei_vnet *net, int fd);

/* Lets a spare descriptor be readable, or no longer. Returns whether it was. */
bool spokei_vnet_ring(struct spokei_vnet *net, int fd, bool ring);

/* Both directions of every connection there is, and of those to come. */
void spokei_vnet_set_all(struct spokei_vnet *net, const struct spokei_vnet_link *link);

enum spokei_vnet_route {
	SPOKEI_VNET_NORMAL,      /* to who listens there, else refused */
	SPOKEI_VNET_AT_ONCE,     /* the same, and connect() returns 0 already */
	SPOKEI_VNET_REFUSE,      /* refused, whoever listens */
	SPOKEI_VNET_SILENT,      /* no answer; -ETIMEDOUT after 127 s, as Linux gives up */
	SPOKEI_VNET_UNREACHABLE, /* -EHOSTUNREACH */
	SPOKEI_VNET_SELF,        /* leads back to the socket itself, as TCP can on one machine */
};

/* How connections to an address go from now on, those in progress included. */
void spokei_vnet_route(struct spokei_vnet *net, const char *address, enum spokei_vnet_route route);

/* The next `times` accepts that would give a connection fail instead; with -ECONNABORTED the
 * connection is gone, else it waits on. */
void spokei_vnet_fail_accept(struct spokei_vnet *net, int fd, int error, unsigned times);

/* The same for who listens at an address. Returns whether anybody does. */
bool spokei_vnet_fail_accepts_at(struct spokei_vnet *net, const char *address, int error,
				 unsigned times);

/* Gives a name addresses, digits with spaces between, for resolve(). "localhost" is known. */
void spokei_vnet_name(struct spokei_vnet *net, const char *host, const char *digits);

/* Something in between resets the connection: both sides see it now. */
void spokei_vnet_reset(struct spokei_vnet *net, int fd);

/* Something in between adds bytes to what was written at a descriptor. Returns whether there was
 * room. */
bool spokei_vnet_inject(struct spokei_vnet *net, int fd, const void *bytes, size_t len);

/* The process ends: the system closes all it has open. */
void spokei_vnet_kill(struct spokei_vnet_user *user);

#endif
