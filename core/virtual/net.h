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

struct memnet;
struct memfiles;

/* What the ctx of an environment begins with that uses memnet_table: a process on the network. */
struct memnet_user {
	struct memnet *net;
	struct memfiles *files; /* of who uses memfiles_table too */
	unsigned fds_max;       /* descriptors it may have; 0: any number; beyond it -EMFILE */
	unsigned fds;           /* it has; a leak shows here */
	uint64_t changes;       /* what its descriptors are ready for may differ when this does */
	/* The same of those who stand for loops of one process: what one has becomes another's as
	 * soon as that one uses it. NULL: a process of its own. */
	const void *house;
};

extern const struct spoke_net memnet_table;

/* One direction of a connection. 0 everywhere: at once, whole, without faults. */
struct memnet_link {
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

enum memnet_act {
	MEMNET_CONNECT, /* an attempt has begun; `name`: where to */
	MEMNET_ACCEPT,  /* the other end of a connection was taken */
	MEMNET_WRITE,   /* bytes were taken; of one write there may be several */
	MEMNET_ARRIVE,  /* `len` bytes can be read now */
	MEMNET_READ,    /* bytes were given */
	MEMNET_AGAIN,   /* a read or write that could be done was told -EAGAIN */
	MEMNET_SHUT,    /* it writes no more */
	MEMNET_END,     /* the peer's end has arrived, or the connection is broken */
	MEMNET_CLOSE,
};

/* Something that happens at one end of a connection; borrowed for the call. */
struct memnet_news {
	enum memnet_act act;
	struct memnet_user *user;   /* whose end it is; NULL: it is not accepted yet */
	int fd;                     /* -1: none yet */
	const char *name;           /* of CONNECT */
	const unsigned char *bytes; /* of WRITE and READ */
	size_t len;
	void **note;      /* the observer's, of this end */
	void **peer_note; /* of the other one; NULL: there is none yet */
};

/* What guard() was told last; the network in memory does not act on it. */
struct memnet_guard {
	unsigned calls;
	uint64_t unanswered_ns;
	uint64_t keepalive_ns;
};

struct memnet_options {
	uint64_t (*now)(void *arg); /* ns, never backwards */
	void *arg;
	uint64_t seed;
	struct memnet_link link; /* of connections, both directions, until memnet_set_all() */
};

/* An observer, who is told at once and must not call the network meanwhile; NULL: none. */
void memnet_observe(struct memnet *net, void (*tell)(void *arg, const struct memnet_news *news),
		    void *arg);

/* The network, or NULL without memory. */
struct memnet *memnet_new(const struct memnet_options *options);
void memnet_free(struct memnet *net);

/* What a descriptor is ready for now, of enum spoke_io; level-triggered. */
unsigned memnet_ready(struct memnet *net, int fd);

/* A number that is another one whenever memnet_ready() of any of the user's descriptors may be. */
uint64_t memnet_changes(const struct memnet_user *user);

/* When readiness may change next by itself, UINT64_MAX: never. */
uint64_t memnet_next(struct memnet *net);

/* Running hash of all calls, their results and times. */
uint64_t memnet_trace(const struct memnet *net);

/* The direction in which a connected descriptor writes: to be changed at any time. */
struct memnet_link *memnet_link(struct memnet *net, int fd);

/* How a descriptor is guarded. */
const struct memnet_guard *memnet_guard(const struct memnet *net, int fd);

/* Lets a spare descriptor be readable, or no longer. Returns whether it was. */
bool memnet_ring(struct memnet *net, int fd, bool ring);

/* Both directions of every connection there is, and of those to come. */
void memnet_set_all(struct memnet *net, const struct memnet_link *link);

enum memnet_route {
	MEMNET_NORMAL,      /* to who listens there, else refused */
	MEMNET_AT_ONCE,     /* the same, and connect() returns 0 already */
	MEMNET_REFUSE,      /* refused, whoever listens */
	MEMNET_SILENT,      /* no answer; -ETIMEDOUT after 127 s, as Linux gives up */
	MEMNET_UNREACHABLE, /* -EHOSTUNREACH */
	MEMNET_SELF,        /* leads back to the socket itself, as TCP can on one machine */
};

/* How connections to an address go from now on, those in progress included. */
void memnet_route(struct memnet *net, const char *address, enum memnet_route route);

/* The next `times` accepts that would give a connection fail instead; with -ECONNABORTED the
 * connection is gone, else it waits on. */
void memnet_fail_accept(struct memnet *net, int fd, int error, unsigned times);

/* The same for who listens at an address. Returns whether anybody does. */
bool memnet_fail_accepts_at(struct memnet *net, const char *address, int error, unsigned times);

/* Gives a name addresses, digits with spaces between, for resolve(). "localhost" is known. */
void memnet_name(struct memnet *net, const char *host, const char *digits);

/* Something in between resets the connection: both sides see it now. */
void memnet_reset(struct memnet *net, int fd);

/* Something in between adds bytes to what was written at a descriptor. Returns whether there was
 * room. */
bool memnet_inject(struct memnet *net, int fd, const void *bytes, size_t len);

/* The process ends: the system closes all it has open. */
void memnet_kill(struct memnet_user *user);

#endif
