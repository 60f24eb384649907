/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls from a program with a loop of its own over epoll: each line of the standard input is one
 * call.
 *
 *     epoll_consumer [url]
 */
#include "fd_loop.h"

#include <stdio.h>
#include <unistd.h>

struct program {
	struct fd_loop loop;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	unsigned open; /* calls without an answer */
	bool over;     /* no more input */
	int error;
};

static void done(void *arg, const struct spoke_result *result)
{
	struct program *program = arg;
	char text[256];

	(void)spoke_result_print(result, text, sizeof(text));
	puts(text);
	program->open--;
	program->error = result->error;
}

/* Calls with each line that has come. */
static void serve_input(struct program *program)
{
	char text[256];
	const char *line = text;
	ssize_t len = read(STDIN_FILENO, text, sizeof(text));

	program->over = len <= 0;
	for (ssize_t i = 0; i < len && !program->error; i++) {
		if (text[i] != '\n')
			continue;
		text[i] = 0;
		program->error = spoke_call_with(program->echo, SPOKE_ARGS(line), done, program);
		program->open++;
		line = &text[i + 1];
	}
}

static void run(struct program *program)
{
	int epoll = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event input = { .events = EPOLLIN, .data = { .fd = STDIN_FILENO } };
	struct epoll_event engine = { .events = EPOLLIN, .data = { .fd = program->loop.epoll } };

	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, STDIN_FILENO, &input);
	(void)epoll_ctl(epoll, EPOLL_CTL_ADD, program->loop.epoll, &engine);
	while (!program->error && !(program->over && program->open == 0)) {
		struct epoll_event event;
		int timeout = fd_loop_before(&program->loop);
		int count = epoll_wait(epoll, &event, 1, timeout);

		fd_loop_after(&program->loop);
		if (count == 1 && event.data.fd == STDIN_FILENO) {
			serve_input(program);
			if (program->over)
				(void)epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, NULL);
		}
	}
	(void)close(epoll);
}

int main(int argc, char **argv)
{
	struct program program = { .error = 0 };
	struct spoke_env env;
	struct spoke_engine_options in_epoll = { .env = &env, .native = &program.loop };
	struct spoke_consumer_options options = {
		.url = argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880/demo.EchoService",
	};
	struct spoke_consumer *consumer;

	fd_loop_init(&program.loop, &env);
	program.error = spoke_engine_new(&in_epoll, &program.engine);
	if (!program.error)
		program.error = spoke_consumer_new(program.engine, &options, &consumer);
	if (!program.error)
		program.error = spoke_consumer_method(consumer, "echo", NULL, &program.echo);
	if (!program.error)
		run(&program);
	if (program.error)
		fprintf(stderr, "%s\n", spoke_strerror(program.error));
	spoke_engine_free(program.engine);
	return program.error ? 1 : 0;
}
