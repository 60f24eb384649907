/* SPDX-License-Identifier: Apache-2.0 */
/* A gateway in the virtual world, and its clients. */
#include "tests/cluster/comet/cometrig.h"
#include "tests/support/scene.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct cometrig cometrig;

/* --- the program's callbacks */

void cometrig_authorize(void *arg, struct spoke_comet_entry entry,
			const struct spoke_comet_request *request)
{
	struct cometrig_asked *asked = &cometrig.asked[cometrig.asked_count++];

	assert_ptr_equal(arg, &cometrig);
	assert_true(cometrig.asked_count < COMETRIG_ASKED_MAX);
	assert_memory_equal(request->peer, "127.0.0.1:", 10);
	*asked = (struct cometrig_asked){ .entry = entry, .kind = request->kind };
	(void)snprintf(asked->query, sizeof(asked->query), "%.*s", (int)request->query.len,
		       request->query.len ? (const char *)request->query.data : "");
	(void)snprintf(asked->cookie, sizeof(asked->cookie), "%.*s", (int)request->cookie.len,
		       request->cookie.len ? (const char *)request->cookie.data : "");
}

static void note_message(void *arg, struct spoke_span user, struct spoke_span text)
{
	struct cometrig *rig = arg;
	size_t len = strlen(rig->heard);

	(void)snprintf(rig->heard + len, sizeof(rig->heard) - len, "%.*s: %.*s\n", (int)user.len,
		       (const char *)user.data, (int)text.len,
		       text.len ? (const char *)text.data : "");
	if (rig->then)
		rig->then(rig);
}

static void note_change(void *arg, struct spoke_span user, enum spoke_comet_change change)
{
	static const char signs[] = { '+', '-', 'x' };
	struct cometrig *rig = arg;
	size_t len = strlen(rig->changes);

	(void)snprintf(rig->changes + len, sizeof(rig->changes) - len, "%c%.*s ", signs[change],
		       (int)user.len, (const char *)user.data);
	if (rig->then)
		rig->then(rig);
}

static void note_accepted(void *arg, const struct spokei_vnet_news *news)
{
	struct cometrig *rig = arg;

	if (news->act == SPOKEI_VNET_ACCEPT)
		rig->accepted = news->fd;
}

/* --- the world */

struct spoke_comet_options cometrig_begin(void)
{
	cometrig = (struct cometrig){ .engine = NULL };
	scene_open(&cometrig.world, 17);
	spokei_vnet_observe(cometrig.world.net, note_accepted, &cometrig);
	cometrig.engine = scene_engine(&cometrig.world, &cometrig.server, &cometrig.faulty, NULL);
	spokei_world_process_init(&cometrig.client, &cometrig.world);
	cometrig.got = malloc(COMETRIG_READ_MAX);
	cometrig.lines = malloc(COMETRIG_READ_MAX);
	assert_non_null(cometrig.got);
	assert_non_null(cometrig.lines);
	return (struct spoke_comet_options){
		.listen = COMETRIG_AT,
		.query_user = true,
		.message = note_message,
		.change = note_change,
		.arg = &cometrig,
	};
}

void cometrig_make(const struct spoke_comet_options *options)
{
	assert_int_equal(spoke_comet_new(cometrig.engine, options, &cometrig.comet), SPOKE_OK);
}

void cometrig_close(void)
{
	scene_leave(&cometrig.server, &cometrig.faulty, &cometrig.engine);
	scene_kill(&cometrig.client);
	spokei_world_fini(&cometrig.world);
	free(cometrig.got);
	free(cometrig.lines);
}

RIG_STEP(cometrig_set_up)
{
	struct spoke_comet_options options = cometrig_begin();

	cometrig_make(&options);
}

RIG_STEP(cometrig_tear_down)
{
	cometrig_close();
}

void cometrig_run(uint64_t ns)
{
	spokei_world_run(&cometrig.world, cometrig.world.now_ns + ns);
}

/* --- clients */

int cometrig_connect(void)
{
	int fd = scene_connect(&cometrig.client.env, COMETRIG_AT);

	cometrig_run(MS);
	return fd;
}

