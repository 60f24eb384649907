/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats the line of the access log for a request:
 *
 *     2026-01-31T23:59:59.123Z "10.0.0.7:40000" "demo.Echo" "1.0" "" "echo" 12 OK 0.123
 *
 * time of the answer, peer, service, version, group, method, bytes of the arguments, name of the
 * error, ms since the request arrived; then "abandoned" if the connection was closed before the
 * answer, and the peer's strongest name other than its address, as in: as "uid:1000". Text from
 * peers is escaped, and long names are cut. Pure functions.
 */
#ifndef SPOKEI_CLUSTER_PROVIDER_ACCESS_LINE_H
#define SPOKEI_CLUSTER_PROVIDER_ACCESS_LINE_H

#include <spoke/value.h>

#include <stdbool.h>

#define SPOKEI_ACCESS_TIME 80u   /* bytes for a time, with the NUL; more than needed */
#define SPOKEI_ACCESS_LINE 1280u /* bytes for a line, with its end and the NUL */

struct spokei_access_line {
	const char *time;
	const char *peer;
	const char *identity; /* NULL: the address is all that is known */
	struct spoke_span service;
	struct spoke_span version;
	struct spoke_span group;
	struct spoke_span method;
	size_t arg_len;
	int error;
	bool abandoned;
	uint64_t took_ns;
};

/* Prints ns since 1970 as ISO 8601, UTC, with ms. */
void spokei_access_print_time(uint64_t wall_ns, char text[SPOKEI_ACCESS_TIME]);

/* Prints the line, without an end. Returns its length. */
size_t spokei_access_print_line(const struct spokei_access_line *line,
				char text[SPOKEI_ACCESS_LINE]);

#endif
