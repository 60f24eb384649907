/* SPDX-License-Identifier: Apache-2.0 */
/* Browsers of the demo: connects, and reads events. */
#define _GNU_SOURCE
#include "examples/demo/browsers.h"
#include "examples/demo/story.h"

#include <arpa/inet.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MS UINT64_C(1000000)
#define STEP_MS 5

bool browsers_begin(struct browsers *browsers, unsigned count, const char *address)
{
	const char *colon = strrchr(address, ':');

	*browsers = (struct browsers){ .count = count };
	browsers->at.sin_family = AF_INET;
	browsers->at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	browsers->at.sin_port = htons((uint16_t)(colon ? strtoul(colon + 1, NULL, 10) : 0));
	(void)snprintf(browsers->host, sizeof(browsers->host), "%s", address);
	for (unsigned i = 0; i < count; i++) {
		browsers->all[i].fd = -1;
		browsers->all[i].next = 1;
	}
	return colon != NULL;
}

/* Like a browser, it forgets an event that has not come completely. */
static void hang_up(struct browser *browser)
{
	if (browser->fd >= 0)
		(void)close(browser->fd);
	browser->fd = -1;
	browser->up = false;
	browser->begun = false;
	browser->input_len = 0;
	browser->due_ns = story_now() + browser->retry_ns;
}

void browsers_end(struct browsers *browsers)
{
	for (unsigned i = 0; i < browsers->count; i++)
		hang_up(&browsers->all[i]);
}

void browsers_sleep(struct browser *browser)
{
	hang_up(browser);
	browser->asleep = true;
}

void browsers_wake(struct browser *browser)
{
	browser->asleep = false;
	browser->due_ns = 0;
}

void browsers_mark(struct browsers *browsers)
{
	for (unsigned i = 0; i < browsers->count; i++)
		browsers->all[i].attempts = 0;
}

unsigned browsers_up(const struct browsers *browsers)
{
	unsigned up = 0;

	for (unsigned i = 0; i < browsers->count; i++)
		up += browsers->all[i].up;
	return up;
}

unsigned browsers_done(const struct browsers *browsers, unsigned number)
{
	unsigned done = 0;

	for (unsigned i = 0; i < browsers->count; i++)
		done += browsers->all[i].next == number + 1;
	return done;
}

/* --- events */

static void take_offer(struct browser *browser, unsigned number)
{
	if (number < browser->next) {
		browser->doubled++;
		return;
	}
	if (browser->told)
		browser->missed += number - browser->next;
	else
		browser->untold += number - browser->next;
	browser->told = false;
	browser->next = number + 1;
	browser->got++;
}

/* Copies the value of a field, e.g. "id: "; "" if the event has none. */
static void field(const char *event, const char *name, char *value, size_t size)
{
	const char *at = event;

	*value = '\0';
	while (at && strncmp(at, name, strlen(name)) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (at)
		(void)snprintf(value, size, "%.*s", (int)strcspn(at + strlen(name), "\n"),
			       at + strlen(name));
}

static void take_event(struct browser *browser, const char *event)
{
	char name[16];
	char id[sizeof(browser->last)];
	char number[16];

	field(event, "event: ", name, sizeof(name));
	field(event, "id: ", id, sizeof(id));
	field(event, "retry: ", number, sizeof(number));
	if (*number)
		browser->retry_ns = strtoul(number, NULL, 10) * MS;
	if (*id)
		memcpy(browser->last, id, sizeof(id));
	field(event, "data: ", number, sizeof(number));
	if (strcmp(name, "hello") == 0) {
		browser->up = true;
		browser->up_ns = story_now();
	} else if (strcmp(name, "lost") == 0) {
		browser->lost++;
		browser->told = true;
	} else if (strcmp(name, "offer") == 0) {
		take_offer(browser, (unsigned)strtoul(number, NULL, 10));
	}
}

/* Cuts the input into events. The head of the response ends with an empty line, too. */
static void take_input(struct browser *browser)
{
	char *at = browser->input;
	char *end;

	browser->input[browser->input_len] = '\0';
	while ((end = strstr(at, "\n\n")) != NULL || (end = strstr(at, "\r\n\r\n")) != NULL) {
		size_t len = *end == '\r' ? 4 : 2;

		*end = '\0';
		take_event(browser, at);
		at = end + len;
	}
	browser->input_len -= (size_t)(at - browser->input);
	memmove(browser->input, at, browser->input_len);
}

/* --- connections */

static void begin(const struct browsers *browsers, struct browser *browser)
{
	browser->attempts++;
	browser->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	/* On loopback this does not block. */
	if (browser->fd < 0 ||
	    connect(browser->fd, (const struct sockaddr *)&browsers->at, sizeof(browsers->at)) != 0)
		hang_up(browser);
}

static void ask(const struct browsers *browsers, struct browser *browser)
{
	char request[512];
	int len = snprintf(request, sizeof(request),
			   "GET /spoke/events?user=u%u HTTP/1.1\r\nHost: %s\r\n"
			   "Accept: text/event-stream\r\n%s%s%s\r\n",
			   (unsigned)(browser - browsers->all) + 1, browsers->host,
			   *browser->last ? "Last-Event-ID: " : "", browser->last,
			   *browser->last ? "\r\n" : "");

	browser->begun = true;
	if (send(browser->fd, request, (size_t)len, MSG_NOSIGNAL) != len)
		hang_up(browser);
}

static void receive(struct browser *browser)
{
	size_t room = sizeof(browser->input) - 1 - browser->input_len;
	ssize_t got = recv(browser->fd, browser->input + browser->input_len, room, MSG_DONTWAIT);

	if (got <= 0) {
		hang_up(browser);
		return;
	}
	browser->input_len += (size_t)got;
	take_input(browser);
}

void browsers_step(struct browsers *browsers)
{
	struct pollfd fds[BROWSERS_MAX];
	uint64_t now_ns = story_now();

	for (unsigned i = 0; i < browsers->count; i++) {
		struct browser *browser = &browsers->all[i];

		if (browser->fd < 0 && !browser->asleep && browser->due_ns <= now_ns)
			begin(browsers, browser);
		if (browser->fd >= 0 && !browser->begun)
			ask(browsers, browser);
		fds[i] = (struct pollfd){ .fd = browser->frozen ? -1 : browser->fd,
					  .events = POLLIN };
	}
	if (poll(fds, browsers->count, STEP_MS) <= 0)
		return;
	for (unsigned i = 0; i < browsers->count; i++)
		if (fds[i].revents)
			receive(&browsers->all[i]);
}
