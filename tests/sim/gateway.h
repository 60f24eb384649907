/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gateways for browsers: a world of its own, in a part of the seeds. One process has a gateway and
 * a program that pushes. Pages connect to it by Server-Sent Events, WebSockets and long polls, over
 * a network with faults, and read its bytes themselves. The oracle knows each push, and so the
 * messages of each page.
 */
#ifndef TESTS_SIM_GATEWAY_H
#define TESTS_SIM_GATEWAY_H

#include "tests/sim/sim.h"

#include <spoke/comet.h>

enum {
	SIM_PAGES = 24,
	SIM_USERS = 6,
	SIM_STRANGERS = 3,  /* users that get messages, and never come */
	SIM_PUSHES = 16384, /* of one gateway */
	SIM_ASKED = 65536,  /* requests that the authorizer has seen, in one world */
	SIM_WAITING = 4096,
	SIM_FDS = 1024,
	SIM_PAGE_IN = 300000, /* bytes that a page keeps until they are a whole event */
	SIM_PAGE_OUT = 1024,
	SIM_EVENT_NAME = 72,
	SIM_TENTHS = 10,
};

/* Kinds of faults of a world with a gateway. */
enum sim_gateway_fault {
	SIM_GATEWAY_KILL,   /* the gateway is killed, and comes back with another epoch */
	SIM_GATEWAY_DRAIN,  /* it drains, and comes back */
	SIM_GATEWAY_HOLD,   /* its process is frozen */
	SIM_GATEWAY_MEMORY, /* one allocation fails */
	SIM_GATEWAY_ROUTE,  /* connects are refused or unanswered for a while */
	SIM_GATEWAY_ACCEPT, /* accept() fails */
	SIM_GATEWAY_RESET,  /* a device on the path resets a connection */
	SIM_GATEWAY_HOLE,   /* nothing gets through on a connection for a while, or ever */
	SIM_GATEWAY_DELAY,  /* a connection becomes slow */
	SIM_GATEWAY_FREEZE, /* a page is frozen, and goes on */
	SIM_GATEWAY_SIP,    /* a page reads slowly from now on */
	SIM_GATEWAY_LEAVE,  /* a page closes its connection, and comes back or is loaded anew */
	SIM_GATEWAY_FAULTS,
};

const char *sim_gateway_fault_name(enum sim_gateway_fault fault);

struct sim_gateway_plan {
	unsigned users;
	unsigned pages;
	uint64_t push_every_ns; /* on average */
	size_t data_max;        /* bytes of a message */
	uint64_t fault_every_ns;
	uint32_t faults; /* bits of enum sim_gateway_fault */
	uint64_t length_ns;
	struct spokei_vnet_link link;
	struct spoke_comet_options with; /* without functions */
	bool moving; /* each gateway of the world has another life and keepalive */
};

/* A message that was pushed. */
struct sim_push {
	uint64_t number;
	uint64_t index; /* names it in the world, and makes its data */
	uint32_t users; /* a bit for each user */
	uint32_t len;
	bool may_miss; /* pages need not get it */
};

/* A request that the authorizer has seen. */
struct sim_asked {
	struct spoke_comet_entry entry;
	uint64_t since_ns;  /* when the authorizer was asked */
	uint64_t answer_ns; /* when it is answered; UINT64_MAX: never */
	uint32_t page;
	bool answered;
	bool admitted;
	bool there; /* the request was seen */
};

enum sim_page_state {
	SIM_PAGE_WAITS, /* until next_ns */
	SIM_PAGE_CONNECTS,
	SIM_PAGE_ASKS,    /* the request is being written, or the head has not come yet */
	SIM_PAGE_LISTENS, /* the head was read */
	SIM_PAGE_GONE,    /* for good */
};

struct sim_page {
	struct sim_gateway *gateway;
	unsigned number;
	unsigned user;
	enum spoke_comet_kind kind;
	enum sim_page_state state;
	int fd; /* -1: none */
	uint64_t next_ns;
	uint64_t retry_ns;         /* the pause before it connects again */
	uint64_t frozen_ns;        /* it does nothing until then */
	uint64_t again_ns;         /* it looks at its connection again; 0: when that is ready */
	size_t sip;                /* bytes that it reads at a time; 0: all */
	uint64_t sip_ns;           /* the pause after that */
	uint32_t nonce;            /* of its request */
	char last[SPOKE_COMET_ID]; /* the last id, as a browser keeps it; "": none */
	bool resumes;              /* the request has a last id */
	unsigned char out[SIM_PAGE_OUT];
	size_t out_len;
	size_t out_at;
	unsigned char in[SIM_PAGE_IN];
	size_t in_len;
	size_t body_len; /* of the response */
	int status;      /* 0: no head yet */
	bool by_length;
	bool over; /* the response is complete, nothing may follow */
	/* What the oracle knows. */
	uint64_t epoch; /* of the messages that the page has; 0: none */
	uint64_t upto;  /* it has all that it needs up to this number */
	uint64_t id;    /* the last one on this connection, with the epoch id_epoch */
	uint64_t id_epoch;
	bool owed;        /* it has to be told that messages were lost */
	bool connected;   /* its connection was greeted */
	uint64_t told_ns; /* when it was connected, or a poll was answered, last; 0: never */
};

/* An event as a page has read it. Without an id: `id` is empty. */
struct sim_page_event {
	char id[SPOKE_COMET_ID];
	char name[SIM_EVENT_NAME];
	char *data;
	size_t data_len;
};

/* The gateway's end of a connection, as the network and the turns show it. */
struct sim_gate {
	bool open;
	int page_fd;       /* descriptor of the other end */
	bool seen;         /* the gateway has a connection of its own there */
	bool waits;        /* its output does */
	uint64_t wrote_ns; /* when bytes were taken last */
	uint64_t since_ns; /* when it was seen first */
	uint64_t waits_ns; /* since when its output waits */
	uint64_t ends_ns;  /* since when it ends, and no output waits; 0: it does not end */
};

