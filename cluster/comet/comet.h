/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The structs of a gateway, and what its files use of one another.
 *
 * Times are in ms since the gateway was made, in 32 bits that wrap: compare them by
 * spokei_comet_until(). On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_COMET_COMET_H
#define SPOKEI_CLUSTER_COMET_COMET_H

#include "core/base/pace.h"
#include "core/engine/engine.h"
#include "core/engine/members.h"
#include "core/memory/slab.h"
#include "transport/http/server.h"
#include "transport/listen/quota.h"

#include <spoke/comet.h>

#define SPOKEI_COMET_KEY 24u         /* bytes of a Sec-WebSocket-Key */
#define SPOKEI_COMET_CLIENT 56u      /* bytes of an address from a proxy, with the NUL */
#define SPOKEI_COMET_REASON 128u     /* bytes of a reason, with the NUL */
#define SPOKEI_COMET_CHUNK 64u       /* connections allocated together */
#define SPOKEI_COMET_LINGER_MS 2000  /* for the client to close first */
#define SPOKEI_COMET_GRACE_MS 10000  /* between two long polls, the user has not left */
#define SPOKEI_COMET_CORS 400u       /* bytes of the headers for one, with the NUL */
#define SPOKEI_COMET_GATHER 16       /* messages in one write */
#define SPOKEI_COMET_ADDRESSES 1024u /* counters of addresses; a power of two */

/* Close codes of the gateway's own. */
#define SPOKEI_COMET_REFUSED 4001u
#define SPOKEI_COMET_ORIGIN 4003u
#define SPOKEI_COMET_KICKED 4004u
#define SPOKEI_COMET_EXTRA 4008u
#define SPOKEI_COMET_POLICY 1008u /* a limit in time */

struct spokei_comet_peers;
struct spokei_comet_file;
struct spokei_weak;
struct spokei_comet_user;
struct spokei_comet_ring;

/* --- messages */

/* How a message is written. */
enum spokei_comet_form {
	SPOKEI_COMET_AS_EVENT, /* text/event-stream */
	SPOKEI_COMET_AS_FRAME, /* JSON in a WebSocket frame; long polls leave out its head */
	SPOKEI_COMET_FORMS,
};

/* A message. Rings hold references, and connections that have written a part of it. */
struct spokei_comet_message {
	uint32_t refs;
	uint32_t data_len;
	uint64_t number;
	uint64_t born_ns;
	uint64_t ends_ns; /* from then on it is skipped */
	unsigned char *form[SPOKEI_COMET_FORMS];
	uint32_t form_len[SPOKEI_COMET_FORMS]; /* 0: not encoded yet */
	uint8_t event_len;
	uint8_t head_len; /* bytes of the frame's head */
	char text[];      /* the event's name, then the data */
};

/* Messages of one user, or of all, oldest first. Those up to the floor of the user, or to
 * comet->all_floor, are gone. */
struct spokei_comet_ring {
	struct spoke_list node; /* in comet->rings, by look_ms; the ring for all is there, too */
	struct spokei_comet_user *user; /* NULL: of all */
	struct spokei_comet_message **slots;
	uint32_t look_ms; /* when old messages are removed next */
	uint32_t bytes;
	uint32_t room; /* length of `slots`: 0 or a power of two */
	uint32_t first;
	uint32_t count;
};

/* --- users and connections */

enum {
	SPOKEI_COMET_DIRTY = 1,   /* user: in comet->dirty */
	SPOKEI_COMET_ABSENT = 2,  /* user: in comet->grace or comet->absent */
	SPOKEI_COMET_TOLD = 4,    /* user: the program knows that it is here */
	SPOKEI_COMET_KNOWN = 8,   /* user: ... or that it was here */
	SPOKEI_COMET_POLLED = 16, /* user: the last one that left was a poll that was answered */
};

