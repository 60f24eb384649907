/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A thin RPC: what a call needs and nothing else, as the limit of the other peers. Frames of Dubbo
 * whose headers and lengths are checked, ids and a ring of pending calls, deadlines in order, names
 * that are compared with those of the request before, a text that is checked, a handler and a
 * callback behind pointers, counters, output that leaves early in a long turn. It knows one method
 * and one time-out, keeps no bounds, and ends the program at the first error.
 */
#include "echo.h"
#include "meter.h"
#include "peer.h"
#include "stage.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define IN_SIZE ((size_t)256 * 1024)
#define OUT_SIZE ((size_t)64 * 1024) /* at first */
#define PENDING 4096u                /* calls of a link, a power of two */
#define NAMES_MAX 256u               /* bytes */
#define NAMES 5                      /* texts before the argument */
#define BODY_MAX ((uint32_t)8 * 1024 * 1024)
#define EARLY 4096u   /* bytes; the best of 128 to 4,096 for 64 calls and for 256 */
#define EARLY_MORE 5u /* as many bytes are needed for the next early write of a turn */
#define EPOLL_WAIT_MS 1000
#define TIMEOUT_NS (1000 * HOST_MS)

#define HEADER_LEN 16u
#define MAGIC 0xdabb
#define FLAGS_REQUEST 0xc6 /* two ways, msgpack */
#define FLAGS_REPLY 0x06
#define STATUS_OK 20
#define REPLY_VALUE 0x01 /* before the value */

struct header {
	uint16_t magic;
	uint8_t flags;
	uint8_t status;
	uint64_t id;
	uint32_t len; /* of the body; all numbers are big-endian */
} __attribute__((packed));

struct bytes {
	const uint8_t *at;
	size_t len;
};

struct request {
	struct link *link;
	uint64_t id;
	struct bytes text;
};

struct call {
	struct call *next; /* by deadline, or of the spare calls */
	struct call *prev;
	struct link *link;
	void (*done)(struct call *call, struct bytes text);
	uint64_t id;
	uint64_t deadline_ns;
	uint64_t begun_ns;
};

struct link {
	int fd;
	bool is_blocked; /* the socket did not accept all output */
	bool has_output; /* is in the list `written` */
	struct link *next_written;
	uint8_t *in; /* the beginning of a frame; NULL: there was none yet */
	size_t in_len;
	uint8_t *out;
	size_t out_size;
	size_t out_from;
	size_t out_to;
	size_t early;          /* bytes of the next early write of this turn */
	uint64_t id;           /* of the last call */
	struct call **pending; /* by the last bits of their ids */
	uint8_t names[NAMES_MAX];
	size_t names_len; /* 0: there was no request yet */
	void (*handle)(const struct request *request);
	struct {
		uint64_t requests;
		uint64_t replies;
		uint64_t calls;
		uint64_t ends;
		uint64_t writes;
	} count;
};

/* One thread. */
static const struct rpc_plan *plan;
static struct meter *meter; /* NULL: the server */
static int epoll;
static uint64_t now_ns; /* of the turn */
static bool is_crowded; /* several links are ready in this turn: none writes early */
static struct link *written;
static struct call due = { .next = &due, .prev = &due };
static struct call *spare;
static uint8_t scratch[IN_SIZE];

static uint8_t names[NAMES_MAX]; /* of the method, as they are sent */
static size_t names_len;
static const uint8_t attachments[] = "\x81\xa7timeout\xa4"
				     "1000";
#define ATTACHMENTS_LEN (sizeof(attachments) - 1)
static struct bytes argument;

/* --- texts of msgpack */

/* Writes the head of a text. Returns its length. */
static size_t put_text_head(uint8_t *at, uint32_t len)
{
	if (len < 32) {
		at[0] = (uint8_t)(0xa0 | len);
		return 1;
	}
	at[0] = len < 256 ? 0xd9 : len < 65536 ? 0xda : 0xdb;
	if (len < 256) {
		at[1] = (uint8_t)len;
		return 2;
	}
	if (len < 65536) {
		uint16_t short_len = htobe16((uint16_t)len);

		memcpy(at + 1, &short_len, sizeof(short_len));
		return 3;
	}
	len = htobe32(len);
	memcpy(at + 1, &len, sizeof(len));
	return 5;
}

