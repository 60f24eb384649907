/* SPDX-License-Identifier: Apache-2.0 */
/*
 * C++: a provider and a consumer on one engine in one process. Prints "hello".
 */
#include <spoke/spoke.hpp>

#include <iostream>

int main()
{
	try {
		spoke::engine engine;
		spoke::provider provider(engine);

		provider.add("demo.EchoService", "echo", [](spoke::request &request) {
			spoke_value value;

			if (request.read(&value))
				request.reply(value);
		});
		provider.listen("dubbo://127.0.0.1:0");

		spoke::consumer consumer(engine,
					 "dubbo://" + provider.address() + "/demo.EchoService");
		spoke::method echo = consumer.method("echo");

		echo.call(SPOKE_ARGS("hello"), [&](const spoke::result &result) {
			engine.stop();
			std::cout << result.as<std::string>() << '\n';
		});
		engine.run(); /* throws the error of the call, or of its value */
	} catch (const std::exception &failed) {
		std::cerr << "echo: " << failed.what() << '\n';
		return 1;
	}
	return 0;
}