void cometrig_send_bytes(int fd, const void *bytes, size_t len)
{
	scene_write(&cometrig.client.env, fd, bytes, len);
}

void cometrig_send(int fd, const char *text)
{
	cometrig_send_bytes(fd, text, strlen(text));
}

const char *cometrig_read(int fd, bool *ret_ended)
{
	bool ended;

	cometrig.got_len = scene_hear(&cometrig.world, &cometrig.client.env, fd, cometrig.got,
				      COMETRIG_READ_MAX, &ended);
	if (ret_ended)
		*ret_ended = ended;
	return cometrig.got;
}

void cometrig_hang_up(int fd)
{
	scene_hang_up(&cometrig.client.env, fd);
	cometrig_run(MS);
}

const char *cometrig_ask(const char *request)
{
	int fd = cometrig_connect();
	const char *answer;
	bool ended;

	cometrig_send(fd, request);
	answer = cometrig_read(fd, &ended);
	assert_true(ended);
	cometrig_hang_up(fd);
	return answer;
}

static int open_at(const char *path, const char *query, const char *fields)
{
	int fd = cometrig_connect();
	char text[1024];

	(void)snprintf(text, sizeof(text), "GET /spoke/%s?%s HTTP/1.1\r\n" COMETRIG_HOST "%s\r\n",
		       path, query, fields);
	cometrig_send(fd, text);
	cometrig_run(MS);
	return fd;
}

int cometrig_events(const char *query, const char *last)
{
	char fields[256] = "Accept: text/event-stream\r\n";

	if (last)
		(void)snprintf(fields, sizeof(fields), "Last-Event-ID: %s\r\n", last);
	return open_at("events", query, fields);
}

int cometrig_socket(const char *query)
{
	return open_at("socket", query, COMETRIG_UPGRADE COMETRIG_ORIGIN);
}

int cometrig_poll(const char *query)
{
	return open_at("poll", query, "");
}

void cometrig_frame(int fd, unsigned first, const char *payload, size_t len)
{
	static const unsigned char mask[] = { 1, 2, 3, 4 };
	unsigned char frame[16 + 70000];
	size_t at = 0;

	assert_true(len <= 65535);
	frame[at++] = (unsigned char)first;
	if (len < 126) {
		frame[at++] = (unsigned char)(0x80 | len);
	} else {
		frame[at++] = 0x80 | 126;
		frame[at++] = (unsigned char)(len >> 8);
		frame[at++] = (unsigned char)len;
	}
	memcpy(frame + at, mask, 4);
	at += 4;
	for (size_t i = 0; i < len; i++)
		frame[at++] = (unsigned char)payload[i] ^ mask[i % 4];
	cometrig_send_bytes(fd, frame, at);
}

/* Appends a formatted text to the lines. */
static void add(const char *format, ...)
{
	size_t len = strlen(cometrig.lines);
	va_list args;

	va_start(args, format);
	(void)vsnprintf(cometrig.lines + len, COMETRIG_READ_MAX - len, format, args);
	va_end(args);
}

/* Returns the bytes before the first frame: the head. */
static size_t head_of(const char *bytes, size_t len)
{
	const char *end = len >= 4 && memcmp(bytes, "HTTP", 4) == 0 ? strstr(bytes, "\r\n\r\n")
								    : NULL;

	return end ? (size_t)(end - bytes) + 4 : 0;
}

static size_t print_frame(const unsigned char *bytes, size_t len)
{
	size_t payload;
	size_t at = 2;

	assert_true(len >= 2);
	assert_int_equal(bytes[1] & 0x80, 0);
	payload = bytes[1];
	if (payload == 126) {
		assert_true(len >= 4);
		payload = (size_t)bytes[2] << 8 | bytes[3];
		at = 4;
	}
	assert_true(payload != 127 && len >= at + payload);
	switch (bytes[0]) {
	case 0x81:
		add("text %.*s\n", (int)payload, (const char *)bytes + at);
		break;
	case 0x88:
		assert_true(payload >= 2);
		add("close %u %.*s\n", (unsigned)bytes[at] << 8 | bytes[at + 1], (int)payload - 2,
		    (const char *)bytes + at + 2);
		break;
	case 0x89:
		add("ping\n");
		break;
	case 0x8a:
		add("pong %.*s\n", (int)payload, (const char *)bytes + at);
		break;
	default:
		fail();
	}
	return at + payload;
}