/* Returns the length of the text at the beginning of the bytes, with its head. */
static size_t check_text(struct bytes bytes)
{
	const uint8_t *at = bytes.at;
	size_t head = 0;
	size_t len = 0;

	if (bytes.len >= 1 && (at[0] & 0xe0) == 0xa0) {
		head = 1;
		len = at[0] & 0x1f;
	} else if (bytes.len >= 2 && at[0] == 0xd9) {
		head = 2;
		len = at[1];
	} else if (bytes.len >= 3 && at[0] == 0xda) {
		head = 3;
		len = (size_t)at[1] << 8 | at[2];
	} else if (bytes.len >= 5 && at[0] == 0xdb) {
		head = 5;
		len = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
	}
	if (head == 0 || len > bytes.len - head)
		host_die("thin: no text");
	return head + len;
}

static void put_name(const char *name)
{
	uint32_t len = (uint32_t)strlen(name);

	names_len += put_text_head(names + names_len, len);
	memcpy(names + names_len, name, len);
	names_len += len;
}

static void make_request(void)
{
	uint8_t *text = host_memory(1, plan->payload + 5);
	size_t head = put_text_head(text, plan->payload);

	put_name("2.0.2");
	put_name("demo.EchoService");
	put_name("0.0.0");
	put_name("echo");
	put_name("Ljava/lang/String;");
	memset(text + head, 'x', plan->payload);
	argument = (struct bytes){ text, head + plan->payload };
	if (HEADER_LEN + names_len + argument.len + ATTACHMENTS_LEN != plan->request_len)
		host_die("thin: frames are longer or shorter than spoke's");
}

/* --- output */

static void watch(struct link *link, int op)
{
	struct epoll_event event = {
		.events = link->is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN,
		.data = { .ptr = link },
	};

	if (epoll_ctl(epoll, op, link->fd, &event) != 0)
		host_die("epoll_ctl failed");
}

static void flush(struct link *link)
{
	bool was_blocked = link->is_blocked;
	size_t len = link->out_to - link->out_from;
	ssize_t put;

	if (len == 0)
		return;
	put = write(link->fd, link->out + link->out_from, len);
	if (put < 0 && errno != EAGAIN && meter != NULL)
		host_die("the server has closed a connection");
	link->count.writes++;
	link->out_from += put > 0 ? (size_t)put : 0;
	link->is_blocked = link->out_from < link->out_to;
	if (!link->is_blocked)
		link->out_from = link->out_to = 0;
	if (link->is_blocked != was_blocked)
		watch(link, EPOLL_CTL_MOD);
}

static void flush_written(void)
{
	while (written != NULL) {
		struct link *link = written;

		written = link->next_written;
		link->has_output = false;
		if (!link->is_blocked)
			flush(link);
	}
}

/* Returns room for a frame, whose header it writes, at the end of the output. */
static uint8_t *append(struct link *link, uint8_t flags, uint8_t status, uint64_t id, size_t len)
{
	struct header header = {
		.magic = htobe16(MAGIC),
		.flags = flags,
		.status = status,
		.id = htobe64(id),
		.len = htobe32((uint32_t)len),
	};
	uint8_t *frame;

	if (link->out_size - link->out_to < HEADER_LEN + len) {
		size_t used = link->out_to - link->out_from;
		size_t size = link->out_size == 0 ? OUT_SIZE : link->out_size;
		uint8_t *out = link->out;

		while (size - used < HEADER_LEN + len)
			size *= 2;
		if (size != link->out_size)
			out = host_memory(1, size);
		memmove(out, link->out + link->out_from, used);
		if (out != link->out)
			free(link->out);
		link->out = out;
		link->out_size = size;
		link->out_from = 0;
		link->out_to = used;
	}
	frame = link->out + link->out_to;
	memcpy(frame, &header, HEADER_LEN);
	link->out_to += HEADER_LEN + len;
	if (!link->has_output) {
		link->has_output = true;
		link->next_written = written;
		written = link;
	}
	return frame + HEADER_LEN;
}

/* --- the server's side of a call */

static void reply(const struct request *request, struct bytes text)
{
	struct link *link = request->link;
	uint8_t *body = append(link, FLAGS_REPLY, STATUS_OK, request->id, 1 + text.len);

	body[0] = REPLY_VALUE;
	memcpy(body + 1, text.at, text.len);
	link->count.replies++;
}

static void echo(const struct request *request)
{
	if (check_text(request->text) != request->text.len)
		host_die("thin: no text");
	reply(request, request->text);
}

