/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Browsers of the demo: clients with Server-Sent Events on plain sockets, which behave like an
 * EventSource. Each counts the numbered offers that it gets.
 */
#ifndef DEMO_BROWSERS_H
#define DEMO_BROWSERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <netinet/in.h>

#define BROWSERS_MAX 500u

struct browser {
	int fd;        /* -1: not connected */
	bool begun;    /* the request was sent */
	bool up;       /* it has got the event "hello" on this connection */
	bool asleep;   /* makes no attempt to connect */
	bool frozen;   /* reads nothing */
	char last[48]; /* its last id */
	char input[8192];
	size_t input_len;
	uint64_t retry_ns; /* the pause that the gateway has asked for */
	uint64_t due_ns;   /* of the next attempt */
	uint64_t up_ns;    /* when it was connected last */
	unsigned attempts; /* since the last browsers_mark() */
	/* Offers. */
	unsigned next;    /* the number that it expects */
	unsigned got;     /* each counts once */
	unsigned missed;  /* and it was told so */
	unsigned untold;  /* missed without a word */
	unsigned doubled; /* got twice */
	unsigned lost;    /* events "lost" */
	bool told;        /* ... one of them since the last offer */
};

struct browsers {
	struct browser all[BROWSERS_MAX];
	unsigned count;
	struct sockaddr_in at;
	char host[64];
};

/* Opens `count` browsers for the gateway at "127.0.0.1:PORT". */
bool browsers_begin(struct browsers *browsers, unsigned count, const char *address);
void browsers_end(struct browsers *browsers);

/* Waits a moment, reads, and connects those that are due. */
void browsers_step(struct browsers *browsers);

/* Closes the connection of one, which stays away until it is waked. */
void browsers_sleep(struct browser *browser);
void browsers_wake(struct browser *browser);

/* Begins to count attempts. */
void browsers_mark(struct browsers *browsers);

/* Returns how many are connected, and how many have got everything up to offer `number`. */
unsigned browsers_up(const struct browsers *browsers);
unsigned browsers_done(const struct browsers *browsers, unsigned number);

#endif