const char *cometrig_frames(int fd)
{
	bool ended;
	const char *bytes = cometrig_read(fd, &ended);
	size_t at = head_of(bytes, cometrig.got_len);

	cometrig.lines[0] = '\0';
	while (at < cometrig.got_len)
		at += print_frame((const unsigned char *)bytes + at, cometrig.got_len - at);
	if (ended)
		add("end\n");
	return cometrig.lines;
}

/* Prints the event before `end`. */
static void print_event(const char *at, const char *end)
{
	char number[32] = "-";
	char name[64] = "message";
	char data[4096] = "";

	if (*at == ':') {
		add(":\n");
		return;
	}
	while (at < end) {
		const char *stop = strchr(at, '\n');
		int len = (int)(stop - at);

		if (strncmp(at, "id: ", 4) == 0)
			(void)snprintf(number, sizeof(number), "%.*s", len - 21, at + 21);
		else if (strncmp(at, "event: ", 7) == 0)
			(void)snprintf(name, sizeof(name), "%.*s", len - 7, at + 7);
		else if (strncmp(at, "data: ", 6) == 0)
			(void)snprintf(data + strlen(data), sizeof(data) - strlen(data), "%s%.*s",
				       data[0] ? "|" : "", len - 6, at + 6);
		else
			assert_memory_equal(at, "retry: ", 7);
		at = stop + 1;
	}
	add("%s %s %.300s\n", number, name, data);
}

const char *cometrig_lines(const char *text)
{
	const char *at = text + head_of(text, strlen(text));
	const char *end;

	cometrig.lines[0] = '\0';
	while ((end = strstr(at, "\n\n")) != NULL) {
		print_event(at, end + 1);
		at = end + 2;
	}
	if (*at)
		add("half\n");
	return cometrig.lines;
}

const char *cometrig_stream(int fd)
{
	bool ended;
	const char *text = cometrig_read(fd, &ended);
	const char *lines = cometrig_lines(text);

	if (ended)
		add("end\n");
	return lines;
}

unsigned long cometrig_number(const char *text, const char *before)
{
	const char *at = strstr(text, before);

	assert_non_null(at);
	return strtoul(at + strlen(before), NULL, 10);
}

const char *cometrig_id(unsigned number)
{
	static char id[SPOKE_COMET_ID];

	(void)spokei_comet_print_id(cometrig.comet, number, id);
	return id;
}

/* --- the gateway */

const char *cometrig_push(const char *user, const char *event, const char *data)
{
	static struct spoke_comet_result result;
	const struct spoke_comet_message message = {
		.event = spoke_comet_text(event),
		.data = spoke_comet_text(data),
	};
	int error = user ? spoke_comet_push(cometrig.comet, spoke_comet_text(user), &message,
					    &result)
			 : spoke_comet_push_all(cometrig.comet, &message, &result);

	assert_int_equal(error, SPOKE_OK);
	return result.id;
}

uint64_t cometrig_figure(enum spoke_comet_figure figure)
{
	return spoke_comet_figure(cometrig.comet, figure);
}

uint64_t cometrig_timers(void)
{
	struct spoke_wheel_counts counts;

	assert_int_equal(spoke_wheel_class_counts(spoke_engine_wheel(cometrig.engine),
						  cometrig.comet->timer_class, &counts, NULL),
			 SPOKE_WHEEL_OK);
	return counts.pending;
}

void cometrig_free_gateway(struct cometrig *rig)
{
	spoke_comet_free(rig->comet);
	rig->then = NULL;
}

void assert_has(const char *text, const char *part)
{
	if (strstr(text, part) == NULL)
		fail_msg("\"%.400s\" does not have \"%s\"", text, part);
}
