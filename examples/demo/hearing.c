/* SPDX-License-Identifier: Apache-2.0 */
/* Reads the reports of the processes and watches their exits. */
#define _GNU_SOURCE
#include "examples/demo/hearing.h"
#include "examples/demo/cast.h"
#include "examples/demo/pauses.h"
#include "examples/demo/revive.h"
#include "examples/demo/story.h"

#include <ctype.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define PEERS 256
#define GRACE_NS (100 * PLAN_MS) /* a process that was just waked may not have sent data yet */

/* Processes by the addresses they connect from, as reported by providers; the latest ones. */
static struct {
	char address[64];
	const struct actor *actor;
} peers[PEERS];
static unsigned peers_next;

static struct actor *actor_of_name(const char *name)
{
	for (unsigned i = 0; i < cast.count; i++)
		if (strcmp(cast.actors[i].name, name) == 0)
			return &cast.actors[i];
	return NULL;
}

static void note_peer(const struct message *message)
{
	unsigned at = peers_next++ % PEERS;

	(void)snprintf(peers[at].address, sizeof(peers[at].address), "%s", message->peer);
	peers[at].actor = actor_of_name(message->text);
}

/* Returns NULL if the address is unknown. */
static const struct actor *actor_at(const char *address)
{
	for (unsigned i = 0; i < cast.count; i++)
		if (strcmp(cast.actors[i].address, address) == 0)
			return &cast.actors[i];
	for (unsigned i = 1; i <= PEERS; i++) {
		unsigned at = (peers_next + PEERS - i) % PEERS;

		if (strcmp(peers[at].address, address) == 0)
			return peers[at].actor;
	}
	return NULL;
}

/* --- texts */

/* Replaces addresses by names. */
static void translate(const char *text, char *out, size_t size)
{
	size_t len = 0;

	while (*text != '\0' && len + CAST_NAME < size) {
		char address[64];
		size_t digits = strspn(text, "0123456789.:");
		const struct actor *actor = NULL;

		/* A colon after the address belongs to the text. */
		while (digits > 0 && !isdigit((unsigned char)text[digits - 1]))
			digits--;
		if (digits >= strlen("1.1.1.1:1") && digits < sizeof(address)) {
			(void)snprintf(address, sizeof(address), "%.*s", (int)digits, text);
			actor = actor_at(address);
		}
		if (actor) {
			len += (size_t)snprintf(out + len, size - len, "%s", actor->name);
		} else {
			if (digits == 0)
				digits = 1;
			if (len + digits >= size)
				break;
			memcpy(out + len, text, digits);
			len += digits;
		}
		text += digits;
	}
	out[len] = '\0';
}

/* --- lines */

static bool was_frozen(const struct actor *actor, uint64_t at_ns)
{
	return actor->frozen_ns && at_ns >= actor->frozen_ns &&
	       (actor->waked_ns == 0 || at_ns <= actor->waked_ns + GRACE_NS);
}

/* Was the peer frozen? NULL: a peer whose name is not known yet. */
static bool was_out(const struct actor *peer, uint64_t at_ns)
{
	if (peer)
		return was_frozen(peer, at_ns);
	for (unsigned i = 0; i < cast.count; i++)
		if (!cast.actors[i].provides && was_frozen(&cast.actors[i], at_ns))
			return true;
	return false;
}

static bool is_out(const struct actor *actor, uint64_t at_ns)
{
	return actor->pid == 0 || was_frozen(actor, at_ns);
}

/* The reports of two processes may come in another order than their events happened. */
static void note_holder(struct actor *holder, const struct message *message)
{
	for (unsigned i = 0; i < cast.count; i++) {
		struct actor *other = &cast.actors[i];

		if (!other->holds || other == holder)
			continue;
		other->holds = false;
		if (is_out(other, message->at_ns))
			cast.taken_over++;
	}
	holder->holds = true;
	holder->fence = message->number;
}

static void note_event(struct actor *actor, const struct message *message)
{
	const struct actor *peer = actor_at(message->peer);

	if (actor->waked)
		actor->first = message->tag;
	actor->waked = false;
	if (actor->watched == NULL || peer == NULL || peer == actor->watched) {
		actor->seen[message->tag]++;
		if (message->tag == TAG_SUSPECT && message->number > actor->missed)
			actor->missed = message->number;
	}
	if (message->tag == TAG_LISTENS)
		(void)snprintf(actor->address, sizeof(actor->address), "%s", message->peer);
	if (message->tag == TAG_ADMIN)
		(void)snprintf(actor->page, sizeof(actor->page), "%s", message->peer);
	if (message->tag == TAG_HELD)
		note_holder(actor, message);
	if (message->tag == TAG_LOST || message->tag == TAG_GIVEN)
		actor->holds = false;
	if (message->tag != TAG_CLOSED || message->user != SPOKE_EVENT_OF_HEARTBEAT)
		return;
	cast.idle_closes++;
	if (!was_out(peer, message->at_ns))
		pauses_note_close(actor, peer, message->at_ns);
}

