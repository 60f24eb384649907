/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shared part of the simulated network: net.c moves bytes between the sockets, and net_calls.c
 * has the functions of struct spoke_net. A socket lives until its descriptor and its peer's are
 * closed and no event leads to either.
 */
#ifndef SPOKEI_CORE_VIRTUAL_NET_PARTS_H
#define SPOKEI_CORE_VIRTUAL_NET_PARTS_H

#include "core/base/mix.h"
#include "core/virtual/net.h"

#define SPOKEI_VNAME_SIZE 128

enum spokei_vwire_kind {
	SPOKEI_VWIRE_SPARE,
	SPOKEI_VWIRE_LISTENER,
	SPOKEI_VWIRE_CONNECTING,
	SPOKEI_VWIRE_STREAM, /* also one that could not be connected: reset, with an error */
};

enum spokei_vwire_event_kind {
	SPOKEI_VWIRE_SYN,
	SPOKEI_VWIRE_ANSWER, /* to a SYN: connected, or `value` is the error */
	SPOKEI_VWIRE_DATA,   /* `value` bytes */
	SPOKEI_VWIRE_FIN,
	SPOKEI_VWIRE_RST,
};

struct spokei_vwire_socket {
	struct spokei_vwire_socket *next; /* of all */
	struct spokei_vwire_socket *prev;
	struct spokei_vnet_user *user;
	enum spokei_vwire_kind kind;
	int fd;          /* -1: none yet, or closed */
	bool gone;       /* closed */
	unsigned coming; /* events that lead here */
	int error;       /* to be reported once */
	bool reset;      /* the connection is broken */
	bool shut;       /* its sending side is shut */
	bool ended;      /* the peer's FIN has arrived */
	bool held_end;   /* the FIN waits in a black hole */
	unsigned tries;  /* SYNs sent */
	struct spokei_vwire_socket *peer;
	struct spokei_vnet_link out; /* the direction in which it writes */
	uint64_t line_free_ns;       /* when bandwidth allows the next byte */
	uint64_t last_ns;            /* when the bytes sent last arrive */
	unsigned char *bytes;        /* incoming bytes: a ring */
	size_t size;
	size_t head;
	size_t len;                        /* sent and not yet read */
	size_t arrived;                    /* of them, arrived */
	size_t held;                       /* of them, held in a black hole */
	struct spokei_vwire_socket *queue; /* a listener's, oldest first; links of queued ones */
	unsigned queued;
	unsigned backlog;
	int accept_error;
	unsigned accept_errors;
	void *note; /* the observer's */
	void *gift; /* shared memory that has come, not taken yet; NULL: none */
	struct spokei_vnet_guard guard;
	/* Of the user, at the time of connect(). */
	uint32_t uid;
	uint32_t gid;
	int32_t pid;
	bool rung;   /* a spare descriptor that can be read */
	bool shared; /* other sockets may listen at the same address */
	char local[SPOKEI_VNAME_SIZE];
	char remote[SPOKEI_VNAME_SIZE];
};

struct spokei_vwire_event {
	uint64_t at_ns;
	uint64_t order;
	struct spokei_vwire_socket *to;
	enum spokei_vwire_event_kind kind;
	uint32_t value;
};

struct spokei_vwire_route {
	struct spokei_vwire_route *next;
	enum spokei_vnet_route route;
	char name[SPOKEI_VNAME_SIZE];
};

struct spokei_vwire_host {
	struct spokei_vwire_host *next;
	char name[SPOKEI_VNAME_SIZE];
	char digits[SPOKEI_VNAME_SIZE];
};

struct spokei_vnet {
	struct spokei_vnet_options options;
	uint64_t now_ns;
	uint64_t dice;
	uint64_t trace;
	bool veiled;                       /* the trace has no content of reads */
	uint64_t order;                    /* of the next event */
	struct spokei_vwire_event *events; /* a heap */
	size_t events_len;
	size_t events_size;
	struct spokei_vwire_socket all;     /* head of the list */
	struct spokei_vwire_socket *unused; /* to be freed, linked by `next` */
	void (*tell)(void *arg, const struct spokei_vnet_news *news); /* the observer, or NULL */
	void *tell_arg;
	struct spokei_vwire_route *routes;
	struct spokei_vwire_host *hosts;
	unsigned holding;                 /* sockets that hold bytes or a FIN */
	bool linked;                      /* a link may have changed since the last look */
	uint64_t changes;                 /* changes of links, which concern all users */
	uint16_t port;                    /* given out last; 0: none yet */
	struct spokei_vwire_socket **fds; /* by descriptor; NULL: not open */
	int fds_size;
};

