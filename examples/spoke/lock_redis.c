/* SPDX-License-Identifier: Apache-2.0 */
/* A blocking client of Redis: connects, sends commands, reads replies (RESP2), lists and breaks
 * locks. */
#include "examples/spoke/lock_redis.h"

#include "examples/spoke/escape.h"

#include <spoke/url.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REPLY_MAX 16777216u /* bytes of a reply */
#define ADDRESSES 16        /* of one host that are tried */
#define STEP "512"          /* keys that the store goes through in one step */
#define LOOKS 16u           /* scripts whose replies are awaited together */
#define TEXTS_MAX 8u        /* of a command */
#define NS_PER_MS UINT64_C(1000000)
#define INCOMPLETE 0u
#define BROKEN SIZE_MAX

/* The scripts LOOK and BREAK. A hash of an application must not pass for a lock; HLEN refuses keys
 * of other types. */
static const char look_script[] =
	"if redis.call('type', KEYS[1]).ok ~= 'hash' then return false end\n"
	"if redis.call('hlen', KEYS[1]) ~= 1 then return false end\n"
	"local lock = redis.call('hgetall', KEYS[1])\n"
	"local id = string.match(lock[1], '^(%x+%-%x+%-%x+%-%x+%-%x+):%d+$')\n"
	"if not id or #id ~= 36 or not string.match(lock[2], '^%d+$') then return false end\n"
	"local token = redis.pcall('get', KEYS[2])\n"
	"if type(token) ~= 'string' then token = '0' end\n"
	"return {redis.call('pttl', KEYS[1]), lock[1], lock[2], token}\n";
static const char break_script[] = "if redis.call('hlen', KEYS[1]) == 0 then return 0 end\n"
				   "redis.call('del', KEYS[1])\n"
				   "redis.call('publish', KEYS[2], '0')\n"
				   "return 1\n";

/* A value of a reply: ':' a number, '*' an array of `number` values that follow, '$' and '+' a
 * text, '-' an error, '_' nothing. */
struct value {
	char type;
	int64_t number;
	struct spoke_span text;
};

/* A place in a complete reply. */
struct cursor {
	const char *at;
	const char *end;
};

__attribute__((format(printf, 2, 3))) static bool fail(struct lock_redis *redis, const char *format,
						       ...)
{
	va_list args;

	va_start(args, format);
	(void)vsnprintf(redis->why, sizeof(redis->why), format, args);
	va_end(args);
	return false;
}

static bool fail_with(struct lock_redis *redis, int status)
{
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): one thread */
	return fail(redis, "%s", strerror(-status));
}

static struct spoke_span span_of(const char *text)
{
	return (struct spoke_span){ text, strlen(text) };
}

/* --- buffers */

static bool make_room(struct lock_redis *redis, char **bytes, size_t *room, size_t len)
{
	size_t size = *room ? *room : 4096;
	char *more;

	if (len <= *room)
		return true;
	while (size < len)
		size *= 2;
	more = realloc(*bytes, size);
	if (!more)
		return fail(redis, "out of memory");
	*bytes = more;
	*room = size;
	return true;
}

static bool put(struct lock_redis *redis, const void *bytes, size_t len)
{
	if (!make_room(redis, &redis->out, &redis->out_room, redis->out_len + len))
		return false;
	if (len)
		memcpy(redis->out + redis->out_len, bytes, len);
	redis->out_len += len;
	return true;
}

static bool put_line(struct lock_redis *redis, char type, size_t number)
{
	char line[32];

	return put(redis, line, (size_t)snprintf(line, sizeof(line), "%c%zu\r\n", type, number));
}

/* Queues a command, which is sent with the next read. */
static bool put_command(struct lock_redis *redis, size_t count, const struct spoke_span *texts)
{
	bool fits = put_line(redis, '*', count);

	for (size_t i = 0; i < count && fits; i++)
		fits = put_line(redis, '$', texts[i].len) &&
		       put(redis, texts[i].data, texts[i].len) && put(redis, "\r\n", 2);
	return fits;
}

/* --- parsing */

/* Returns the length of the line with its CR LF; 0: it is incomplete. */
static size_t line_len(const char *at, const char *end)
{
	const char *lf = at < end ? memchr(at, '\n', (size_t)(end - at)) : NULL;

	return lf ? (size_t)(lf + 1 - at) : 0;
}

