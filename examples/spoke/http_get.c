/* SPDX-License-Identifier: Apache-2.0 */
/* An HTTP/1.1 request on an engine, for spoke top and spoke offline. */
#include "examples/spoke/http_get.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define ROOM_FIRST 16384u
#define HEAD_MAX 16384u

/* --- the answer, as bytes */

/* The value of a header line that begins at `line`, or NULL. */
static const char *header_value(const char *line, const char *name)
{
	size_t len = strlen(name);

	if (strncasecmp(line, name, len) != 0 || line[len] != ':')
		return NULL;
	line += len + 1;
	return line + strspn(line, " \t");
}

/* Reads the length of the body from the head; returns false if it is invalid. Without a length the
 * body ends with the connection. */
static bool read_length(const char *head, const char *end, bool *ret_known, size_t *ret_len)
{
	*ret_known = false;
	for (const char *line = head; line < end; line = strstr(line, "\r\n") + 2) {
		const char *value = header_value(line, "Content-Length");
		size_t digits;

		if (header_value(line, "Transfer-Encoding"))
			return false;
		if (!value)
			continue;
		digits = strspn(value, "0123456789");
		if (*ret_known || digits == 0 || digits > 9 || value[digits] != '\r')
			return false;
		*ret_known = true;
		*ret_len = strtoul(value, NULL, 10);
	}
	return true;
}

const char *http_answer_read(char *bytes, size_t len, bool over, char **ret_body, size_t *ret_len)
{
	char *end = strstr(bytes, "\r\n\r\n");
	size_t body_len = 0;
	bool known;
	size_t there;

	if (!end || (size_t)(end - bytes) > HEAD_MAX) {
		if (over || len > HEAD_MAX)
			return len ? "not an HTTP server" : "connection closed without an answer";
		return NULL;
	}
	if (strncmp(bytes, "HTTP/1.", 7) != 0)
		return "not an HTTP server";
	if (strncmp(bytes + 8, " 401", 4) == 0)
		return "the page requires its token; see --token-file";
	if (strncmp(bytes + 8, " 404", 4) == 0)
		return "HTTP status 404: no admin page, or its process has no provider";
	if (strncmp(bytes + 8, " 200", 4) != 0 && strncmp(bytes + 8, " 202", 4) != 0)
		return "HTTP status is not 200; is this the address of an admin page?";
	if (!read_length(bytes, end + 2, &known, &body_len))
		return "invalid Content-Length or Transfer-Encoding";
	*ret_body = end + 4;
	there = len - (size_t)(*ret_body - bytes);
	if (known ? there < body_len : !over)
		return over ? "incomplete answer" : NULL;
	*ret_len = known ? body_len : there;
	(*ret_body)[*ret_len] = '\0';
	return "";
}

/* --- the connection */

void http_get_end(struct http_get *get)
{
	if (get->open) {
		spoke_engine_watch(get->engine, &get->watch, 0);
		get->env->net->close(get->env->ctx, get->watch.fd);
		get->open = false;
	}
	(void)spoke_alarm_cancel(&get->late);
	free(get->answer);
	get->answer = NULL;
}

/* Calls the callback, which may begin a new GET. */
static void finish(struct http_get *get, const char *what, char *body, size_t len)
{
	char *answer = get->answer;

	get->answer = NULL;
	http_get_end(get);
	get->done(get, what, body, len);
	free(answer);
}

static void too_late(struct spoke_alarm *alarm)
{
	struct http_get *get = spoke_container_of(alarm, struct http_get, late);

	get->timed_out = true;
	finish(get, "timeout", NULL, 0);
}

static bool make_room(struct http_get *get)
{
	size_t room = get->room > 0 ? get->room * 2 : ROOM_FIRST;
	char *answer;

	if (get->answer && get->len < get->room)
		return true;
	if (room > HTTP_GET_MAX)
		return false;
	answer = realloc(get->answer, room + 1);
	if (!answer)
		return false;
	get->answer = answer;
	get->room = room;
	return true;
}

static void look(struct http_get *get, bool over)
{
	char *body = NULL;
	size_t len = 0;
	const char *what;

	get->answer[get->len] = '\0';
	what = http_answer_read(get->answer, get->len, over, &body, &len);
	get->answered = strncmp(get->answer, "HTTP/1.", 7) == 0;
	get->refused = get->answered && strncmp(get->answer + 8, " 401", 4) == 0;
	if (what)
		finish(get, *what ? what : NULL, body, len);
}

static void read_answer(struct http_get *get)
{
	ssize_t got;

	if (!make_room(get)) {
		finish(get, "answer too long", NULL, 0);
		return;
	}
	got = get->env->net->read(get->env->ctx, get->watch.fd, get->answer + get->len,
				  get->room - get->len);
	if (got == -EAGAIN || got == -EINTR)
		return;
	if (got < 0) {
		finish(get, place_error((int)got), NULL, 0);
		return;
	}
	get->len += (size_t)got;
	look(get, got == 0);
}

static void write_request(struct http_get *get)
{
	struct iovec part = { get->request + get->sent, strlen(get->request) - get->sent };
	ssize_t taken = get->env->net->write(get->env->ctx, get->watch.fd, &part, 1);

	if (taken < 0 && taken != -EAGAIN && taken != -EINTR) {
		finish(get, place_error((int)taken), NULL, 0);
		return;
	}
	if (taken > 0)
		get->sent += (size_t)taken;
	if (get->request[get->sent] == '\0')
		spoke_engine_watch(get->engine, &get->watch, SPOKE_IO_READ);
}

static void get_ready(struct spoke_watch *watch, unsigned io)
{
	struct http_get *get = spoke_container_of(watch, struct http_get, watch);

	if (get->connecting) {
		int result = get->env->net->finish(get->env->ctx, watch->fd);

		get->connecting = false;
		if (result) {
			finish(get, place_error(result), NULL, 0);
			return;
		}
	}
	if (io & SPOKE_IO_READ)
		read_answer(get);
	else
		write_request(get);
}

const char *http_get_begin(struct http_get *get, const struct spoke_address *at, const char *host,
			   const char *path, uint64_t timeout_ns)
{
	int len = snprintf(get->request, sizeof(get->request),
			   "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s%s%s\r\n",
			   get->token ? "POST" : "GET", path, host,
			   get->token ? "Content-Length: 0\r\nAuthorization: Bearer " : "",
			   get->token ? get->token : "", get->token ? "\r\n" : "");
	int result;
	int fd;

	if (len < 0 || (size_t)len >= sizeof(get->request))
		return "address too long";
	result = get->env->net->connect(get->env->ctx, at, &fd);
	if (result < 0 && result != -EINPROGRESS)
		return place_error(result);
	get->watch = (struct spoke_watch){ .ready = get_ready, .fd = fd };
	get->open = true;
	get->connecting = result < 0;
	get->timed_out = false;
	get->sent = 0;
	get->len = 0;
	get->room = 0;
	spoke_engine_watch(get->engine, &get->watch, SPOKE_IO_WRITE);
	if (spoke_alarm_after(get->engine, &get->late, timeout_ns, too_late)) {
		http_get_end(get);
		return "cannot set a timer";
	}
	return NULL;
}