/* Reads the clock and lets everything happen that is due. */
void spokei_vwire_settle(struct spokei_vnet *net);

/* Notes that the readiness of a socket may have changed. */
static inline void spokei_vwire_touch(const struct spokei_vwire_socket *socket)
{
	if (socket && socket->user)
		socket->user->changes++;
}

/* Returns the next random number of the network's seed. */
static inline uint64_t spokei_vwire_dice(struct spokei_vnet *net)
{
	return spokei_mix_next(&net->dice);
}

/* Returns true with this probability. */
static inline bool spokei_vwire_chance(struct spokei_vnet *net, uint32_t permille)
{
	return permille > 0 && spokei_vwire_dice(net) % 1000 < permille;
}

/* Returns the socket of a descriptor, which is open. */
struct spokei_vwire_socket *spokei_vwire_socket_of(const struct spokei_vnet *net, int fd);

struct spokei_vwire_socket *spokei_vwire_open(struct spokei_vnet *net, enum spokei_vwire_kind kind);

/* Closes a socket as the system does, and frees it when nothing needs it any more. */
void spokei_vwire_close(struct spokei_vnet *net, struct spokei_vwire_socket *socket);

void spokei_vshare_drop(void *memory);

/* Returns the listener at an address, or NULL. */
struct spokei_vwire_socket *spokei_vwire_listener(struct spokei_vnet *net, const char *name);

enum spokei_vnet_route spokei_vwire_route_of(struct spokei_vnet *net, const char *name);

/* Starts a connection; `now`: all of it happens at once. */
void spokei_vwire_connect(struct spokei_vnet *net, struct spokei_vwire_socket *socket, bool now);

/* Takes the first connection out of a listener's queue, which is not empty. */
struct spokei_vwire_socket *spokei_vwire_accept(struct spokei_vwire_socket *listener);

/* Returns how many bytes a write would take. */
size_t spokei_vwire_room(const struct spokei_vwire_socket *socket);

/* Sends bytes; there is room. */
void spokei_vwire_send(struct spokei_vnet *net, struct spokei_vwire_socket *socket,
		       const unsigned char *bytes, size_t len);
void spokei_vwire_end(struct spokei_vnet *net, struct spokei_vwire_socket *socket);

/* Takes arrived bytes out. */
void spokei_vwire_take(struct spokei_vwire_socket *socket, unsigned char *bytes, size_t len);

/* Ends the connection now with this error. */
void spokei_vwire_break(struct spokei_vnet *net, struct spokei_vwire_socket *socket, int error);

/* Calls the observer, if there is one. */
void spokei_vwire_tell_observer(struct spokei_vnet *net, enum spokei_vnet_act act,
				struct spokei_vwire_socket *socket, const unsigned char *bytes,
				size_t len);

static inline void spokei_vwire_tell(struct spokei_vnet *net, enum spokei_vnet_act act,
				     struct spokei_vwire_socket *socket, const unsigned char *bytes,
				     size_t len)
{
	if (net->tell)
		spokei_vwire_tell_observer(net, act, socket, bytes, len);
}

/* --- addresses: names in their printed form, of SPOKEI_VNAME_SIZE bytes */

/* Converts "mem:NAME", or a form that the real network parses, to its canonical form. Returns 0 or
 * a negative errno. */
int spokei_vname_parse(const char *text, struct spoke_address *ret_address);

/* `ret_name` has SPOKEI_VNAME_SIZE bytes. */
void spokei_vname_of(const struct spoke_address *address, char *ret_name);

/* Returns whether a listener at `listening` accepts connections to `name`. */
bool spokei_vname_covers(const char *listening, const char *name);

#endif