/* Reads the number of a line, which strtoll() does not leave because of its CR. */
static bool read_number(struct spoke_span text, int64_t *ret)
{
	char digits[24];
	char *end;

	if (!text.len || text.len >= sizeof(digits))
		return false;
	memcpy(digits, text.data, text.len);
	digits[text.len] = '\0';
	errno = 0;
	*ret = strtoll(digits, &end, 10);
	return !*end && !errno;
}

/* Reads the next value of a complete reply, or of the beginning of one. Returns how many bytes it
 * has, INCOMPLETE or BROKEN. */
static size_t read_value(struct cursor cursor, struct value *ret)
{
	size_t len = line_len(cursor.at, cursor.end);
	size_t left = (size_t)(cursor.end - cursor.at) - len;

	if (!len)
		return cursor.end - cursor.at > REPLY_MAX ? BROKEN : INCOMPLETE;
	if (len < 3 || cursor.at[len - 2] != '\r' || !strchr("+-:$*", *cursor.at))
		return BROKEN;
	*ret = (struct value){ .type = *cursor.at, .text = { cursor.at + 1, len - 3 } };
	if (ret->type == '+' || ret->type == '-')
		return len;
	if (!read_number(ret->text, &ret->number))
		return BROKEN;
	if (ret->type == ':')
		return len;
	if (ret->number > REPLY_MAX)
		return BROKEN;
	if (ret->number < 0) {
		ret->type = '_';
		return len;
	}
	if (ret->type == '*')
		return len;
	ret->text = (struct spoke_span){ cursor.at + len, (size_t)ret->number };
	return left < ret->text.len + 2 ? INCOMPLETE : len + ret->text.len + 2;
}

/* Returns the length of the reply that begins here, with all values of its arrays; INCOMPLETE or
 * BROKEN. */
static size_t reply_len(struct cursor cursor)
{
	const char *begin = cursor.at;
	int64_t missing = 1;

	while (missing > 0) {
		struct value value;
		size_t len = read_value(cursor, &value);

		if (len == INCOMPLETE || len == BROKEN)
			return len;
		cursor.at += len;
		missing += (value.type == '*' ? value.number : 0) - 1;
		if (missing > REPLY_MAX)
			return BROKEN;
	}
	return (size_t)(cursor.at - begin);
}

/* Reads the next value; returns false at the end. */
static bool next(struct cursor *cursor, struct value *ret)
{
	size_t len = cursor->at < cursor->end ? read_value(*cursor, ret) : 0;

	cursor->at += len;
	return len > 0;
}

/* Reads the next value, which is a number or its digits. */
static bool next_number(struct cursor *cursor, int64_t *ret)
{
	struct value value;

	if (!next(cursor, &value))
		return false;
	*ret = value.number;
	return value.type == ':' || (value.type == '$' && read_number(value.text, ret));
}

static bool next_text(struct cursor *cursor, struct spoke_span *ret)
{
	struct value value;

	if (!next(cursor, &value))
		return false;
	*ret = value.text;
	return value.type == '$';
}

/* --- the socket */

static void hang_up(struct lock_redis *redis)
{
	const struct spoke_env *env = &redis->locker->env;

	if (redis->open)
		env->net->close(env->ctx, redis->fd);
	redis->open = false;
	redis->out_len = 0;
	redis->in_len = 0;
	redis->in_at = 0;
}

/* Waits until the socket is ready. Returns false after the limit. */
static bool wait_for(struct lock_redis *redis, short events, uint64_t until_ns)
{
	const struct spoke_env *env = &redis->locker->env;
	struct pollfd watched = { .fd = redis->fd, .events = events };
	uint64_t now;

	while ((now = env->now(env->ctx)) < until_ns)
		if (poll(&watched, 1, (int)((until_ns - now) / NS_PER_MS) + 1) > 0)
			return true;
	return fail(redis, "no answer in %" PRIu64 " ms", redis->limit_ns / NS_PER_MS);
}

