/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++: a provider and a consumer on one engine in one process. Prints "hello".
 */
#include <spoke/consumer.h>
#include <spoke/provider.h>

#include <iostream>
#include <memory>
#include <stdexcept>
#include <string>

namespace
{

/* Exceptions must not propagate through spoke, so callbacks are noexcept. Errors are thrown here.
 */
void check(int error)
{
	if (error)
		throw std::runtime_error(spoke_strerror(error));
}

void echo(spoke_request *request, void *) noexcept
{
	spoke_cursor args = spoke_request_args(request);
	spoke_value text{};

	if (spoke_cursor_next(&args, &text))
		spoke_reply(request, text);
	else
		spoke_reply_error(request, 1, "echo: argument missing");
}

struct call {
	spoke_engine *engine;
	int error = SPOKE_OK;
	std::string answer{};
};

void done(void *arg, const spoke_result *result) noexcept
{
	auto *to = static_cast<call *>(arg);
	spoke_span text{};

	to->error = result->error;
	if (!to->error)
		to->error = spoke_value_str(result->value, &text);
	if (!to->error)
		to->answer.assign(reinterpret_cast<const char *>(text.data), text.len);
	spoke_engine_stop(to->engine);
}

std::string serve(spoke_engine *engine)
{
	spoke_provider *provider = nullptr;
	spoke_service_options service{};
	spoke_handler handler{};
	char address[128];

	service.name = "demo.EchoService";
	handler.method = "echo";
	handler.handle = echo;
	check(spoke_provider_new(engine, nullptr, &provider));
	check(spoke_provider_add(provider, &service, &handler, 1));
	check(spoke_provider_listen(provider, "dubbo://127.0.0.1:0"));
	spoke_provider_address(provider, 0, address, sizeof(address));
	return address;
}

std::string ask(spoke_engine *engine, const std::string &address, const char *text)
{
	const std::string url = "dubbo://" + address + "/demo.EchoService";
	spoke_consumer_options options{};
	spoke_consumer *consumer = nullptr;
	spoke_method *method = nullptr;
	unsigned char memory[64];
	spoke_builder builder;
	spoke_span args{};
	call one{ engine };

	options.url = url.c_str();
	spoke_builder_init_fixed(&builder, memory, sizeof(memory), nullptr);
	spoke_pack_text(&builder, text);
	check(spoke_builder_finish(&builder, &args));
	check(spoke_consumer_new(engine, &options, &consumer));
	check(spoke_consumer_method(consumer, "echo", nullptr, &method));
	check(spoke_call(method, args, nullptr, done, &one, nullptr));
	check(spoke_engine_run(engine));
	check(one.error);
	return one.answer;
}

} // namespace

int main()
{
	try {
		spoke_engine *made = nullptr;

		check(spoke_engine_new(nullptr, &made));
		std::unique_ptr<spoke_engine, void (*)(spoke_engine *)> engine(made,
									       spoke_engine_free);
		std::cout << ask(made, serve(made), "hello") << '\n';
	} catch (const std::exception &failed) {
		std::cerr << "echo: " << failed.what() << '\n';
		return 1;
	}
	return 0;
}
