/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of open calls of one process. Each call has a seat until it ends. A seat is found by a
 * tag that is never used again, so a second end of a call is detected. The table needs room for
 * open calls only, and yet checks that every call ends exactly once. Used on the engine's thread.
 */
#ifndef TESTS_SOAK_BOOK_H
#define TESTS_SOAK_BOOK_H

#include "board.h"

#include <spoke/call.h>

#define BOOK_SEATS 4096u

enum seat_state {
	SEAT_FREE,
	SEAT_OPEN,     /* a call */
	SEAT_DEFERRED, /* a ticket */
};

struct seat {
	uint64_t tag;
	enum seat_state state;
	unsigned kind; /* set by the owner, like the next three */
	unsigned team;
	size_t len;
	struct spoke_call call;
	uint64_t until_ns; /* latest end */
	unsigned overdue;  /* consecutive checks at which the call was overdue */
	uint32_t next;     /* in the list of free seats */
};

struct book {
	struct desk *desk;
	struct seat seats[BOOK_SEATS];
	uint32_t free; /* the first free seat; BOOK_SEATS: none */
	uint64_t generation;
	uint64_t open;
};

void book_init(struct book *book, struct desk *desk);

/* Returns a seat for a new call, or NULL if all are taken. */
struct seat *book_take(struct book *book, unsigned kind);

/* Records that the call has begun. */
void book_begin(struct book *book, struct seat *seat, uint64_t until_ns);

/* Records that spoke_call() rejected the call; frees the seat. */
void book_refuse(struct book *book, struct seat *seat, int error);

/* Returns the seat of a call that ends. If no seat has this tag and state, counts a second end and
 * returns NULL. */
struct seat *book_find(struct book *book, uint64_t tag, enum seat_state state);

/* Counts the result of the call and frees the seat. */
void book_end(struct book *book, struct seat *seat, int error);

/* Records that the call continues as a ticket. */
void book_defer(struct book *book, struct seat *seat, uint64_t until_ns);
void book_settle(struct book *book, struct seat *seat, unsigned settlement);

/* Counts calls as lost that are overdue at three consecutive checks. A process that was frozen has
 * made at most one check since. */
void book_look(struct book *book, uint64_t now_ns);

/* Checks at the end that no call is open and the counters add up. */
bool book_close(struct book *book);

#endif
