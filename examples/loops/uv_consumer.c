/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Three calls from a program with a libuv loop, each from a timer of libuv.
 *
 *     uv_consumer [url]
 */
#define _GNU_SOURCE
#include "fd_loop.h"

#include <stdio.h>
#include <uv.h>

#define CALLS 3u

/* The engine in the libuv loop: one descriptor, and a hook on each side of the loop's wait. */
struct guest {
	struct fd_loop loop;
	uv_prepare_t before;
	uv_check_t after;
	uv_idle_t at_once; /* active: libuv does not wait */
	uv_poll_t poll;
};

static void ignore_idle(uv_idle_t *idle)
{
	(void)idle;
}

static void ignore_poll(uv_poll_t *poll, int status, int events)
{
	(void)poll;
	(void)status;
	(void)events;
}

static void before_wait(uv_prepare_t *prepare)
{
	struct guest *guest = prepare->data;

	if (guest->loop.stopped)
		uv_stop(prepare->loop);
	if (fd_loop_before(&guest->loop) == 0)
		(void)uv_idle_start(&guest->at_once, ignore_idle);
	else
		(void)uv_idle_stop(&guest->at_once);
}

static void after_wait(uv_check_t *check)
{
	struct guest *guest = check->data;

	fd_loop_after(&guest->loop);
}

/* The engine must exist. */
static int guest_start(struct guest *guest, uv_loop_t *uv)
{
	int error = uv_poll_init(uv, &guest->poll, guest->loop.epoll);

	if (error)
		return error;
	(void)uv_prepare_init(uv, &guest->before);
	(void)uv_check_init(uv, &guest->after);
	(void)uv_idle_init(uv, &guest->at_once);
	guest->before.data = guest->after.data = guest;
	(void)uv_prepare_start(&guest->before, before_wait);
	(void)uv_check_start(&guest->after, after_wait);
	return uv_poll_start(&guest->poll, UV_READABLE, ignore_poll);
}

/* --- a program with it */

struct program {
	struct guest guest;
	struct spoke_engine *engine;
	struct spoke_method *echo;
	uv_timer_t timer;
	unsigned called;
	unsigned answered;
	int error;
};

static void done(void *arg, const struct spoke_result *result)
{
	struct program *program = arg;
	char text[64];

	(void)spoke_result_print(result, text, sizeof(text));
	puts(text);
	program->error = result->error;
	if (++program->answered == CALLS || program->error)
		uv_stop(uv_default_loop());
}

static void call(uv_timer_t *timer)
{
	struct program *program = timer->data;

	program->error = spoke_call_with(program->echo, SPOKE_ARGS(program->called), done, program);
	if (++program->called == CALLS)
		(void)uv_timer_stop(timer);
	if (program->error)
		uv_stop(uv_default_loop());
}

static void close_handle(uv_handle_t *handle, void *arg)
{
	(void)arg;
	uv_close(handle, NULL);
}

int main(int argc, char **argv)
{
	struct program program = { .error = 0 };
	uv_loop_t *uv = uv_default_loop();
	struct spoke_env env;
	struct spoke_engine_options in_uv = { .env = &env, .native = &program.guest.loop };
	struct spoke_consumer_options options = {
		.url = argc > 1 ? argv[1] : "dubbo://127.0.0.1:20880/demo.EchoService",
	};
	struct spoke_consumer *consumer;

	fd_loop_init(&program.guest.loop, &env);
	program.error = spoke_engine_new(&in_uv, &program.engine);
	if (!program.error)
		program.error = spoke_consumer_new(program.engine, &options, &consumer);
	if (!program.error)
		program.error = spoke_consumer_method(consumer, "echo", NULL, &program.echo);
	if (!program.error && guest_start(&program.guest, uv) == 0) {
		program.timer.data = &program;
		(void)uv_timer_init(uv, &program.timer);
		(void)uv_timer_start(&program.timer, call, 1, 1);
		(void)uv_run(uv, UV_RUN_DEFAULT);
	}
	if (program.error)
		fprintf(stderr, "%s\n", spoke_strerror(program.error));
	uv_walk(uv, close_handle, NULL);
	(void)uv_run(uv, UV_RUN_DEFAULT); /* ends what uv_close() began */
	spoke_engine_free(program.engine);
	(void)uv_loop_close(uv);
	return program.error || program.answered < CALLS ? 1 : 0;
}