/* Returns the length of the names, which were not those of the request before. */
static size_t find_method(struct link *link, struct bytes body)
{
	size_t at = 0;

	for (int i = 0; i < NAMES; i++)
		at += check_text((struct bytes){ body.at + at, body.len - at });
	if (at != names_len || memcmp(body.at, names, names_len) != 0)
		host_die("thin: no such method");
	memcpy(link->names, body.at, at);
	link->names_len = at;
	link->handle = echo;
	return at;
}

static void take_request(struct link *link, uint64_t id, struct bytes body)
{
	struct request request = { .link = link, .id = id };
	size_t at = link->names_len;

	if (at == 0 || body.len < at || memcmp(body.at, link->names, at) != 0)
		at = find_method(link, body);
	request.text.at = body.at + at;
	request.text.len = check_text((struct bytes){ body.at + at, body.len - at });
	at += request.text.len;
	if (body.len - at != ATTACHMENTS_LEN ||
	    memcmp(body.at + at, attachments, ATTACHMENTS_LEN) != 0)
		host_die("thin: other attachments");
	link->count.requests++;
	link->handle(&request);
}

/* --- the client's side of a call */

static void call(struct link *link, struct bytes text, void (*done)(struct call *, struct bytes),
		 uint64_t begun_ns)
{
	struct call *call = spare;
	uint8_t *body;

	if (check_text(text) != text.len)
		host_die("thin: no text");
	if (call != NULL)
		spare = call->next;
	else
		call = host_memory(1, sizeof(*call));
	*call = (struct call){
		.next = &due,
		.prev = due.prev,
		.link = link,
		.done = done,
		.id = ++link->id,
		.deadline_ns = now_ns + TIMEOUT_NS,
		.begun_ns = begun_ns,
	};
	due.prev->next = call;
	due.prev = call;
	if (link->pending[call->id % PENDING] != NULL)
		host_die("thin: more calls in flight than it can hold");
	link->pending[call->id % PENDING] = call;
	body = append(link, FLAGS_REQUEST, 0, call->id, names_len + text.len + ATTACHMENTS_LEN);
	memcpy(body, names, names_len);
	memcpy(body + names_len, text.at, text.len);
	memcpy(body + names_len + text.len, attachments, ATTACHMENTS_LEN);
	link->count.calls++;
}

static void call_done(struct call *ended, struct bytes text)
{
	if (meter_is_over(meter))
		return;
	if (meter_is_new_batch(meter) &&
	    (text.len != argument.len || memcmp(text.at, argument.at, text.len) != 0))
		meter_failure(meter);
	meter_call(meter, ended->begun_ns);
	if (!meter_is_over(meter))
		call(ended->link, argument, call_done, meter->now_ns);
}

static void take_reply(struct link *link, const struct header *header, uint64_t id,
		       struct bytes body)
{
	struct call *ended = link->pending[id % PENDING];
	struct bytes text = { body.at + 1, body.len - 1 };

	if (ended == NULL || ended->id != id || header->status != STATUS_OK ||
	    body.at[0] != REPLY_VALUE || check_text(text) != text.len)
		host_die("thin: a call failed");
	link->pending[id % PENDING] = NULL;
	ended->prev->next = ended->next;
	ended->next->prev = ended->prev;
	link->count.ends++;
	ended->done(ended, text);
	ended->next = spare;
	spare = ended;
}

static void check_deadlines(void)
{
	if (due.next != &due && due.next->deadline_ns <= now_ns)
		host_die("thin: a call timed out");
}

/* --- input */

static void take_frame(struct link *link, const struct header *header, struct bytes body)
{
	uint64_t id = be64toh(header->id);

	if (header->flags == FLAGS_REPLY && meter != NULL && body.len > 1)
		take_reply(link, header, id, body);
	else if (header->flags == FLAGS_REQUEST && meter == NULL)
		take_request(link, id, body);
	else
		host_die("thin: neither a request nor a reply");
}

/* Takes all whole frames. Returns the length of what it took. */
static size_t take_frames(struct link *link, struct bytes input)
{
	size_t taken = 0;

	link->early = EARLY;
	while (input.len - taken >= HEADER_LEN) {
		struct header header;
		struct bytes body = { .at = input.at + taken + HEADER_LEN };

		memcpy(&header, input.at + taken, HEADER_LEN);
		body.len = be32toh(header.len);
		if (header.magic != htobe16(MAGIC) || body.len > BODY_MAX)
			host_die("thin: no frame");
		if (input.len - taken - HEADER_LEN < body.len)
			break;
		take_frame(link, &header, body);
		taken += HEADER_LEN + body.len;
		if (!is_crowded && !link->is_blocked &&
		    link->out_to - link->out_from >= link->early) {
			flush(link);
			link->early *= EARLY_MORE;
		}
	}
	return taken;
}