struct sim_gateway {
	struct sim_world world;           /* for notes and violations; it has no other processes */
	struct spokei_world_process virt; /* of the gateway */
	struct spokei_world_process browser; /* of all pages */
	struct sim_gateway_plan plan;
	struct spoke_engine *engine; /* NULL: not running */
	struct spoke_comet *comet;
	struct spoke_comet_options with; /* of the gateway that runs */
	struct spoke_alarm alarm;        /* of pushes and late answers */
	uint64_t epoch;
	uint64_t back_ns;           /* when it starts again; 0: it runs */
	uint64_t calm_ns;           /* from then on it was punctual */
	uint64_t kicked_ns;         /* when a user was kicked last */
	uint64_t drain_ns;          /* when the drain began; 0: it does not drain */
	uint64_t drained_ns;        /* when the drain has to be over */
	unsigned drain_count;       /* connections that it tells */
	unsigned ended[SIM_TENTHS]; /* connections that it has told, by tenths of its time */
	uint64_t route_ns;          /* when the route is normal again; 0: it is */
	uint64_t next_look_ns;
	uint64_t next_fault_ns;
	uint64_t quiet_ns; /* since then nothing is pushed; 0: something is */
	bool healing;
	uint64_t heal_ns; /* since then there are no faults */
	uint64_t push_index;
	struct sim_push pushes[SIM_PUSHES]; /* of this epoch, by number */
	unsigned push_count;
	struct sim_asked asked[SIM_ASKED];
	uint32_t asked_count;          /* nonces go up to this number */
	uint32_t waiting[SIM_WAITING]; /* indexes of requests that are not answered */
	unsigned waiting_count;
	struct sim_page pages[SIM_PAGES];
	struct sim_gate gates[SIM_FDS]; /* by descriptor */
	char fds[SIM_FDS];              /* addresses in it stand for descriptors of pages */
	uint64_t progress;              /* grows with everything that the process does */
	uint64_t seen_progress;
	unsigned idle_turns; /* turns without progress in a row */
	unsigned turns;
	uint64_t base_bytes; /* memory before the first connection */
	struct sim_gateway_counts *counts;
};

/* Of all worlds with gateways. */
struct sim_gateway_counts {
	uint64_t worlds;
	uint64_t ns;
	uint64_t pushes;
	uint64_t events;
	uint64_t lost;
	uint64_t opened;
	uint64_t faults[SIM_GATEWAY_FAULTS];
};

static inline uint64_t sim_gateway_now(const struct sim_gateway *gateway)
{
	return gateway->world.virt.now_ns;
}

static inline struct sim_dice *sim_gateway_dice(struct sim_gateway *gateway)
{
	return &gateway->world.dice;
}

/* --- gateway.c: the plan */

/* Does this seed have a gateway? Has a generator of its own. */
bool sim_gateway_drawn(uint64_t seed);

/* --- gateway.c */

/* Runs the gateway's world of a seed. Adds to `counts`, and returns a hash of the history. `all`:
 * worlds without gateways are left out. */
uint64_t sim_gateway_run(uint64_t seed, bool all, bool verbose, struct sim_gateway_counts *counts);

/* Ends the gateway's process. */
void sim_gateway_end(struct sim_gateway *gateway);

/* Holds up the gateway's process. */
void sim_gateway_hold(struct sim_gateway *gateway, uint64_t ns);

/* --- gateway.c: the faults */

void sim_gateway_fault(struct sim_gateway *gateway);

/* --- pages.c */

void sim_pages_start(struct sim_gateway *gateway);

/* Lets each page act that can. */
void sim_pages_turn(struct sim_gateway *gateway);

/* Returns when a page acts next by itself. */
uint64_t sim_pages_next(const struct sim_gateway *gateway);

/* Ends the connection of a page, which connects again after its pause. */
void sim_page_close(struct sim_page *page);
void sim_page_close_for(struct sim_page *page, uint64_t ns);

/* The page was told to stay away; it comes back after a while. */
void sim_page_stays_away(struct sim_page *page);

/* --- oracle_pages.c: the messages that pages get */

/* Writes the data of a message; returns its bytes. */
size_t sim_push_data(uint64_t index, size_t len, char *out);

/* Reads an id; returns false if it is none. */
bool sim_page_id(const char *id, uint64_t *ret_epoch, uint64_t *ret_number);

void sim_page_asks(struct sim_page *page);
void sim_page_event(struct sim_page *page, const struct sim_page_event *event);

/* A long poll has told the id up to which the page has everything. */
void sim_page_upto(struct sim_page *page, const char *id);

/* Checks a pause before the next connection. `opens`: it was told at the opening of this one. */
void sim_page_pause(struct sim_page *page, uint64_t ms, bool opens);

/* Reports bytes of a page that are no event. */
__attribute__((noreturn)) void sim_page_broken(struct sim_page *page, const char *what);

/* Returns whether the page was connected after the faults, and has everything. */
bool sim_page_whole(const struct sim_page *page);

/* --- oracle_gateway.c: the things that a gateway keeps, and its times */

void sim_gateway_observe(void *arg, const struct spokei_vnet_news *news);
void sim_gateway_turned(struct spokei_world_process *virt);

/* The periodic checks. */
void sim_gateway_check(struct sim_gateway *gateway);

/* Checks that nothing is left of a process that has ended. */
void sim_gateway_check_end(struct sim_gateway *gateway);

/* Checks that all messages are gone some time after the last one. */
void sim_gateway_check_quiet(struct sim_gateway *gateway);

#endif