struct spokei_comet_user {
	struct spoke_comet *comet;
	struct spokei_comet_user *chain; /* of its bucket */
	struct spokei_comet_ring *ring;  /* NULL: empty */
	uint64_t floor;                  /* messages up to this number are gone */
	union {
		struct {
			struct spokei_comet_conn *first;      /* its connections, newest first */
			struct spokei_comet_user *next_dirty; /* ... of comet->dirty */
		} here;
		struct spoke_list node; /* while ABSENT */
	} at;
	uint32_t due_ms; /* while ABSENT: when this ends */
	uint16_t second; /* the second in which `posts` have come */
	uint8_t posts;
	uint8_t count; /* of connections */
	uint8_t flags;
	uint8_t len;
	char id[];
};

enum spokei_comet_state {
	SPOKEI_COMET_FREE,   /* the cell is free, or will be when the turn ends */
	SPOKEI_COMET_OPEN,   /* messages are written to it */
	SPOKEI_COMET_ENDING, /* its last bytes are written; the client closes first */
};

/* Memory that a connection has only while it needs it. */
struct spokei_comet_more {
	unsigned char *out; /* output that waits; NULL: none */
	uint32_t out_at;
	uint32_t out_len;
	struct spokei_comet_message *message; /* owns `out`; NULL: the connection does */
	unsigned char *in;                    /* an incomplete message; NULL: none */
	uint32_t in_len;
	uint32_t in_room;
	uint32_t begun_ms; /* when the first bytes of that message came */
};

struct spokei_comet_conn {
	struct spoke_watch watch;
	struct spoke_timer timer;             /* the only one; always armed */
	struct spokei_comet_user *user;       /* comet->nobody: none, or no longer */
	struct spokei_comet_conn *next;       /* of the user; or of the free or dead ones */
	struct spokei_comet_more *more;       /* NULL: nothing waits */
	struct spokei_quota_peer *quota_peer; /* in the quota */
	uint64_t cursor;                      /* messages up to this number were written */
	uint32_t moved_ms;                    /* last progress of output */
	uint32_t ends_ms;                     /* end of its life, of the poll, or of lingering */
	uint16_t second;                      /* the second in which `frames` have come */
	uint8_t frames;
	uint8_t state;
	uint8_t kind;    /* enum spoke_comet_kind */
	bool lost : 1;   /* the client has to be told that messages were lost */
	bool drains : 1; /* it ends because of a drain */
	uint16_t origin; /* of its page, see spokei_comet_cors() */
};

/* The promise for an idle connection: 256 bytes with its user, whose id has up to 16 bytes, and
 * with the user's place in a table that is at least half full. */
_Static_assert(sizeof(struct spokei_comet_conn) + offsetof(struct spokei_comet_user, id) + 16 +
			       2 * sizeof(void *) <=
		       256,
	       "an idle connection and its user take at most 256 bytes");

/* A request that waits for the authorizer. */
struct spokei_comet_ask {
	struct spoke_list node; /* in comet->asks or comet->sends, oldest first */
	struct spokei_http_conn *http;
	uint64_t handle;
	uint64_t cursor; /* of the last id; only if `resumes` */
	uint32_t due_ms;
	uint32_t body_len;
	char *body; /* of SEND: owned */
	uint8_t kind;
	bool resumes; /* came with a last id of this epoch */
	bool lost;    /* came with another one */
	uint8_t user_len;
	char key[SPOKEI_COMET_KEY];       /* of a WebSocket */
	char client[SPOKEI_COMET_CLIENT]; /* address behind a proxy; "": none */
	char last[SPOKE_COMET_ID];        /* the last id, of any epoch; "": none */
	char user[SPOKE_COMET_USER_MAX];  /* of SEND, once admitted */
};

/* The gateway's own data of a HTTP connection. */
struct spokei_comet_door {
	struct spokei_comet_ask *ask; /* NULL: none */
	uint16_t origin;              /* of its page, see spokei_comet_cors() */
	struct spokei_quota_peer
		*quota_peer; /* in the quota: of the peer, or of the client behind it */
};