static bool send_all(struct lock_redis *redis, uint64_t until_ns)
{
	const struct spoke_env *env = &redis->locker->env;

	for (size_t at = 0; at < redis->out_len;) {
		const struct iovec part = { redis->out + at, redis->out_len - at };
		ssize_t sent = env->net->write(env->ctx, redis->fd, &part, 1);

		if (sent > 0)
			at += (size_t)sent;
		else if (sent != -EAGAIN && sent != -EINTR)
			return fail_with(redis, (int)sent);
		else if (!wait_for(redis, POLLOUT, until_ns))
			return false;
	}
	redis->out_len = 0;
	return true;
}

static bool receive(struct lock_redis *redis, uint64_t until_ns)
{
	const struct spoke_env *env = &redis->locker->env;
	ssize_t got;

	if (!make_room(redis, &redis->in, &redis->in_room, redis->in_len + 4096))
		return false;
	got = env->net->read(env->ctx, redis->fd, redis->in + redis->in_len,
			     redis->in_room - redis->in_len);
	if (got > 0)
		redis->in_len += (size_t)got;
	if (got == 0)
		return fail(redis, "the server closed the connection");
	if (got < 0 && got != -EAGAIN && got != -EINTR)
		return fail_with(redis, (int)got);
	return got > 0 || wait_for(redis, POLLIN, until_ns);
}

/* Sends the queued commands, and waits for a reply, which is valid until the next one. */
static bool read_reply(struct lock_redis *redis, struct cursor *ret)
{
	const struct spoke_env *env = &redis->locker->env;
	uint64_t until_ns = env->now(env->ctx) + redis->limit_ns;
	size_t len;

	if (!send_all(redis, until_ns))
		return false;
	if (redis->in_at == redis->in_len) {
		redis->in_at = 0;
		redis->in_len = 0;
	}
	for (;;) {
		struct cursor there = { redis->in + redis->in_at, redis->in + redis->in_len };

		len = reply_len(there);
		if (len == BROKEN)
			return fail(redis, "the server sent no reply of RESP2");
		if (len != INCOMPLETE) {
			*ret = (struct cursor){ there.at, there.at + len };
			redis->in_at += len;
			redis->answers++;
			return true;
		}
		if (redis->in_len - redis->in_at > REPLY_MAX)
			return fail(redis, "the server sent a reply of more than 16 MiB");
		if (!receive(redis, until_ns))
			return false;
	}
}

static bool connect_to(struct lock_redis *redis, const struct spoke_address *address)
{
	const struct spoke_env *env = &redis->locker->env;
	int status = env->net->connect(env->ctx, address, &redis->fd);

	if (status && status != -EINPROGRESS)
		return fail_with(redis, status);
	redis->open = true;
	if (status && !wait_for(redis, POLLOUT, env->now(env->ctx) + redis->limit_ns))
		return false;
	status = env->net->finish(env->ctx, redis->fd);
	return status ? fail_with(redis, status) : true;
}

/* Connects to the first address of a host, or to a path, that accepts. */
static bool dial(struct lock_redis *redis, const char *host, uint16_t port, const char *path)
{
	const struct spoke_env *env = &redis->locker->env;
	struct spoke_address found[ADDRESSES];
	char text[SPOKE_URL_HOST_MAX + sizeof("unix:[]:65535")];
	int count = 1;

	if (path)
		(void)snprintf(text, sizeof(text), "unix:%s", path);
	else
		(void)snprintf(text, sizeof(text), strchr(host, ':') ? "[%s]:%u" : "%s:%u", host,
			       (unsigned)port);
	if (env->net->parse(env->ctx, text, &found[0]))
		count = path ? -EINVAL : env->net->resolve(env->ctx, host, port, found, ADDRESSES);
	if (count <= 0)
		return fail(redis, "there is no such host name");
	for (int i = 0; i < count; i++) {
		if (connect_to(redis, &found[i]))
			return true;
		hang_up(redis);
	}
	return false;
}

/* --- the first commands */

/* Sends a command and reads its reply, which must not be an error. */
static bool run(struct lock_redis *redis, size_t count, const char *const *texts,
		struct cursor *ret, struct value *first)
{
	struct spoke_span spans[TEXTS_MAX];
	char shown[160];
	struct cursor reply;