/* Reads once. Returns false if the peer has closed the link. */
static bool read_link(struct link *link)
{
	uint8_t *into = link->in_len > 0 ? link->in : scratch;
	ssize_t got = read(link->fd, into + link->in_len, IN_SIZE - link->in_len);
	struct bytes input = { .at = into };
	size_t taken;

	if (got == 0 || (got < 0 && errno != EAGAIN))
		return false;
	if (got < 0)
		return true;
	input.len = link->in_len + (size_t)got;
	taken = take_frames(link, input);
	link->in_len = input.len - taken;
	if (link->in_len == IN_SIZE)
		host_die("frames are too long");
	if (link->in_len > 0) {
		if (link->in == NULL)
			link->in = host_memory(1, IN_SIZE);
		memmove(link->in, input.at + taken, link->in_len);
	}
	return true;
}

/* --- turns */

static struct link *make_link(int fd)
{
	struct link *link = host_memory(1, sizeof(*link));

	link->fd = fd;
	watch(link, EPOLL_CTL_ADD);
	return link;
}

/* The client closes links only at the end of its process, with all calls. */
static void close_link(struct link *link)
{
	if (meter != NULL)
		host_die("the server has closed a connection");
	(void)close(link->fd);
	for (struct link **at = &written; *at != NULL; at = &(*at)->next_written) {
		if (*at == link) {
			*at = link->next_written;
			break;
		}
	}
	free(link->in);
	free(link->out);
	free(link);
}

/* Polls without waiting for as long as the plan specifies before it sleeps. */
static int wait_for(struct epoll_event *events)
{
	uint64_t until_ns = 0;

	while (plan->spin_ns > 0) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, 0);
		uint64_t ns;

		if (count != 0)
			return count;
		ns = host_now_ns();
		if (until_ns == 0)
			until_ns = ns + plan->spin_ns;
		else if (ns >= until_ns)
			break;
	}
	return epoll_wait(epoll, events, EVENTS_MAX, EPOLL_WAIT_MS);
}

/* `listener`: of the server. */
static void take_turn(int listener)
{
	struct epoll_event events[EVENTS_MAX];
	int count = wait_for(events);

	now_ns = host_now_ns();
	is_crowded = count > 1;
	for (int i = 0; i < count; i++) {
		struct link *link = events[i].data.ptr;

		if (link == NULL) {
			int fd = echo_accept_socket(listener, plan);

			if (fd >= 0)
				(void)make_link(fd);
			continue;
		}
		if (events[i].events & EPOLLOUT)
			flush(link);
		/* An error appears on the next read. */
		if ((events[i].events & ~(uint32_t)EPOLLOUT) != 0 && !read_link(link))
			close_link(link);
	}
	flush_written();
	check_deadlines();
}

static void open_thin(const struct rpc_plan *of, struct meter *measures)
{
	plan = of;
	meter = measures;
	make_request();
	epoll = epoll_create1(EPOLL_CLOEXEC);
	if (epoll < 0)
		host_die("no epoll");
	now_ns = host_now_ns();
}

static void serve(const struct rpc_plan *of)
{
	struct epoll_event event = { .events = EPOLLIN }; /* the listening socket has no link */
	uint16_t port;
	int listener = echo_listen(of, &port);

	open_thin(of, NULL);
	if (epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event) != 0)
		host_die("epoll_ctl failed");
	stage_ready(port);
	do {
		take_turn(listener);
	} while (true);
}

static void drive(const struct rpc_plan *of, struct meter *measures)
{
	open_thin(of, measures);
	for (uint32_t i = 0; i < plan->connections; i++) {
		struct link *link = make_link(echo_connect_socket(plan));

		link->pending = host_memory(PENDING, sizeof(struct call *));
		for (uint32_t j = 0; j < plan->outstanding; j++)
			call(link, argument, call_done, meter->now_ns);
	}
	flush_written();
	meter_restart(meter);
	while (!meter_is_over(meter))
		take_turn(-1);
}

const struct rpc_peer rpc_thin = {
	.name = "thin",
	.serve = serve,
	.drive = drive,
};

const struct rpc_peer rpc_thin_spin = {
	.name = "thin-spin",
	.serve = serve,
	.drive = drive,
	.spin_ns = RPC_SPIN_NS,
};