struct spoke_comet {
	struct spoke_engine *engine;
	struct spokei_member member;
	struct spokei_settings *settings;
	struct spoke_comet_options with; /* in force */
	const char *origins;             /* that numbers of origins refer to */
	struct spokei_quota_limits connections;
	char *page; /* the whole response for the document at /; NULL: none */
	size_t page_size;
	struct spokei_listener *listeners[SPOKE_COMET_LISTEN_MAX];
	size_t listener_count;
	struct spokei_quota quota;
	struct spokei_http_server http; /* its connections have a struct spokei_comet_door */
	struct spokei_bucket rate;
	struct spokei_bucket reserve; /* for addresses that have opened few in this second */
	uint32_t second;              /* of `opened` */
	uint16_t opened[SPOKEI_COMET_ADDRESSES]; /* by the hash of the address */
	uint64_t born_ns;
	uint64_t epoch;
	uint64_t number;    /* of the last message */
	uint64_t forgotten; /* messages up to this number may have been dropped for unknown users */
	unsigned timer_class;

	struct spokei_comet_conn **chunks;
	uint32_t chunk_count;
	uint32_t chunk_room;
	uint32_t used;                       /* cells ever used */
	struct spokei_comet_conn *free;      /* cells to use again */
	struct spokei_comet_conn *dead_list; /* ... from the end of the turn on */
	struct spokei_task dead;

	struct spokei_comet_user **buckets;
	uint32_t bucket_count;
	uint64_t hash_key[2]; /* of the table of users, and of `opened` */
	struct spokei_comet_user *nobody;
	struct spokei_comet_user *dirty; /* users whose connections or messages have changed */
	struct spokei_comet_user **dirty_end;
	struct spoke_list grace;  /* users between two long polls, by due_ms */
	struct spoke_list absent; /* users without connections, by due_ms */

	struct spokei_slab ask_slab;
	struct spoke_list asks;  /* by due_ms */
	struct spoke_list sends; /* admitted: the program gets the text soon */
	struct spoke_list rings; /* by look_ms */
	struct spoke_alarm sweep;
	uint32_t sweep_ms; /* when it is set to */

	struct spokei_comet_ring all;
	uint64_t all_floor;
	struct spokei_task pass;
	uint32_t pass_at;   /* the cell that comes next in the pass over all connections */
	uint32_t pass_left; /* cells that are left to visit */
	uint32_t writes;    /* writes made; for the bound of a slice */

	struct spokei_weak *weak;         /* by which others reach it; these are NULL: alone */
	struct spokei_comet_peers *own;   /* where others join it */
	struct spokei_comet_peers *peers; /* where it is itself: its own, or that of the first */

	uint64_t figures[SPOKE_COMET_FIGURE_COUNT];
	struct spokei_comet_served *served; /* by providers */
	bool draining;
	bool closed; /* all connections are closed */
	bool freed;  /* its user has freed it; until then the struct stays */
	struct spokei_task finalise;
};

/* --- small things */

static inline uint32_t spokei_comet_ms(const struct spoke_comet *comet)
{
	return (uint32_t)((comet->engine->begin_ns - comet->born_ns) / 1000000);
}

static inline uint32_t spokei_comet_ms_of(uint64_t ns)
{
	return (uint32_t)(ns / 1000000);
}

/* Returns the time until `ms`, at most 24 days; negative: it has passed. */
static inline int32_t spokei_comet_until(uint32_t ms, uint32_t now_ms)
{
	return (int32_t)(ms - now_ms);
}

/* Returns the gateway of a HTTP connection. */
static inline struct spoke_comet *spokei_comet_of(const struct spokei_http_conn *http)
{
	return spoke_container_of(spokei_http_server_of(http), struct spoke_comet, http);
}

static inline void spokei_comet_count(struct spoke_comet *comet, enum spoke_comet_figure figure)
{
	comet->figures[figure]++;
}

static inline bool spokei_comet_behind(const struct spokei_comet_conn *conn)
{
	return conn->more != NULL && conn->more->out != NULL;
}

/* Has a message from the page arrived in part? */
static inline bool spokei_comet_partial(const struct spokei_comet_conn *conn)
{
	return conn->more != NULL && conn->more->in != NULL;
}