	for (size_t i = 0; i < count; i++)
		spans[i] = span_of(texts[i]);
	if (!put_command(redis, count, spans) || !read_reply(redis, &reply) || !next(&reply, first))
		return false;
	*ret = reply;
	if (first->type != '-')
		return true;
	(void)escape_text(first->text, shown, sizeof(shown));
	return fail(redis, "%s: %s", texts[0], shown);
}

static bool log_in(struct lock_redis *redis, const char *user, const char *password)
{
	const char *const with_user[] = { "AUTH", user, password };
	const char *const without[] = { "AUTH", password };
	struct cursor reply;
	struct value value;

	if (!password)
		return true;
	return user ? run(redis, 3, with_user, &reply, &value)
		    : run(redis, 2, without, &reply, &value);
}

/* A server without ROLE, or that forbids it, is taken for a primary. */
static bool check_role(struct lock_redis *redis)
{
	const struct spoke_span role = span_of("ROLE");
	struct cursor reply;
	struct value value;

	if (!put_command(redis, 1, &role) || !read_reply(redis, &reply))
		return false;
	if (!next(&reply, &value) || value.type != '*' || !next(&reply, &value) ||
	    (value.text.len == 6 && memcmp(value.text.data, "master", 6) == 0))
		return true;
	if (value.text.len == 8 && memcmp(value.text.data, "sentinel", 8) == 0)
		return fail(redis, "the server is a sentinel; use its URL as sentinel://");
	return fail(redis, "the server is a replica; leases need the primary");
}

static bool greet(struct lock_redis *redis, const struct lock_store *store)
{
	const char *const select[] = { "SELECT", store->db };
	struct cursor reply;
	struct value value;

	return log_in(redis, store->user, store->password) &&
	       (!*store->db || run(redis, 2, select, &reply, &value)) && check_role(redis);
}

/* Asks a sentinel, which is connected, for the address of the primary. */
static bool ask_sentinel(struct lock_redis *redis, const struct lock_store *store,
			 char host[SPOKE_URL_HOST_MAX + 1], uint16_t *ret_port)
{
	const char *const ask[] = { "SENTINEL", "get-master-addr-by-name", store->primary };
	struct spoke_span name;
	struct cursor reply;
	struct value value;
	int64_t port;

	if (!log_in(redis, NULL, store->sentinel_password) || !run(redis, 3, ask, &reply, &value))
		return false;
	if (value.type == '_')
		return fail(redis, "the sentinel does not know \"%.100s\"", store->primary);
	if (!next_text(&reply, &name) || !name.len || name.len > SPOKE_URL_HOST_MAX ||
	    !next_number(&reply, &port) || port <= 0 || port > UINT16_MAX)
		return fail(redis, "the sentinel names no valid address of the primary");
	memcpy(host, name.data, name.len);
	host[name.len] = '\0';
	*ret_port = (uint16_t)port;
	return true;
}

static bool find_primary(struct lock_redis *redis, const struct lock_store *store)
{
	char host[SPOKE_URL_HOST_MAX + 1];
	uint16_t port = 0;

	for (unsigned i = 0; i < store->count; i++) {
		bool named = dial(redis, store->hosts[i].host, store->hosts[i].port, NULL) &&
			     ask_sentinel(redis, store, host, &port);

		hang_up(redis);
		if (named)
			return dial(redis, host, port, NULL);
	}
	return false;
}

/* Connects, unless that was done before. */
static bool open_store(struct lock_redis *redis)
{
	struct lock_store store;
	bool is_open = redis->open;

	if (is_open)
		return true;
	if (!lock_store_read(redis->locker, &store))
		return fail(redis, "out of memory");
	is_open = store.primary ? find_primary(redis, &store)
				: dial(redis, store.hosts[0].host, store.hosts[0].port, store.path);
	is_open = is_open && greet(redis, &store);
	lock_store_free(&store);
	if (!is_open)
		hang_up(redis);
	return is_open;
}

void lock_redis_close(struct lock_redis *redis)
{
	hang_up(redis);
	free(redis->out);
	free(redis->in);
	redis->out = NULL;
	redis->out_room = 0;
	redis->in = NULL;
	redis->in_room = 0;
}

/* --- scripts */

