/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A network in memory that implements struct spoke_net: listeners, connections, full duplex streams
 * with latency, bandwidth and bounded capacity, and network faults. It behaves like TCP on Linux:
 * data before an RST can be read, closing with unread data resets, an error is reported once. It
 * has no thread and no clock of its own; the same seed and the same calls give the same trace.
 *
 * Addresses are names: "mem:NAME", and every form that the real network parses, so that URLs in
 * tests look real. Descriptors are small numbers from 0 on, the lowest free one first. A call with
 * a descriptor that is not open, or belongs to another process, is a bug and stops the program.
 */
#ifndef SPOKEI_CORE_VIRTUAL_NET_H
#define SPOKEI_CORE_VIRTUAL_NET_H

#include <spoke/env.h>

#include <stdbool.h>

struct spokei_vnet;
struct spokei_vfiles;

/* A process on the network. The context of an environment that uses spokei_vnet_table begins with
 * this struct. */
struct spokei_vnet_user {
	struct spokei_vnet *net;
	struct spokei_vfiles *files; /* if spokei_vfiles_table is used too */
	unsigned fds_max;            /* limit of descriptors, beyond it -EMFILE; 0: no limit */
	unsigned fds;                /* open descriptors; a leak shows here */
	unsigned shares;             /* shared memory in use; the same */
	uint64_t changes; /* the readiness of its descriptors may have changed when this has */
	/* Bytes that are sent now leave at this time at the earliest: the clock of the process is
	 * ahead, because it was held up since its turn began. */
	uint64_t leaves_ns;
	/* Called when a file operation takes this long; NULL: all take no time. */
	void (*delay)(struct spokei_vnet_user *user, uint64_t ns);
	/* Users that stand for loops of one process share this: a descriptor moves to another loop
	 * as soon as that loop uses it. NULL: a process of its own. */
	const void *house;
	/* The address from which it connects, e.g. "10.0.0.7:0"; NULL: that of this machine. */
	const char *from;
	/* Its credentials on unix sockets; zero: root. */
	uint32_t uid;
	uint32_t gid;
	int32_t pid;
};

extern const struct spoke_net spokei_vnet_table;

/* One direction of a connection. All zero: immediate, whole, without faults. */
struct spokei_vnet_link {
	uint64_t latency_ns;
	uint64_t jitter_ns;        /* random extra latency, at most; the order is kept */
	uint64_t bytes_per_s;      /* 0: no limit */
	uint32_t capacity;         /* bytes in flight and not yet read; 0: 65,536 */
	uint32_t write_max;        /* a write takes a random 1 to this many bytes; 0: all */
	uint32_t read_max;         /* a read gives a random 1 to this many bytes; 0: all */
	uint32_t eagain_permille;  /* reads and writes that return -EAGAIN although they could
				      succeed; < 1000 */
	uint32_t reset_permille;   /* writes that reset the connection instead */
	uint32_t corrupt_permille; /* writes in which one bit is flipped */
	bool blackhole;            /* bytes and FINs wait until it is over, RSTs are lost */
};

enum spokei_vnet_act {
	SPOKEI_VNET_CONNECT, /* an attempt has begun; `name`: its destination */
	SPOKEI_VNET_ACCEPT,  /* the other end of a connection was accepted */
	SPOKEI_VNET_WRITE,   /* bytes were taken; one write may cause several */
	SPOKEI_VNET_ARRIVE,  /* `len` more bytes can be read */
	SPOKEI_VNET_READ,    /* bytes were read */
	SPOKEI_VNET_AGAIN,   /* a read or write that could succeed returned -EAGAIN */
	SPOKEI_VNET_SHUT,    /* the sending side was shut */
	SPOKEI_VNET_END,     /* the peer's FIN has arrived, or the connection is broken */
	SPOKEI_VNET_CLOSE,
};

/* An event at one end of a connection; borrowed for the call. */
struct spokei_vnet_news {
	enum spokei_vnet_act act;
	struct spokei_vnet_user *user; /* owner of the end; NULL: not accepted yet */
	int fd;                        /* -1: none yet */
	const char *name;              /* of CONNECT */
	const unsigned char *bytes;    /* of WRITE and READ */
	size_t len;
	void **note;      /* the observer's, of this end */
	void **peer_note; /* of the other end; NULL: none yet */
};

