/* SPDX-License-Identifier: Apache-2.0 */
/* Records the bytes that a gateway of spoke answers, so that the floor sends the same. */
#include "comet.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Sends a request, and reads up to the end of the first event with an id. */
static size_t ask(const struct place *place, char *bytes, size_t size)
{
	static const char request[] = "GET /spoke/events?user=u000000 HTTP/1.1\r\n"
				      "Host: localhost\r\n"
				      "Accept: text/event-stream\r\n\r\n";
	const struct timeval patience = { .tv_sec = 5 };
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons(place->http),
					.sin_addr.s_addr = place->host };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t len = 0;
	const char *id = NULL;

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience)) ||
	    connect(fd, (const struct sockaddr *)&to, sizeof(to)))
		die("cannot connect to the gateway: errno %d", errno);
	write_all(fd, request, sizeof(request) - 1);
	while (id == NULL || strstr(id, "\n\n") == NULL) {
		ssize_t got = recv(fd, bytes + len, size - 1 - len, 0);

		if (got <= 0)
			die("no event in the gateway's first %zu bytes", len);
		len += (size_t)got;
		bytes[len] = '\0';
		id = strstr(bytes, "\nid: ");
	}
	(void)close(fd);
	return len;
}

size_t answer_record(char *bytes, size_t size)
{
	struct gateway_plan plan = { .host = htonl(INADDR_LOOPBACK),
				     .conns_max = 10,
				     .keepalive_ns = 25 * SECOND };
	struct helper gateway;
	struct place place;
	size_t len;

	helper_start(&gateway, gateway_play, &plan);
	helper_hear(&gateway, NULL, &place, sizeof(place));
	len = ask(&place, bytes, size);
	helper_end(&gateway);
	return len;
}
