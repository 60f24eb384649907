/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The inside of the network in memory: sockets, and what is under way between them as events in the
 * order of their time. memcalls.c and memfaults.c stand on this.
 *
 * A socket lives until its descriptor is closed, its peer's too, and nothing is under way to
 * either.
 */
#ifndef SPOKEI_CORE_VIRTUAL_NET_WIRE_H
#define SPOKEI_CORE_VIRTUAL_NET_WIRE_H

#include "core/virtual/net.h"
#include "core/virtual/net_name.h"

#define MEMWIRE_FDS_MAX 65536

enum memwire_kind {
	MEMWIRE_SPARE,
	MEMWIRE_LISTENER,
	MEMWIRE_CONNECTING,
	MEMWIRE_STREAM, /* also when it could not be connected: reset, with an error */
};

enum memwire_event_kind {
	MEMWIRE_SYN,
	MEMWIRE_ANSWER, /* to a SYN: connected, or `value` is the error */
	MEMWIRE_DATA,   /* `value` bytes */
	MEMWIRE_FIN,
	MEMWIRE_RST,
};

struct memwire_socket {
	struct memwire_socket *next; /* of all */
	struct memwire_socket *prev;
	struct memnet_user *user;
	enum memwire_kind kind;
	int fd;          /* -1: none yet, or no more */
	bool gone;       /* closed */
	unsigned coming; /* events that lead here */
	int error;       /* to be reported, once */
	bool reset;      /* the connection is no more */
	bool shut;       /* does not write any more */
	bool ended;      /* the peer's end has arrived */
	bool held_end;   /* it waits in a blackhole */
	unsigned tries;  /* SYNs sent */
	struct memwire_socket *peer;
	struct memnet_link out; /* the direction in which it writes */
	uint64_t line_free_ns;  /* when bandwidth allows the next byte out */
	uint64_t last_ns;       /* when what was sent last arrives */
	unsigned char *bytes;   /* what comes in: a ring */
	size_t size;
	size_t head;
	size_t len;                   /* all that was sent and not read */
	size_t arrived;               /* of it */
	size_t held;                  /* came to a blackhole */
	struct memwire_socket *queue; /* a listener's, oldest first; links of queued ones */
	unsigned queued;
	unsigned backlog;
	int accept_error;
	unsigned accept_errors;
	void *note; /* the observer's */
	struct memnet_guard guard;
	bool rung;   /* a spare one that can be read */
	bool shared; /* others may listen at the same place */
	char local[MEMNAME_SIZE];
	char remote[MEMNAME_SIZE];
};

struct memwire_event {
	uint64_t at_ns;
	uint64_t order;
	struct memwire_socket *to;
	enum memwire_event_kind kind;
	uint32_t value;
};

struct memwire_route {
	struct memwire_route *next;
	enum memnet_route route;
	char name[MEMNAME_SIZE];
};

struct memwire_host {
	struct memwire_host *next;
	char name[MEMNAME_SIZE];
	char digits[MEMNAME_SIZE];
};

struct memnet {
	struct memnet_options options;
	uint64_t now_ns;
	uint64_t dice;
	uint64_t trace;
	uint64_t order;               /* of the next event */
	struct memwire_event *events; /* a heap */
	size_t events_len;
	size_t events_size;
	struct memwire_socket all;                               /* head of the list */
	struct memwire_socket *unused;                           /* to be freed, linked by `next` */
	void (*tell)(void *arg, const struct memnet_news *news); /* the observer, or NULL */
	void *tell_arg;
	struct memwire_route *routes;
	struct memwire_host *hosts;
	unsigned holding; /* sockets with something held */
	bool linked;      /* somebody may have changed a link since they were looked at */
	uint64_t changes; /* of links, which concern everybody */
	uint16_t port;    /* given out last; 0: none yet */
	struct memwire_socket *fds[MEMWIRE_FDS_MAX];
};

/* Reads the clock and lets everything happen that is due. */
void memwire_settle(struct memnet *net);

/* Something is to happen at that time; takes out what happens next, of what there is. */
void memwire_put_event(struct memnet *net, struct memwire_socket *to, enum memwire_event_kind kind,
		       uint32_t value, uint64_t at_ns);
struct memwire_event memwire_take_event(struct memnet *net);

/* What a socket is ready for may have changed. */
static inline void memwire_touch(const struct memwire_socket *socket)
{
	if (socket && socket->user)
		socket->user->changes++;
}

/* Frees what was closed and is needed no more; done by every settle. */
void memwire_free_unused(struct memnet *net);

uint64_t memwire_dice(struct memnet *net);
bool memwire_chance(struct memnet *net, uint32_t permille);

/* The socket of a descriptor, which is open. */
struct memwire_socket *memwire_socket_of(const struct memnet *net, int fd);

struct memwire_socket *memwire_open(struct memnet *net, enum memwire_kind kind);

/* Closes a socket as the system does, and frees it when nothing needs it any more. */
void memwire_close(struct memnet *net, struct memwire_socket *socket);

/* Who listens at an address, or NULL. */
struct memwire_socket *memwire_listener(struct memnet *net, const char *name);

/* Who of those that share an address takes the next connection: the dice say. NULL: nobody. */
struct memwire_socket *memwire_listener_next(struct memnet *net, const char *name);
enum memnet_route memwire_route_of(struct memnet *net, const char *name);

/* Starts a connection; `now`: all of it happens at once. */
void memwire_connect(struct memnet *net, struct memwire_socket *socket, bool now);

/* The first of a listener's queue, taken out; there is one. */
struct memwire_socket *memwire_accept(struct memwire_socket *listener);

/* Bytes that a write would take. */
size_t memwire_room(const struct memwire_socket *socket);

/* Puts bytes on the way; there is room. */
void memwire_send(struct memnet *net, struct memwire_socket *socket, const unsigned char *bytes,
		  size_t len);
void memwire_end(struct memnet *net, struct memwire_socket *socket);

/* Takes arrived bytes out. */
void memwire_take(struct memwire_socket *socket, unsigned char *bytes, size_t len);

/* The connection ends here and now with this error. */
void memwire_break(struct memnet *net, struct memwire_socket *socket, int error);

/* Tells the observer, if there is one. */
void memwire_tell_observer(struct memnet *net, enum memnet_act act, struct memwire_socket *socket,
			   const unsigned char *bytes, size_t len);

static inline void memwire_tell(struct memnet *net, enum memnet_act act,
				struct memwire_socket *socket, const unsigned char *bytes,
				size_t len)
{
	if (net->tell)
		memwire_tell_observer(net, act, socket, bytes, len);
}

#endif
