/* SPDX-License-Identifier: Apache-2.0 */
/* provider.c: serves demo.Greeter with the settings of greeter.conf. */
#include <spoke/spoke.h>

#include <stdio.h>

static void show_error(void *arg, const char *sentence)
{
	(void)arg;
	(void)fprintf(stderr, "%s\n", sentence);
}

static void changed(void *arg, const struct spoke_link_event *event)
{
	(void)arg;
	printf("consumer %s: %s\n", event->name, spoke_link_change_name(event->change));
	(void)fflush(stdout);
}

static void greet(struct spoke_request *request, void *arg)
{
	struct spoke_cursor args = spoke_request_args(request);
	struct spoke_builder builder;
	unsigned char memory[512];
	struct spoke_value value;
	struct spoke_span name;
	char text[256];

	(void)arg;
	if (!spoke_cursor_next(&args, &value) || spoke_value_str(value, &name) || name.len > 200) {
		spoke_reply_error(request, 1, "greet: name missing or longer than 200 bytes");
		return;
	}
	(void)snprintf(text, sizeof(text), "hello, %.*s", (int)name.len, (const char *)name.data);
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), NULL);
	spoke_pack_text(&builder, text);
	if (spoke_builder_finish_value(&builder, &value))
		spoke_reply_error(request, 2, "answer too large");
	else
		spoke_reply(request, value);
}

static int serve(struct spoke_engine *engine, struct spoke_config *config)
{
	struct spoke_provider_options options = { .config = config, .changed = changed };
	struct spoke_service_options service = { .name = "demo.Greeter" };
	struct spoke_handler handler = { .method = "greet", .handle = greet };
	struct spoke_provider *provider;
	char address[128];
	int error = spoke_provider_new(engine, &options, &provider);

	if (!error)
		error = spoke_provider_add(provider, &service, &handler, 1);
	if (!error)
		error = spoke_provider_listen(provider, "dubbo://127.0.0.1:0");
	if (!error && spoke_provider_address(provider, 0, address, sizeof(address)))
		printf("demo.Greeter listens at %s\n", address);
	(void)fflush(stdout);
	/* SIGTERM and SIGINT drain: running requests get at most 10 s to finish. */
	return error ? error : spoke_engine_drain_on_signals(engine, UINT64_C(10000000000));
}

int main(void)
{
	struct spoke_engine *engine = NULL;
	struct spoke_config *config = NULL;
	int error = spoke_config_load(NULL, "greeter.conf", show_error, NULL, &config);

	if (!error)
		error = spoke_engine_new(NULL, &engine);
	if (!error)
		error = serve(engine, config);
	if (!error)
		error = spoke_engine_run(engine);
	if (error)
		(void)fprintf(stderr, "provider: %s\n", spoke_strerror(error));
	spoke_engine_free(engine);
	spoke_config_free(config);
	return error != 0;
}