static inline struct spokei_comet_conn *spokei_comet_cell(const struct spoke_comet *comet,
							  uint32_t index)
{
	return &comet->chunks[index / SPOKEI_COMET_CHUNK][index % SPOKEI_COMET_CHUNK];
}

/* Returns a random number from `min` to `max`. */
uint64_t spokei_comet_dice(const struct spoke_comet *comet, uint64_t min, uint64_t max);

/* Returns a random pause before a client comes again, in ms. */
uint32_t spokei_comet_retry(const struct spoke_comet *comet);

/* --- message.c */

/* Memory that counts against bytes_max, not initialised; NULL: there is none. */
void *spokei_comet_take(struct spoke_comet *comet, size_t size);
void spokei_comet_give(struct spoke_comet *comet, void *memory, size_t size);

/* Writes "EPOCH.NUMBER"; returns its length. */
size_t spokei_comet_print_id(const struct spoke_comet *comet, uint64_t number,
			     char id[SPOKE_COMET_ID]);

/* Reads an id. Returns whether it is of this epoch, and not of the future. */
bool spokei_comet_read_id(const struct spoke_comet *comet, struct spoke_span id,
			  uint64_t *ret_number);

/* Makes a message with the next number and one reference. Returns 0, EINVAL (a sentence says why),
 * ETOOLARGE, ELIMIT or ENOMEM. */
SPOKE_MUST_USE int spokei_comet_make(struct spoke_comet *comet,
				     const struct spoke_comet_message *message,
				     struct spokei_comet_message **ret);
void spokei_comet_drop(struct spoke_comet *comet, struct spokei_comet_message *message);

/* Bytes that are written to `out`, or only counted if that is NULL. */
struct spokei_comet_sink {
	unsigned char *out;
	size_t len;
};

/* Appends bytes to a sink. */
void spokei_comet_put(void *arg, const void *bytes, size_t len);

/* Encodes a message, unless it has this form already. Returns false without memory. */
bool spokei_comet_encode(struct spoke_comet *comet, struct spokei_comet_message *message,
			 enum spokei_comet_form form);

/* Writes an event of the gateway itself in this form. Returns its bytes, at most
 * SPOKEI_COMET_SAY. `id`: NULL for none; retry_ms: 0 for none. */
#define SPOKEI_COMET_SAY 1024u
size_t spokei_comet_say(enum spokei_comet_form form, const char *name, const char *id,
			const char *data, uint32_t retry_ms, char out[SPOKEI_COMET_SAY]);

/* Adds a message to a ring, which makes room for it by dropping the oldest ones. Returns 0 or
 * ENOMEM. */
SPOKE_MUST_USE int spokei_comet_ring_add(struct spoke_comet *comet, struct spokei_comet_ring *ring,
					 struct spokei_comet_message *message);

/* Returns the index of the first message after `number`; ring->count: there is none. */
uint32_t spokei_comet_ring_after(const struct spokei_comet_ring *ring, uint64_t number);

static inline struct spokei_comet_message *spokei_comet_ring_at(
	const struct spokei_comet_ring *ring, uint32_t index)
{
	return ring->slots[(ring->first + index) & (ring->room - 1)];
}

/* Drops the messages that are too old now. */
void spokei_comet_ring_age(struct spoke_comet *comet, struct spokei_comet_ring *ring);

/* Drops all messages, and frees the slots. */
void spokei_comet_ring_clear(struct spoke_comet *comet, struct spokei_comet_ring *ring);

/* --- users.c */

/* Is it the id of a user? */
bool spokei_comet_is_user(struct spoke_span id);

/* Returns a user, or NULL. */
struct spokei_comet_user *spokei_comet_find(const struct spoke_comet *comet, struct spoke_span id);

/* Returns a user, which is made if it is not known: absent, for keep_ns. Returns 0, ELIMIT or
 * ENOMEM. */