/* The driver knows of the pauses that it causes. */
static void note_pause(const struct actor *actor, const struct message *message)
{
	if (!was_frozen(actor, message->at_ns))
		pauses_note(actor, message->at_ns - message->number * PLAN_MS, message->at_ns);
}

static void show_event(const struct actor *actor, const struct message *message)
{
	char text[CAST_TEXT];

	if ((cast.quiet && message->tag != TAG_RESTS && message->tag != TAG_TOLD) ||
	    (message->tag == TAG_PULSE && !cast.pulses))
		return;
	if (message->tag == TAG_LISTENS || message->tag == TAG_ADMIN)
		(void)snprintf(text, sizeof(text), "%s", message->text);
	else
		translate(message->text, text, sizeof(text));
	story_event(message->at_ns, actor->name, message->user, text);
}

static void note_counts(struct actor *actor, const struct message *message)
{
	memcpy(actor->counts, message->counts, sizeof(actor->counts));
	if (actor->frozen_ns == 0 && actor->counts[COUNT_LATE_US] > actor->late_us)
		actor->late_us = actor->counts[COUNT_LATE_US];
}

/* Reads the log of Redis. */
static void take_log(struct actor *actor, const char *line)
{
	if (strstr(line, "eady to accept connections") == NULL)
		return;
	actor->seen[TAG_LISTENS]++;
	story_event(story_now(), actor->name, SPOKE_EVENT_OF_NONE,
		    "Redis, a process of its own: listens at a unix socket");
}

static void take_line(struct actor *actor, char *line)
{
	struct message message;

	if (actor->alias[0] != '\0') {
		take_log(actor, line);
		return;
	}
	message_read(line, &message);
	switch (message.kind) {
	case MESSAGE_EVENT:
		if (message.tag == TAG_PAUSED) {
			note_pause(actor, &message);
			return;
		}
		show_event(actor, &message);
		note_event(actor, &message);
		return;
	case MESSAGE_COUNTED:
		note_counts(actor, &message);
		return;
	case MESSAGE_PEER:
		note_peer(&message);
		return;
	case MESSAGE_NONE:
		(void)cast_trouble("%s: invalid report line", actor->name);
		return;
	}
}

static void take_bytes(struct actor *actor, const char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		if (bytes[i] != '\n') {
			actor->long_line |= actor->line_len == sizeof(actor->line) - 1;
			if (!actor->long_line)
				actor->line[actor->line_len++] = bytes[i];
			continue;
		}
		actor->line[actor->line_len] = '\0';
		if (!actor->long_line)
			take_line(actor, actor->line);
		actor->line_len = 0;
		actor->long_line = false;
	}
}

static void read_some(struct actor *actor)
{
	char bytes[4096];
	ssize_t len = read(actor->from, bytes, sizeof(bytes));

	if (len > 0) {
		take_bytes(actor, bytes, (size_t)len);
		return;
	}
	if (len < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	(void)close(actor->from);
	actor->from = -1;
}

/* --- processes */

/* Can an action of the page have caused this exit: kill, or drain? */
static bool is_visitors_end(int status)
{
	return WIFSIGNALED(status) ? WTERMSIG(status) == SIGKILL : WEXITSTATUS(status) == 0;
}

static void note_end(struct actor *actor, int status)
{
	/* Read its remaining output first. */
	while (actor->from >= 0)
		read_some(actor);
	actor->pid = 0;
	actor->status = status;
	if (actor->leaving || (cast.live && is_visitors_end(status)))
		return;
	if (WIFSIGNALED(status))
		(void)cast_trouble("%s was killed by signal %d, not by the driver", actor->name,
				   WTERMSIG(status));
	else
		(void)cast_trouble("%s exited unexpectedly with status %d", actor->name,
				   WEXITSTATUS(status));
}

static void look_after(struct actor *actor)
{
	int status;

	while (actor->pid && waitpid(actor->pid, &status, WNOHANG | WUNTRACED | WCONTINUED) > 0) {
		if (WIFSTOPPED(status))
			actor->stopped = true;
		else if (WIFCONTINUED(status))
			actor->stopped = false;
		else
			note_end(actor, status);
	}
}

void hearing_hear(int ms)
{
	const struct timespec patience = { .tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L };
	struct pollfd fds[CAST_MAX];
	struct actor *of[CAST_MAX];
	sigset_t none;
	nfds_t count = 0;

	for (unsigned i = 0; i < cast.count; i++) {
		if (cast.actors[i].from < 0)
			continue;
		fds[count] = (struct pollfd){ .fd = cast.actors[i].from, .events = POLLIN };
		of[count++] = &cast.actors[i];
	}
	(void)sigemptyset(&none);
	if (ppoll(fds, count, &patience, &none) > 0)
		for (nfds_t i = 0; i < count; i++)
			if (fds[i].revents)
				read_some(of[i]);
	for (unsigned i = 0; i < cast.count; i++)
		look_after(&cast.actors[i]);
	if (cast.live && cast.trouble[0] == '\0')
		revive_tend();
	story_show(false);
}
