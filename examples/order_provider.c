/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A provider of the Java interface demo.OrderService, which cluster/JAVA.md shows. Consumers in
 * Java need nothing but the interface and its classes.
 *
 *     order_provider [registry [url]]
 */
#include <spoke/provider.h>
#include <spoke/signals.h>

#include <inttypes.h>
#include <stdio.h>

#define ORDERS_MAX 1000
#define DRAIN_NS UINT64_C(10000000000)

struct order {
	char item[64];
	int32_t amount;
	char price[32]; /* decimal digits */
	int64_t placed; /* seconds since 1970 */
};

static struct order orders[ORDERS_MAX];
static int64_t order_count;

/* Reads an object of the class demo.Order: a map with its fields. A BigDecimal is one, too. */
static int read_order(struct spoke_reader *args, struct order *order)
{
	struct spoke_value price;
	struct spoke_value placed;
	struct spoke_reader digits;
	uint32_t ns;
	int error = SPOKE_READ_MAP(args, "item", SPOKE_TEXT(order->item), "amount", &order->amount,
				   "price", &price, "placed", &placed);

	if (error)
		return error;
	digits = spoke_reader_of(price);
	error = SPOKE_READ_MAP(&digits, "value", SPOKE_TEXT(order->price));
	return error ? error : spoke_value_time(placed, &order->placed, &ns);
}

static void pack_order(struct spoke_builder *builder, int64_t id, const struct order *order)
{
	spoke_pack_object(builder, 5);
	spoke_pack_text(builder, "id");
	spoke_pack_long(builder, id);
	spoke_pack_text(builder, "item");
	spoke_pack_text(builder, order->item);
	spoke_pack_text(builder, "amount");
	spoke_pack_i64(builder, order->amount);
	spoke_pack_text(builder, "price");
	spoke_pack_decimal(builder, order->price);
	spoke_pack_text(builder, "placed");
	spoke_pack_time(builder, order->placed, 0);
	spoke_pack_class(builder, "demo.Order");
}

static void reply(struct spoke_request *request, struct spoke_builder *builder)
{
	struct spoke_value value;

	if (spoke_builder_finish_value(builder, &value))
		spoke_reply_error(request, 1, "the answer is too long");
	else
		spoke_reply(request, value);
}

/* long place(Order order): a Java long is an integer in eight bytes. */
static void place(struct spoke_request *request, void *arg)
{
	struct spoke_reader args = spoke_request_reader(request);
	struct spoke_builder builder;
	unsigned char memory[16];
	struct order order;

	(void)arg;
	args.lenient = true; /* later versions of the class may have further fields */
	if (read_order(&args, &order)) {
		spoke_reply_exception(request, "java.lang.IllegalArgumentException", 0,
				      "place: not an order", (struct spoke_value){ 0 });
		return;
	}
	if (order_count == ORDERS_MAX) {
		spoke_reply_error(request, 2, "no room for further orders");
		return;
	}
	orders[order_count++] = order;
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_long(&builder, order_count);
	reply(request, &builder);
}

/* Order find(long id) throws NoSuchOrder */
static void find(struct spoke_request *request, void *arg)
{
	struct spoke_builder builder;
	unsigned char memory[512];
	char text[64];
	int64_t id = 0;

	(void)arg;
	if (SPOKE_READ_REQUEST(request, &id))
		return;
	if (id < 1 || id > order_count) {
		(void)snprintf(text, sizeof(text), "no order %" PRId64, id);
		spoke_reply_exception(request, "demo.NoSuchOrder", 0, text,
				      (struct spoke_value){ 0 });
		return;
	}
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	pack_order(&builder, id, &orders[id - 1]);
	reply(request, &builder);
}

static int serve(struct spoke_engine *engine, const char *registry, const char *url,
		 struct spoke_provider **provider)
{
	const struct spoke_provider_options options = { .registry = registry };
	const struct spoke_service_options service = { .name = "demo.OrderService" };
	const struct spoke_handler handlers[] = {
		{ .method = "place", .handle = place },
		{ .method = "find", .handle = find },
	};
	int error = spoke_provider_new(engine, &options, provider);

	if (!error)
		error = spoke_provider_add(*provider, &service, handlers, 2);
	return error ? error : spoke_provider_listen(*provider, url);
}

int main(int argc, char **argv)
{
	const char *registry = argc > 1 ? argv[1] : "zookeeper://127.0.0.1:2181";
	struct spoke_engine *engine = NULL;
	struct spoke_provider *provider;
	char address[128];
	int error = spoke_engine_new(NULL, &engine);

	if (!error)
		error = serve(engine, registry, argc > 2 ? argv[2] : "dubbo://127.0.0.1:20880",
			      &provider);
	if (!error)
		error = spoke_engine_drain_on_signals(engine, DRAIN_NS);
	if (!error && spoke_provider_address(provider, 0, address, sizeof(address))) {
		printf("demo.OrderService listens at %s\n", address);
		(void)fflush(stdout);
		error = spoke_engine_run(engine);
	}
	if (error)
		(void)fprintf(stderr, "order_provider: %s\n",
			      engine ? spoke_engine_why(engine) : spoke_strerror(error));
	spoke_engine_free(engine);
	return error != 0;
}