/* The last values of guard(), send_buffer() and listen_mode(); the network in memory does not act
 * on them. Accepted sockets have those of their listener. */
struct spokei_vnet_guard {
	unsigned calls;
	uint64_t unanswered_ns;
	uint64_t keepalive_ns;
	uint32_t send_buffer;
	uint32_t mode; /* of listen_mode(); 0: none */
};

struct spokei_vnet_options {
	uint64_t (*now)(void *arg); /* ns, monotonic */
	void *arg;
	uint64_t seed;
	struct spokei_vnet_link
		link; /* of connections, both directions, until spokei_vnet_set_all() */
};

/* The observer, which is called at once and must not call the network meanwhile; NULL: none. */
void spokei_vnet_observe(struct spokei_vnet *net,
			 void (*tell)(void *arg, const struct spokei_vnet_news *news), void *arg);

/* Makes a network; NULL without memory. */
struct spokei_vnet *spokei_vnet_new(const struct spokei_vnet_options *options);
void spokei_vnet_free(struct spokei_vnet *net);

/* Returns the readiness of a descriptor, of enum spoke_io; level-triggered. */
unsigned spokei_vnet_ready(struct spokei_vnet *net, int fd);

/* Returns a number that changes whenever spokei_vnet_ready() of any of the user's descriptors may
 * change. */
uint64_t spokei_vnet_changes(const struct spokei_vnet_user *user);

/* Returns when readiness may change next by itself; UINT64_MAX: never. */
uint64_t spokei_vnet_next(struct spokei_vnet *net);

/* Returns a running hash of all calls, their results and times. */
uint64_t spokei_vnet_trace(const struct spokei_vnet *net);

/* Keeps the bytes of reads out of the trace, but not their number: they may be encrypted. */
void spokei_vnet_veil(struct spokei_vnet *net);

/* Returns the direction in which a connected descriptor writes; it may be changed at any time. */
struct spokei_vnet_link *spokei_vnet_link(struct spokei_vnet *net, int fd);

/* Returns the guard values of a descriptor. */
const struct spokei_vnet_guard *spokei_vnet_guard(const struct spokei_vnet *net, int fd);

/* Makes a spare descriptor readable, or not readable. Returns whether it was readable. */
bool spokei_vnet_ring(struct spokei_vnet *net, int fd, bool ring);

/* Sets both directions of all connections, present and future. */
void spokei_vnet_set_all(struct spokei_vnet *net, const struct spokei_vnet_link *link);

enum spokei_vnet_route {
	SPOKEI_VNET_NORMAL,      /* to the listener there, else refused */
	SPOKEI_VNET_AT_ONCE,     /* the same, and connect() already returns 0 */
	SPOKEI_VNET_REFUSE,      /* refused, even if there is a listener */
	SPOKEI_VNET_SILENT,      /* no answer; -ETIMEDOUT after 127 s, as on Linux */
	SPOKEI_VNET_UNREACHABLE, /* -EHOSTUNREACH */
	SPOKEI_VNET_SELF,        /* leads back to the socket itself, as TCP can on one machine */
};

/* Sets where connections to an address lead from now on, including those in progress. */
void spokei_vnet_route(struct spokei_vnet *net, const char *address, enum spokei_vnet_route route);

/* The next `times` accepts that would succeed fail instead. With -ECONNABORTED the connection is
 * gone, else it stays in the backlog. */
void spokei_vnet_fail_accept(struct spokei_vnet *net, int fd, int error, unsigned times);

/* The same for the listener at an address. Returns whether there is one. */
bool spokei_vnet_fail_accepts_at(struct spokei_vnet *net, const char *address, int error,
				 unsigned times);

/* Gives a name its addresses, digits separated by spaces, for resolve(). "localhost" is known. */
void spokei_vnet_name(struct spokei_vnet *net, const char *host, const char *digits);

/* Resets the connection from within the network: both sides see it now. */
void spokei_vnet_reset(struct spokei_vnet *net, int fd);

/* Adds bytes from within the network to those written at a descriptor. Returns whether there was
 * room. */
bool spokei_vnet_inject(struct spokei_vnet *net, int fd, const void *bytes, size_t len);

/* Ends the process: everything it has open is closed. */
void spokei_vnet_kill(struct spokei_vnet_user *user);

#endif
