/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The access log: a line for every request of a provider, in the engine's log or in a file. It is a
 * filter, the first one, so that it sees the requests that other filters refuse. Of those that no
 * filter sees, because there is no such method or they cannot be read, it is told apart.
 *
 * Lines for a file are collected in memory. A thread of the pool writes them, once a second or when
 * there are many. While it writes, 64 KiB more fit; further lines are left out, like those that
 * could not be written. The file contains how many are missing. On the engine's thread.
 */
#ifndef SPOKEI_CLUSTER_SERVE_ACCESS_LOG_H
#define SPOKEI_CLUSTER_SERVE_ACCESS_LOG_H

#include <spoke/filter.h>
#include <spoke/value.h>

#include <stdbool.h>

struct spokei_access_log;
struct spokei_conn;
struct spokei_filters;
struct spokei_message;
struct spokei_settings;

/* Puts the log that the settings name before all filters: "true" for the engine's log, else a path,
 * which is copied; without a name *ret_log is NULL. Returns 0, SPOKE_EINVAL (empty),
 * SPOKE_EUNSUPPORTED (the environment cannot append to files; an event reports it) or
 * SPOKE_ENOMEM. */
SPOKE_MUST_USE int spokei_access_log_new(const struct spokei_settings *settings,
					 struct spokei_filters *filters,
					 struct spokei_access_log **ret_log);

/* Adds the line of a request that is answered with this error without being served. */
void spokei_access_log_refused(struct spokei_access_log *log, const struct spokei_conn *conn,
			       const struct spokei_message *message, int error);

/* Writes the lines that it has, a little later, and frees the log. It is not used as a filter any
 * more. NULL is fine. Requires the engine, but not that it runs. */
void spokei_access_log_end(struct spokei_access_log *log);

/* --- the format of a line
 *
 *     2026-01-31T23:59:59.123Z "10.0.0.7:40000" "demo.Echo" "1.0" "" "echo" 12 OK 0.123
 *
 * time of the answer, peer, service, version, group, method, bytes of the arguments, name of the
 * error, ms since the request arrived; then "abandoned" if the connection was closed before the
 * answer, and the peer's strongest name other than its address, as in: as "uid:1000". Text from
 * peers is escaped, and long names are cut. Pure functions.
 */

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
