/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A consumer of the Java interface demo.OrderService: places an order, prints it as the provider
 * has stored it, and asks for one that does not exist. The provider may be Java or
 * order_provider.c.
 *
 *     order_consumer [registry]
 */
#include <spoke/consumer.h>

#include <stdio.h>

#define PLACED 1700000000 /* seconds since 1970 */

static struct spoke_engine *engine;
static struct spoke_method *place;
static struct spoke_method *find;
static int outcome;

static void end(int error)
{
	outcome = error;
	spoke_engine_stop(engine);
}

/* The exception of the Java provider, with its class and its causes. */
static void missed(void *arg, const struct spoke_result *result)
{
	struct spoke_exception thrown;

	(void)arg;
	if (!spoke_result_exception(result, 0, &thrown)) {
		end(SPOKE_EBADREPLY);
		return;
	}
	printf("%.*s: %.*s\n", (int)thrown.class_name.len, (const char *)thrown.class_name.data,
	       (int)thrown.message.len, (const char *)thrown.message.data);
	end(0);
}

static int find_order(int64_t id, spoke_call_done_fn done)
{
	struct spoke_builder builder;
	unsigned char memory[16];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_long(&builder, id);
	error = spoke_builder_finish(&builder, &args);
	return error ? error : spoke_call(find, args, NULL, done, NULL, NULL);
}

/* The object has come as a map with the fields of the class, and the name of the class last. */
static void found(void *arg, const struct spoke_result *result)
{
	char text[512];
	int error = result->error;

	(void)arg;
	(void)spoke_result_print(result, text, sizeof(text));
	printf("%s\n", text);
	if (!error)
		error = find_order(-1, missed);
	if (error)
		end(error);
}

static void placed(void *arg, const struct spoke_result *result)
{
	int64_t id;
	int error = result->error;

	(void)arg;
	if (!error)
		error = spoke_value_i64(result->value, &id);
	if (!error)
		error = find_order(id, found);
	if (error) {
		printf("place: %s\n", spoke_strerror(error));
		end(error);
	}
}

static int place_order(void)
{
	struct spoke_builder builder;
	unsigned char memory[512];
	struct spoke_span args;
	int error;

	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_object(&builder, 4);
	spoke_pack_text(&builder, "item");
	spoke_pack_text(&builder, "tea");
	spoke_pack_text(&builder, "amount");
	spoke_pack_i64(&builder, 3);
	spoke_pack_text(&builder, "price");
	spoke_pack_decimal(&builder, "4.50");
	spoke_pack_text(&builder, "placed");
	spoke_pack_time(&builder, PLACED, 0);
	spoke_pack_class(&builder, "demo.Order");
	error = spoke_builder_finish(&builder, &args);
	return error ? error : spoke_call(place, args, NULL, placed, NULL, NULL);
}

/* The types are those of the Java methods: J is a long. */
static int consume(const char *registry)
{
	const struct spoke_consumer_options options = {
		.url = "consumer://any/demo.OrderService?timeout=5s&wait.ready=true",
		.registry = registry,
	};
	const struct spoke_method_options places = { .types = "Ldemo/Order;" };
	const struct spoke_method_options finds = { .types = "J" };
	struct spoke_consumer *consumer;
	int error = spoke_consumer_new(engine, &options, &consumer);

	if (!error)
		error = spoke_consumer_method(consumer, "place", &places, &place);
	if (!error)
		error = spoke_consumer_method(consumer, "find", &finds, &find);
	return error ? error : place_order();
}

int main(int argc, char **argv)
{
	int error = spoke_engine_new(NULL, &engine);

	if (!error)
		error = consume(argc > 1 ? argv[1] : "zookeeper://127.0.0.1:2181");
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "order_consumer: %s\n",
			      engine ? spoke_engine_why(engine) : spoke_strerror(error));
	spoke_engine_free(engine);
	return error || outcome;
}
