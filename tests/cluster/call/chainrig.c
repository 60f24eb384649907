/* SPDX-License-Identifier: Apache-2.0 */
/* The fixture of calls in handlers: see chainrig.h. */
#include "tests/cluster/call/chainrig.h"
#include "tests/support/scene.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

struct chain chain;
const char chain_last_address[] = "127.0.0.1:21002";

/* --- requests */

static void note_abandoned(struct spoke_request *request, void *arg)
{
	struct chain_node *node = arg;

	assert_true(spoke_request_abandoned(request));
	node->abandoned++;
}

void chain_hold(struct chain_node *node, struct spoke_request *request)
{
	unsigned at = 0;

	while (node->held[at])
		assert_true(++at < CHAIN_HELD);
	node->held[at] = request;
	spoke_request_on_abandoned(request, note_abandoned, node);
}

void chain_answer(struct chain_node *node, unsigned which)
{
	struct spoke_request *request = node->held[which];

	assert_non_null(request);
	node->held[which] = NULL;
	SPOKE_REPLY(request, "held");
}

static void serve(struct spoke_request *request, void *arg)
{
	struct chain_node *node = arg;

	node->runs++;
	node->left_ns = spoke_request_left(request);
	if (node->handle)
		node->handle(node, request);
	else if (node == chain.last)
		chain_hold(node, request);
	else if (chain_call_next(node, request, NULL))
		spoke_reply_error(request, 1, "refused");
}

/* --- calls */

struct passed {
	struct chain_node *node;
	struct spoke_request *request;
};

static struct passed passed[64];
static unsigned passed_count;

static void done(void *arg, const struct spoke_result *result)
{
	struct passed *of = arg;

	of->node->ends++;
	of->node->error = result->error;
	of->node->written = result->written;
	of->node->ended_ns = chain.world.now_ns;
	if (of->request && result->error)
		spoke_reply_error(of->request, result->error, "passed on");
	else if (of->request)
		spoke_reply(of->request, result->value);
}

static int call(struct chain_node *node, struct spoke_request *request,
		const struct spoke_call_options *options, struct spoke_call *ret_call)
{
	struct passed *of = &passed[passed_count];
	int error;

	assert_true(passed_count < LENGTH(passed));
	*of = (struct passed){ node, request };
	error = spoke_call_args(node->method, SPOKE_NO_ARGS, options, done, of, ret_call);
	passed_count += error == 0;
	return error;
}

int chain_call_next(struct chain_node *node, struct spoke_request *request,
		    const struct spoke_call_options *options)
{
	return call(node, request, options, NULL);
}

struct spoke_call chain_call(uint64_t timeout_ns)
{
	const struct spoke_call_options options = { .timeout_ns = timeout_ns };
	struct spoke_call made;

	assert_int_equal(call(chain.first, NULL, &options, &made), 0);
	return made;
}

/* --- processes */

static unsigned port_of(const struct chain_node *node)
{
	return 21000 + (unsigned)(node - chain.nodes);
}

static void provide(struct chain_node *node)
{
	static const struct spoke_service_options service = { .name = "demo.Hop" };
	const struct spoke_handler handler = { .handle = serve, .arg = node, .flags = chain.flags };
	char url[64];

	(void)snprintf(url, sizeof(url), "dubbo://127.0.0.1:%u", port_of(node));
	assert_int_equal(spoke_provider_new(node->engine, chain.provide, &node->provider), 0);
	assert_int_equal(spoke_provider_add(node->provider, &service, &handler, 1), 0);
	assert_int_equal(spoke_provider_listen(node->provider, url), 0);
}

static void consume(struct chain_node *node, const char *query)
{
	struct spoke_consumer_options options = {
		.filters = chain.filters,
		.filter_count = chain.filter_count,
		.takes_tickets = true,
	};
	char url[256];

	(void)snprintf(url, sizeof(url), "%s://127.0.0.1:%u/demo.Hop?%s",
		       chain.plain && node == chain.first ? "msgpack-rpc" : "dubbo",
		       port_of(node + 1), query);
	options.url = url;
	assert_int_equal(spoke_consumer_new(node->engine, &options, &node->consumer), 0);
	assert_int_equal(spoke_consumer_method(node->consumer, "go", NULL, &node->method), 0);
}

void chain_begin(unsigned count, const char *query)
{
	chain.count = count;
	chain.first = &chain.nodes[0];
	chain.last = &chain.nodes[count - 1];
	for (unsigned i = count; i > 0; i--) {
		struct chain_node *node = &chain.nodes[i - 1];

		node->engine = scene_engine(&chain.world, &node->process, NULL, NULL);
		if (i > 1)
			provide(node);
		if (i < count)
			consume(node, query);
	}
	if (chain.route != SPOKEI_VNET_NORMAL) {
		spokei_vnet_route(chain.world.net, chain_last_address, chain.route);
		return;
	}
	chain_pass(10 * MS);
	for (unsigned i = 0; i + 1 < count; i++)
		assert_int_equal(spoke_consumer_ready(chain.nodes[i].consumer), 1);
}

void chain_pass(uint64_t ns)
{
	scene_pass(&chain.world, ns);
}

void chain_kill(struct chain_node *node)
{
	for (unsigned i = 0; i < CHAIN_HELD; i++)
		if (node->held[i])
			chain_answer(node, i);
	scene_leave(&node->process, NULL, &node->engine);
	node->engine = NULL;
}

int chain_set_up(void **state)
{
	(void)state;
	memset(&chain, 0, sizeof(chain));
	passed_count = 0;
	scene_open(&chain.world, 5);
	return 0;
}

void chain_end(void)
{
	for (unsigned i = 0; i < chain.count; i++)
		if (chain.nodes[i].engine)
			chain_kill(&chain.nodes[i]);
}

int chain_tear_down(void **state)
{
	(void)state;
	chain_end();
	spokei_world_fini(&chain.world);
	return 0;
}