SPOKE_MUST_USE int spokei_comet_find_or_make(struct spoke_comet *comet, struct spoke_span id,
					     struct spokei_comet_user **ret);

/* Has the pass look at a user. It has a connection, or has just lost the last one. */
void spokei_comet_dirty(struct spokei_comet_user *user);

/* A user that is absent, if it is, has a connection again. */
void spokei_comet_here(struct spokei_comet_user *user);

/* Adds a message to the user's ring. Returns 0 or ENOMEM. */
SPOKE_MUST_USE int spokei_comet_user_add(struct spokei_comet_user *user,
					 struct spokei_comet_message *message);

/* Frees all users, which have no connections. */
void spokei_comet_forget_all(struct spoke_comet *comet);

/* Has the sweep run at that time, or earlier. */
void spokei_comet_sweep_at(struct spoke_comet *comet, uint32_t ms);

/* The function of comet->pass, and of the alarm. */
void spokei_comet_pass(struct spokei_task *task);
void spokei_comet_sweep(struct spoke_alarm *alarm);

/* --- conn.c */

/* The function of the timer's class. */
void spokei_comet_due(struct spoke_timer *timer, void *arg);

/* Opens a connection of a kind for a user. Takes over the descriptor and the place in the quota.
 * Returns NULL without memory or timers: both are given back then. */
struct spokei_comet_conn *spokei_comet_open(struct spoke_comet *comet, enum spoke_comet_kind kind,
					    struct spokei_comet_user *user, int fd,
					    struct spokei_quota_peer *quota_peer);

/* Moves the timer to the time when it has to look next. */
void spokei_comet_arm(struct spokei_comet_conn *conn);

/* Closes a connection at once, and counts the reason. SPOKE_COMET_FIGURE_COUNT: none. */
void spokei_comet_close(struct spokei_comet_conn *conn, enum spoke_comet_figure why);

/* Writes bytes to a connection whose output does not wait, and keeps the rest. May close it. */
void spokei_comet_write(struct spokei_comet_conn *conn, const void *bytes, size_t len);

/* Writes all messages that are due to an open connection, as far as the system takes them. */
void spokei_comet_pump(struct spokei_comet_conn *conn);

/* Writes the last bytes of an open connection, and ends it. Closes it at once if output waits. */
void spokei_comet_end(struct spokei_comet_conn *conn, const void *bytes, size_t len);

/* Ends an open connection with a close code or, for other kinds, the event "closed". */
void spokei_comet_end_with(struct spokei_comet_conn *conn, unsigned code, const char *reason);

/* Answers a long poll: messages or, if there are none, {"again":again_ms}. */
void spokei_comet_answer(struct spokei_comet_conn *conn, uint32_t again_ms);

/* --- door.c */

extern const struct spokei_http_up spokei_comet_up;

/*
 * Writes the headers by which a browser lets a page of another origin read the answer. `origin` is
 * its number in the option origins, from 1 on; 0: the page is of the gateway's own origin,
 * which needs none. Returns `out`.
 */
const char *spokei_comet_cors(const struct spoke_comet *comet, uint16_t origin,
			      char out[SPOKEI_COMET_CORS]);

/* Ends the ask that waits, with "come again". */
void spokei_comet_unanswered(struct spokei_comet_ask *ask);

/* Hands the texts of admitted SEND requests to the program. */
void spokei_comet_deliver(struct spoke_comet *comet);

/* --- push.c */

/* Lets other gateways join this one. Returns 0 or ENOMEM. */
SPOKE_MUST_USE int spokei_comet_open_peers(struct spoke_comet *comet);

/* Ends that before the gateway is freed. Returns false while another thread uses it: try again. */
SPOKE_MUST_USE bool spokei_comet_leave_peers(struct spoke_comet *comet);

/* --- serve.c */

/* Has all requests answered with ECLOSED from now on. */
void spokei_comet_unserve(struct spoke_comet *comet);

/* The script for pages, which the build embeds from spoke.js. */
extern const unsigned char spokei_comet_script[];
extern const size_t spokei_comet_script_len;

#endif