/* Writes the name of a key or channel as Redisson has it: in braces, unless it has some itself. */
static struct spoke_span derive(char *to, size_t size, const char *prefix, struct spoke_span name)
{
	bool tagged = memchr(name.data, '{', name.len) != NULL;
	int len = snprintf(to, size, "%s%s%.*s%s", prefix, tagged ? "" : "{", (int)name.len,
			   (const char *)name.data, tagged ? "" : "}");

	return (struct spoke_span){ to, (size_t)len };
}

static bool put_script(struct lock_redis *redis, const char *script, const char *prefix,
		       struct spoke_span name)
{
	char key[SPOKE_LEASE_NAME_MAX + 32];
	const struct spoke_span texts[] = {
		span_of("EVAL"),
		span_of(script),
		span_of("2"),
		name,
		derive(key, sizeof(key), prefix, name),
	};

	return put_command(redis, 5, texts);
}

/* An error reply that is the store's answer. */
static int refuse(struct lock_redis *redis, struct spoke_span text)
{
	char shown[160];

	(void)escape_text(text, shown, sizeof(shown));
	(void)fail(redis, "the store has refused: %s", shown);
	return SPOKE_ESTORE;
}

int lock_redis_break(struct lock_redis *redis, const char *name)
{
	struct cursor reply;
	struct value value;

	if (!open_store(redis))
		return SPOKE_EUNAVAILABLE;
	if (!put_script(redis, break_script, "redisson_lock__channel:", span_of(name)) ||
	    !read_reply(redis, &reply) || !next(&reply, &value)) {
		hang_up(redis);
		return SPOKE_EUNAVAILABLE;
	}
	if (value.type == '-')
		return refuse(redis, value.text);
	return value.number > 0 ? SPOKE_OK : SPOKE_ENOENT;
}

/* --- listing */

struct listing {
	struct lock_redis *redis;
	lock_info_fn each;
	void *arg;
	const char *pattern;
	char cursor[24]; /* of the next step, "0" for the first; "": there is none */
	char *bytes;     /* names of the present step, each in a text of its own */
	struct spoke_span *names;
	size_t count;
	size_t done; /* names that are looked at */
	bool stopped;
};

/* Reads a reply of the script LOOK. Returns false if the key is no lock. */
static bool read_info(struct cursor reply, struct lock_info *info)
{
	struct value value;
	int64_t left_ms;
	int64_t count;
	int64_t fence;

	if (!next(&reply, &value) || value.type != '*' || value.number != 4 ||
	    !next_number(&reply, &left_ms) || left_ms < -1 || !next_text(&reply, &info->holder) ||
	    !next_number(&reply, &count) || count < 0)
		return false;
	info->count = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
	info->fence = next_number(&reply, &fence) && fence > 0 ? (uint64_t)fence : 0;
	info->left_ns = UINT64_MAX;
	if (left_ms >= 0 && (uint64_t)left_ms < UINT64_MAX / NS_PER_MS)
		info->left_ns = (uint64_t)left_ms * NS_PER_MS;
	return true;
}

/* Looks at the names of this step. Returns false if the connection was lost. A user may be allowed
 * to see a key's name only, so an error reply is no end. */
static bool look_at_all(struct listing *listing)
{
	while (listing->done < listing->count && !listing->stopped) {
		size_t end = listing->done + LOOKS;

		if (end > listing->count)
			end = listing->count;
		for (size_t i = listing->done; i < end; i++)
			if (!put_script(listing->redis, look_script,
					"redisson_lock_token:", listing->names[i]))
				return false;
		while (listing->done < end) {
			struct lock_info info = { .name = listing->names[listing->done] };
			struct cursor reply;

			if (!read_reply(listing->redis, &reply))
				return false;
			listing->done++;
			if (!listing->stopped && read_info(reply, &info))
				listing->stopped = !listing->each(listing->arg, &info);
		}
	}
	return true;
}

static void drop_names(struct listing *listing)
{
	free(listing->names);
	free(listing->bytes);
	listing->names = NULL;
	listing->bytes = NULL;
	listing->count = 0;
	listing->done = 0;
}

