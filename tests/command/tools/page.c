/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fake admin page: answers every request with the same file, on a port of the loopback interface
 * that it prints.
 *
 *     page FILE
 */
#include <spoke/engine.h>
#include <spoke/host.h>
#include <spoke/signals.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX 65536

struct visitor {
	struct spoke_watch watch;
	struct spoke_engine *engine;
};

struct page {
	struct spoke_watch listener;
	struct spoke_engine *engine;
};

static char answer[FILE_MAX + 128];

/* Answers any request; an incomplete write is not reported. */
static void visitor_ready(struct spoke_watch *watch, unsigned io)
{
	struct visitor *visitor = spoke_container_of(watch, struct visitor, watch);
	const struct spoke_env *env = spoke_host_env();
	char asked[1024];
	struct iovec part = { answer, strlen(answer) };

	(void)io;
	if (env->net->read(env->ctx, watch->fd, asked, sizeof(asked)) > 0)
		(void)env->net->write(env->ctx, watch->fd, &part, 1);
	spoke_engine_watch(visitor->engine, watch, 0);
	env->net->close(env->ctx, watch->fd);
	free(visitor);
}

static void listener_ready(struct spoke_watch *watch, unsigned io)
{
	struct page *page = spoke_container_of(watch, struct page, listener);
	const struct spoke_env *env = spoke_host_env();
	struct spoke_address peer;
	struct visitor *visitor;
	int fd;

	(void)io;
	if (env->net->accept(env->ctx, watch->fd, &fd, &peer))
		return;
	visitor = calloc(1, sizeof(*visitor));
	if (!visitor) {
		env->net->close(env->ctx, fd);
		return;
	}
	visitor->engine = page->engine;
	visitor->watch.ready = visitor_ready;
	visitor->watch.fd = fd;
	spoke_engine_watch(page->engine, &visitor->watch, SPOKE_IO_READ);
}

static int load(const char *path)
{
	static char body[FILE_MAX];
	FILE *file = fopen(path, "r");
	size_t len;

	if (!file)
		return -1;
	len = fread(body, 1, sizeof(body) - 1, file);
	(void)fclose(file);
	(void)snprintf(answer, sizeof(answer), "HTTP/1.1 200 OK\r\nContent-Length: %zu\r\n\r\n%s",
		       len, body);
	return 0;
}

int main(int argc, char **argv)
{
	const struct spoke_env *env = spoke_host_env();
	struct page page = { .listener.ready = listener_ready };
	struct spoke_address at;
	char text[128];
	int error = argc == 2 ? load(argv[1]) : -1;

	if (!error)
		error = spoke_engine_new(NULL, &page.engine);
	if (!error)
		error = spoke_engine_drain_on_signals(page.engine, 0);
	if (!error)
		error = env->net->parse(env->ctx, "127.0.0.1:0", &at);
	if (!error)
		error = env->net->listen(env->ctx, &at, 16, &page.listener.fd);
	if (!error)
		error = env->net->local(env->ctx, page.listener.fd, &at);
	if (error)
		return 2;
	env->net->print(env->ctx, &at, text, sizeof(text));
	printf("%s\n", text);
	(void)fflush(stdout);
	spoke_engine_watch(page.engine, &page.listener, SPOKE_IO_READ);
	error = spoke_engine_run(page.engine);
	spoke_engine_watch(page.engine, &page.listener, 0);
	env->net->close(env->ctx, page.listener.fd);
	spoke_engine_free(page.engine);
	return error != 0;
}
