/* SPDX-License-Identifier: Apache-2.0 */
/* Table of open calls; detects lost and repeated ends. */
#include "book.h"

#include <inttypes.h>

#define SEAT_BITS 12
#define LOOKS 3u

_Static_assert(BOOK_SEATS == 1u << SEAT_BITS, "a tag contains the index of its seat");

void book_init(struct book *book, struct desk *desk)
{
	book->desk = desk;
	for (uint32_t i = 0; i < BOOK_SEATS; i++)
		book->seats[i].next = i + 1;
}

struct seat *book_take(struct book *book, unsigned kind)
{
	uint32_t index = book->free;
	struct seat *seat;

	if (index == BOOK_SEATS)
		return NULL;
	seat = &book->seats[index];
	book->free = seat->next;
	seat->tag = ++book->generation << SEAT_BITS | index;
	seat->kind = kind;
	return seat;
}

static void leave(struct book *book, struct seat *seat)
{
	seat->state = SEAT_FREE;
	seat->next = book->free;
	book->free = (uint32_t)(seat - book->seats);
}

void book_begin(struct book *book, struct seat *seat, uint64_t until_ns)
{
	seat->state = SEAT_OPEN;
	seat->until_ns = until_ns;
	seat->overdue = 0;
	book->desk->counts[COUNT_CALLS]++;
	book->desk->open = ++book->open;
}

void book_refuse(struct book *book, struct seat *seat, int error)
{
	book->desk->counts[COUNT_REFUSED]++;
	book->desk->refusals[error_index(error)]++;
	leave(book, seat);
}

struct seat *book_find(struct book *book, uint64_t tag, enum seat_state state)
{
	struct seat *seat = &book->seats[tag % BOOK_SEATS];

	if (seat->tag == tag && seat->state == state)
		return seat;
	book->desk->counts[COUNT_TWICE]++;
	desk_complain(book->desk,
		      "call %" PRIu64 " ended again: its seat is of call %" PRIu64
		      ", in state %d, kind %u, team %u",
		      tag, seat->tag, (int)seat->state, seat->kind, seat->team);
	return NULL;
}

static void end(struct book *book, struct seat *seat)
{
	book->desk->open = --book->open;
	leave(book, seat);
}

void book_end(struct book *book, struct seat *seat, int error)
{
	book->desk->counts[error ? COUNT_FAILED : COUNT_OK]++;
	book->desk->errors[error_index(error)]++;
	end(book, seat);
}

void book_defer(struct book *book, struct seat *seat, uint64_t until_ns)
{
	book->desk->counts[COUNT_DEFERRED]++;
	seat->state = SEAT_DEFERRED;
	seat->until_ns = until_ns;
	seat->overdue = 0;
}

void book_settle(struct book *book, struct seat *seat, unsigned settlement)
{
	book->desk->counts[COUNT_TICKETS]++;
	book->desk->settlements[settlement % SETTLEMENTS]++;
	end(book, seat);
}

void book_look(struct book *book, uint64_t now_ns)
{
	for (uint32_t i = 0; i < BOOK_SEATS; i++) {
		struct seat *seat = &book->seats[i];

		if (seat->state == SEAT_FREE || now_ns < seat->until_ns || seat->overdue > LOOKS)
			continue;
		if (++seat->overdue != LOOKS)
			continue;
		book->desk->counts[COUNT_LOST]++;
		desk_complain(book->desk,
			      "%s %" PRIu64
			      " of kind %u, team %u, %zu bytes, has not ended %" PRIu64
			      " ms after its deadline",
			      seat->state == SEAT_OPEN ? "call" : "ticket", seat->tag, seat->kind,
			      seat->team, seat->len, (now_ns - seat->until_ns) / NS_PER_MS);
	}
}

bool book_close(struct book *book)
{
	struct desk *desk = book->desk;
	uint64_t ended = desk->counts[COUNT_OK] + desk->counts[COUNT_FAILED] +
			 desk->counts[COUNT_DEFERRED];

	for (uint32_t i = 0; i < BOOK_SEATS; i++) {
		struct seat *seat = &book->seats[i];

		if (seat->state == SEAT_FREE || seat->overdue >= LOOKS)
			continue;
		desk->counts[COUNT_LOST]++;
		desk_complain(desk, "%s %" PRIu64 " of kind %u, team %u never ended",
			      seat->state == SEAT_OPEN ? "call" : "ticket", seat->tag, seat->kind,
			      seat->team);
	}
	if (desk->counts[COUNT_CALLS] != ended ||
	    desk->counts[COUNT_DEFERRED] != desk->counts[COUNT_TICKETS] ||
	    desk->counts[COUNT_FUTURES] != desk->counts[COUNT_FUTURES_ENDED])
		desk_complain(desk,
			      "calls %" PRIu64 ", ended %" PRIu64 "; tickets %" PRIu64
			      ", settled %" PRIu64 "; futures %" PRIu64 ", ended %" PRIu64,
			      desk->counts[COUNT_CALLS], ended, desk->counts[COUNT_DEFERRED],
			      desk->counts[COUNT_TICKETS], desk->counts[COUNT_FUTURES],
			      desk->counts[COUNT_FUTURES_ENDED]);
	return desk->complaint[0] == '\0';
}
