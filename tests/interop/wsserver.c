/* SPDX-License-Identifier: Apache-2.0 */
/*
 * wsserver: a WebSocket server for tests, made of the deciders of transport/http alone. It prints
 * its port and runs until its standard input ends. It sends each message back; a text "close CODE
 * REASON" closes instead, "ping TEXT" pings. The subprotocol "spoke.test" is chosen if it is
 * offered.
 */
#define _GNU_SOURCE

#include "transport/http/websocket.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#define PEERS 16u
#define LIMIT 65536u /* bytes of a message */
#define ROOM (LIMIT + 4096u)
#define PROTOCOL "spoke.test"

struct peer {
	int fd; /* -1: unused */
	bool is_open;
	struct spokei_websocket websocket;
	size_t held; /* bytes of the head, or kept for the reader */
	unsigned char bytes[ROOM];
};

static struct peer peers[PEERS];

static void fail(const char *what)
{
	perror(what);
	exit(EXIT_FAILURE);
}

static void drop(struct peer *peer)
{
	(void)close(peer->fd);
	*peer = (struct peer){ .fd = -1 };
}

static void send_all(struct peer *peer, const void *bytes, size_t len)
{
	const char *at = bytes;

	while (len > 0) {
		ssize_t sent = send(peer->fd, at, len, MSG_NOSIGNAL);

		if (sent < 0)
			return;
		at += sent;
		len -= (size_t)sent;
	}
}

/* Returns the value of a field of a head that ends with NUL. */
static struct spoke_span find_field(const char *head, const char *name)
{
	size_t len = strlen(name);

	for (const char *line = strstr(head, "\r\n"); line; line = strstr(line, "\r\n")) {
		line += 2;
		if (strncasecmp(line, name, len) == 0 && line[len] == ':') {
			const char *value = line + len + 1 + strspn(line + len + 1, " \t");

			return (struct spoke_span){ value, strcspn(value, "\r") };
		}
	}
	return (struct spoke_span){ NULL, 0 };
}

/* Returns false if the connection is over. */
static bool answer_head(struct peer *peer, const char *head)
{
	const struct spokei_upgrade request = {
		.upgrade = find_field(head, "Upgrade"),
		.connection = find_field(head, "Connection"),
		.key = find_field(head, "Sec-WebSocket-Key"),
		.version = find_field(head, "Sec-WebSocket-Version"),
		.protocols = find_field(head, "Sec-WebSocket-Protocol"),
	};
	int status = spokei_upgrade_check(&request);
	char answer[SPOKEI_UPGRADE_HEAD_MAX];
	size_t len;

	if (status == 101) {
		len = spokei_upgrade_head(&request,
					  spokei_upgrade_offers(&request, PROTOCOL) ? PROTOCOL
										    : NULL,
					  answer);
	} else {
		len = (size_t)snprintf(answer, sizeof(answer),
				       "HTTP/1.1 %d No\r\nUpgrade: websocket\r\n"
				       "Sec-WebSocket-Version: 13\r\nContent-Length: 0\r\n"
				       "Connection: close\r\n\r\n",
				       status);
	}
	send_all(peer, answer, len);
	return status == 101;
}

static void send_message(struct peer *peer, enum spokei_websocket_opcode opcode,
			 struct spoke_span data)
{
	unsigned char head[SPOKEI_WEBSOCKET_HEAD_MAX];

	send_all(peer, head, spokei_websocket_head(opcode, data.len, head));
	send_all(peer, data.data, data.len);
}

static void send_close(struct peer *peer, unsigned code, const char *reason)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];

	send_all(peer, frame, spokei_websocket_close(code, reason, frame));
	(void)shutdown(peer->fd, SHUT_WR);
}

static void send_control(struct peer *peer, enum spokei_websocket_opcode opcode,
			 struct spoke_span data)
{
	unsigned char frame[2 + SPOKEI_WEBSOCKET_CONTROL_MAX];

	send_all(peer, frame, spokei_websocket_control(opcode, data.data, data.len, frame));
}

static void take_text(struct peer *peer, struct spoke_span text)
{
	char command[128] = "";
	char *behind;
	unsigned long code;

	if (text.len < sizeof(command))
		memcpy(command, text.data, text.len);
	if (strncmp(command, "close ", 6) == 0) {
		code = strtoul(command + 6, &behind, 10);
		send_close(peer, (unsigned)code, *behind == ' ' ? behind + 1 : NULL);
	} else if (strncmp(command, "ping ", 5) == 0) {
		send_control(peer, SPOKEI_WEBSOCKET_OP_PING,
			     (struct spoke_span){ command + 5, strlen(command + 5) });
	} else {
		send_message(peer, SPOKEI_WEBSOCKET_OP_TEXT, text);
	}
}

