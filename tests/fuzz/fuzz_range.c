/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes ranges of addresses against the system's parser. What spoke reads as an address, the
 * system reads as the same number. Each edge of a range lies inside, and its neighbour does not.
 */
#include "core/text/range.h"
#include "tests/fuzz/fuzz.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

static uint64_t number_of(const unsigned char *bytes, unsigned len)
{
	uint64_t number = 0;

	for (unsigned i = 0; i < len; i++)
		number = number << 8 | bytes[i];
	return number;
}

static void try_machine(const char *text, struct spoke_span span)
{
	struct spokei_machine machine;
	unsigned char bytes[16];

	if (!spokei_machine_read(span, &machine))
		return;
	demand(strlen(text) == span.len, "no NUL in an address");
	if (inet_pton(AF_INET, text, bytes) == 1) {
		demand(machine.kind == SPOKEI_MACHINE_V4, "IPv4 is IPv4");
		demand(machine.high == 0 && machine.low == number_of(bytes, 4), "the same number");
		return;
	}
	demand(inet_pton(AF_INET6, text, bytes) == 1, "the system reads it, too");
	if (machine.kind == SPOKEI_MACHINE_V4) {
		demand(number_of(bytes, 8) == 0 && number_of(bytes + 8, 4) == 0xffff, "is mapped");
		demand(machine.low == number_of(bytes + 12, 4), "the same number");
		return;
	}
	demand(machine.high == number_of(bytes, 8) && machine.low == number_of(bytes + 8, 8),
	       "the same number");
}

static void try_range(struct spoke_span span)
{
	struct spokei_range range;
	struct spokei_machine edge;
	const char *why = spokei_range_read(span, &range);

	if (why) {
		demand(*why != '\0', "an error has a reason");
		return;
	}
	edge = range.base;
	demand(spokei_range_has(&range, &edge), "contains its first address");
	edge.high |= ~range.high_mask;
	edge.low |= ~range.low_mask;
	demand(spokei_range_has(&range, &edge), "contains its last address");
	edge.low++;
	edge.high += edge.low == 0;
	demand((edge.low == range.base.low && edge.high == range.base.high) ||
		       (range.low_mask == 0 && range.high_mask == 0) ||
		       !spokei_range_has(&range, &edge),
	       "ends there");
	edge = range.base;
	edge.kind = SPOKEI_MACHINE_OTHER;
	demand(!spokei_range_has(&range, &edge), "contains no machine of another kind");
}

FUZZ(range)
{
	char *text = malloc(size + 1);
	struct spoke_span span = { text, size };

	demand(text != NULL, "there is memory");
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	try_machine(text, span);
	try_range(span);
	free(text);
	return 0;
}
