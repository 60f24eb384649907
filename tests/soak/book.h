/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The book of one process: every call that was taken has a seat until its end. A seat is known by a
 * tag, which is never given again: an end by a tag that has none is an end too many. So the book
 * is as large as the calls that may be open, and knows of each call there ever was whether it ended
 * once. The engine's thread.
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
	unsigned kind; /* the owner's, as the next three */
	unsigned team;
	size_t len;
	struct spoke_call call;
	uint64_t until_ns; /* by then it has ended */
	unsigned overdue;  /* looks in a row at which it had not */
	uint32_t next;     /* of the free ones */
};

struct book {
	struct desk *desk;
	struct seat seats[BOOK_SEATS];
	uint32_t free; /* the first; BOOK_SEATS: none */
	uint64_t generation;
	uint64_t open;
};

void book_init(struct book *book, struct desk *desk);

/* A seat for a call that is about to begin, or NULL: all are taken. */
struct seat *book_take(struct book *book, unsigned kind);

/* The call has begun ... */
void book_begin(struct book *book, struct seat *seat, uint64_t until_ns);

/* ... or was not taken. */
void book_refuse(struct book *book, struct seat *seat, int error);

/* The seat of what ends now; NULL, and counted: it has none, or is not in this state. */
struct seat *book_find(struct book *book, uint64_t tag, enum seat_state state);

/* It ended: counted by its error, and the seat is free. */
void book_end(struct book *book, struct seat *seat, int error);

/* It goes on as a ticket. */
void book_defer(struct book *book, struct seat *seat, uint64_t until_ns);
void book_settle(struct book *book, struct seat *seat, unsigned settlement);

/* What has not ended at three looks in a row after its time is lost. A process that stood still has
 * looked once since. */
void book_look(struct book *book, uint64_t now_ns);

/* At the end of all: nothing is open, and the sums are equal. */
bool book_close(struct book *book);

#endif