static void take_end(struct peer *peer, const struct spokei_websocket_event *event)
{
	char reason[SPOKEI_WEBSOCKET_REASON_MAX + 1];

	(void)snprintf(reason, sizeof(reason), "%.*s", (int)event->data.len,
		       (const char *)event->data.data);
	send_close(peer, event->answer, reason);
}

static void take(struct peer *peer, enum spokei_websocket_verdict verdict,
		 const struct spokei_websocket_event *event)
{
	switch (verdict) {
	case SPOKEI_WEBSOCKET_GIVES_TEXT:
		take_text(peer, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_BINARY:
		send_message(peer, SPOKEI_WEBSOCKET_OP_BINARY, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_PING:
		send_control(peer, SPOKEI_WEBSOCKET_OP_PONG, event->data);
		break;
	case SPOKEI_WEBSOCKET_GIVES_CLOSE:
	case SPOKEI_WEBSOCKET_GIVES_FAILURE:
		take_end(peer, event);
		break;
	case SPOKEI_WEBSOCKET_GIVES_PONG:
	case SPOKEI_WEBSOCKET_MORE:
		break;
	}
}

/* Reads frames from the bytes from `at` on. */
static void take_frames(struct peer *peer, size_t at, size_t end)
{
	struct spokei_websocket_input input = { .bytes = peer->bytes, .at = at, .end = end };
	struct spokei_websocket_event event;
	enum spokei_websocket_verdict verdict;

	while ((verdict = spokei_websocket_read(&peer->websocket, &input, LIMIT, &event)) !=
	       SPOKEI_WEBSOCKET_MORE)
		take(peer, verdict, &event);
	peer->held = peer->websocket.kept;
}

static void take_head(struct peer *peer, size_t end)
{
	unsigned char *stop = memmem(peer->bytes, end, "\r\n\r\n", 4);
	bool is_accepted;

	peer->held = end;
	if (stop == NULL)
		return;
	stop[2] = '\0';
	is_accepted = answer_head(peer, (const char *)peer->bytes);
	if (!is_accepted) {
		drop(peer);
		return;
	}
	peer->is_open = true;
	take_frames(peer, (size_t)(stop + 4 - peer->bytes), end);
}

static void serve(struct peer *peer)
{
	ssize_t len = recv(peer->fd, peer->bytes + peer->held, ROOM - 1 - peer->held, 0);

	if (len <= 0)
		drop(peer);
	else if (peer->is_open)
		take_frames(peer, peer->held, peer->held + (size_t)len);
	else
		take_head(peer, (size_t)len + peer->held);
}

static void accept_peer(int listener)
{
	int fd = accept(listener, NULL, NULL);

	for (size_t i = 0; i < PEERS && fd >= 0; i++) {
		if (peers[i].fd < 0) {
			peers[i].fd = fd;
			return;
		}
	}
	if (fd >= 0)
		(void)close(fd);
}

static int open_listener(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0 || bind(fd, (struct sockaddr *)&address, len) != 0 || listen(fd, 16) != 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) != 0)
		fail("listener");
	(void)printf("%u\n", ntohs(address.sin_port));
	(void)fflush(stdout);
	return fd;
}

int main(void)
{
	int listener = open_listener();

	for (size_t i = 0; i < PEERS; i++)
		peers[i].fd = -1;
	for (;;) {
		struct pollfd ready[PEERS + 2] = { { .fd = STDIN_FILENO, .events = POLLIN },
						   { .fd = listener, .events = POLLIN } };

		for (size_t i = 0; i < PEERS; i++)
			ready[2 + i] = (struct pollfd){ .fd = peers[i].fd, .events = POLLIN };
		if (poll(ready, PEERS + 2, -1) < 0 && errno != EINTR)
			fail("poll");
		if (ready[0].revents)
			return EXIT_SUCCESS;
		for (size_t i = 0; i < PEERS; i++)
			if (ready[2 + i].revents)
				serve(&peers[i]);
		if (ready[1].revents)
			accept_peer(listener);
	}
}