/* Copies the names of a step that a lease can have. Returns false without memory. */
static bool keep_names(struct listing *listing, struct cursor reply, size_t count)
{
	struct spoke_span name;
	char *to;

	listing->names = calloc(count + 1, sizeof(*listing->names));
	listing->bytes = to = malloc((size_t)(reply.end - reply.at) + 1);
	while (listing->names && to && next_text(&reply, &name)) {
		if (!name.len || name.len > SPOKE_LEASE_NAME_MAX)
			continue;
		memcpy(to, name.data, name.len);
		listing->names[listing->count++] = (struct spoke_span){ to, name.len };
		to += name.len;
	}
	return listing->names && to;
}

/* Goes one step through the keys. Returns 0, EUNAVAILABLE, or ESTORE. */
static int scan(struct listing *listing)
{
	struct lock_redis *redis = listing->redis;
	const struct spoke_span texts[] = {
		span_of("SCAN"),           span_of(listing->cursor), span_of("MATCH"),
		span_of(listing->pattern), span_of("COUNT"),         span_of(STEP),
		span_of("TYPE"),           span_of("hash"),
	};
	struct spoke_span cursor;
	struct cursor reply;
	struct value value;

	drop_names(listing);
	if (!put_command(redis, redis->typeless ? 6 : 8, texts) || !read_reply(redis, &reply) ||
	    !next(&reply, &value))
		return SPOKE_EUNAVAILABLE;
	if (value.type == '-' && !redis->typeless && value.text.len >= 10 &&
	    memcmp(value.text.data, "ERR syntax", 10) == 0) {
		redis->typeless = true;
		return SPOKE_OK; /* the step follows without the option */
	}
	if (value.type == '-')
		return refuse(redis, value.text);
	if (value.type != '*' || value.number != 2 || !next_text(&reply, &cursor) || !cursor.len ||
	    cursor.len >= sizeof(listing->cursor) || !next(&reply, &value) || value.type != '*')
		return refuse(redis, span_of("unknown answer to SCAN"));
	memcpy(listing->cursor, cursor.data, cursor.len);
	listing->cursor[cursor.len] = '\0';
	if (strcmp(listing->cursor, "0") == 0)
		listing->cursor[0] = '\0';
	if (keep_names(listing, reply, (size_t)value.number))
		return SPOKE_OK;
	(void)fail(redis, "out of memory");
	return SPOKE_ENOMEM;
}

/* Returns the length of the name that the pattern matches alone; 0: others may match, or none. */
static size_t read_name(const char *pattern, char *to, size_t size)
{
	size_t len = 0;

	for (; *pattern; pattern++) {
		if (strchr("*?[", *pattern) || len == size || (*pattern == '\\' && !*++pattern))
			return 0;
		to[len++] = *pattern;
	}
	return len;
}

/* Goes through all keys. A command that was not answered is sent again, once, on a new connection.
 */
static int list_all(struct listing *listing)
{
	bool lost = false;

	for (;;) {
		uint64_t answers = listing->redis->answers;
		int error;

		if (!open_store(listing->redis))
			return SPOKE_EUNAVAILABLE;
		error = look_at_all(listing) ? SPOKE_OK : SPOKE_EUNAVAILABLE;
		if (listing->stopped || (!error && !*listing->cursor))
			return SPOKE_OK;
		if (!error)
			error = scan(listing);
		if (error)
			hang_up(listing->redis);
		if (error && error != SPOKE_EUNAVAILABLE)
			return error;
		if (error && lost && listing->redis->answers == answers)
			return error;
		lost = error != SPOKE_OK;
	}
}

int lock_redis_list(struct lock_redis *redis, const char *pattern, lock_info_fn each, void *arg)
{
	struct listing listing = {
		.redis = redis,
		.each = each,
		.arg = arg,
		.pattern = pattern ? pattern : "*",
		.cursor = "0",
	};
	struct spoke_span name;
	char text[SPOKE_LEASE_NAME_MAX];
	int error;

	name = (struct spoke_span){ text, read_name(listing.pattern, text, sizeof(text)) };
	if (name.len) { /* without a walk through all keys */
		listing.cursor[0] = '\0';
		listing.names = malloc(sizeof(name));
		if (!listing.names)
			return SPOKE_ENOMEM;
		listing.names[0] = name;
		listing.count = 1;
	}
	error = list_all(&listing);
	drop_names(&listing);
	return error;
}
