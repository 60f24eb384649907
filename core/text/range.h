/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Ranges of addresses in lists of peers: "10.0.0.0/8", "2001:db8::/32", one address, or
 * "unix" for all peers on this machine's unix sockets. Text is read strictly: no leading zeros, no
 * bits beyond the prefix, no zone, no port. IPv4 mapped into IPv6 is IPv4, in ranges and in peers;
 * an IPv6 range contains no IPv4 address. Pure; any thread.
 */
#ifndef SPOKEI_CORE_TEXT_RANGE_H
#define SPOKEI_CORE_TEXT_RANGE_H

#include <spoke/env.h>
#include <spoke/value.h>

enum spokei_machine_kind {
	SPOKEI_MACHINE_OTHER, /* lies in no range */
	SPOKEI_MACHINE_UNIX,
	SPOKEI_MACHINE_V4,
	SPOKEI_MACHINE_V6,
};

/* The machine's part of an address, without the port. */
struct spokei_machine {
	enum spokei_machine_kind kind;
	uint64_t high; /* the first 8 bytes of an IPv6 address */
	uint64_t low;  /* the last 8, or the number of an IPv4 address */
};

struct spokei_range {
	struct spokei_machine base;
	uint64_t high_mask;
	uint64_t low_mask;
};

/* Reads an address in digits, without brackets. */
SPOKE_MUST_USE bool spokei_machine_read(struct spoke_span text, struct spokei_machine *ret);

/* Returns whether a host consists of digits and dots, and is no IPv4 address, e.g. "999.1.1.1" or
 * "127.1": a mistake, because no name does. */
bool spokei_machine_misspelt(struct spoke_span host);

/* Writes an address as RFC 5952 recommends, e.g. "2001:db8::1". Returns its length; 0: it has no
 * digits, or `size` is too small. */
size_t spokei_machine_print(const struct spokei_machine *machine, char *text, size_t size);

/* Returns whether both are the same. */
static inline bool spokei_machine_same(const struct spokei_machine *a,
				       const struct spokei_machine *b)
{
	return a->kind == b->kind && a->high == b->high && a->low == b->low;
}

/* Returns the machine of a peer, on any network. */
struct spokei_machine spokei_machine_of(const struct spoke_env *env,
					const struct spoke_address *address);

/* Returns the first address of the network of an IPv6 address whose prefix has `prefix6` bits, at
 * most 128; other machines as they are. */
struct spokei_machine spokei_machine_cut(const struct spokei_machine *machine, unsigned prefix6);

/* Returns whether the machine is this one: a unix socket, 127.0.0.0/8 or ::1. */
bool spokei_machine_is_here(const struct spokei_machine *machine);

/* Reads a range. Returns NULL, or why the text is none, as a part of a sentence. */
SPOKE_MUST_USE const char *spokei_range_read(struct spoke_span text, struct spokei_range *ret);

/* Returns whether the range contains the machine. */
static inline bool spokei_range_has(const struct spokei_range *range,
				    const struct spokei_machine *machine)
{
	return machine->kind == range->base.kind &&
	       (((machine->high ^ range->base.high) & range->high_mask) |
		((machine->low ^ range->base.low) & range->low_mask)) == 0;
}

/* Returns whether the range contains all IPv4 or all IPv6 addresses. */
static inline bool spokei_range_is_whole(const struct spokei_range *range)
{
	const struct spokei_machine first = { .kind = range->base.kind };
	const struct spokei_machine last = {
		.kind = range->base.kind,
		.high = range->base.kind == SPOKEI_MACHINE_V6 ? UINT64_MAX : 0,
		.low = range->base.kind == SPOKEI_MACHINE_V6 ? UINT64_MAX : UINT32_MAX,
	};

	return range->base.kind != SPOKEI_MACHINE_UNIX && spokei_range_has(range, &first) &&
	       spokei_range_has(range, &last);
}

#endif
