/* SPDX-License-Identifier: Apache-2.0 */
/* <spoke/spoke.hpp>: objects, lambdas, and exceptions that stay out of C. Prints what fails. */
#include <spoke/spoke.hpp>

#include <cstring>
#include <iostream>

namespace
{

int failures;

void expect(bool fact, const char *sentence)
{
	if (fact)
		return;
	std::cerr << "not so: " << sentence << '\n';
	failures++;
}

/* A provider and a consumer on one engine. */
struct pair {
	spoke::engine engine{};
	spoke::provider provider{ engine };
	std::string url{};

	pair()
	{
		provider.add("demo.Cpp",
			     { { "greet",
				 [](spoke::request &request) {
					 char name[8];

					 if (request.read(SPOKE_TEXT(name)))
						 request.reply(std::string("hello, ") + name);
				 } },
			       { "sum",
				 [](spoke::request &request) {
					 int a = 0, b = 0;

					 if (request.read(&a, &b))
						 request.reply(a + b);
				 } },
			       { "throw",
				 [](spoke::request &) { throw std::runtime_error("out of tea"); } },
			       { "odd", [](spoke::request &) { throw 7; } },
			       { "mute", [](spoke::request &) {} },
			       { "hold", [this](spoke::request &request) {
					held = request.keep();
					engine.stop();
				} } });
		provider.listen("dubbo://127.0.0.1:0");
		url = "dubbo://" + provider.address() + "/demo.Cpp?timeout=60s";
	}

	pair(const pair &) = delete;
	pair &operator=(const pair &) = delete;

	spoke_request *held = nullptr;

	/* Calls a method and runs until the end of the call. */
	std::string ask(const char *method, spoke_args args)
	{
		spoke::consumer consumer(engine, url);
		std::string text;

		consumer.method(method).call(args, [&](const spoke::result &result) {
			text = result.print();
			engine.stop();
		});
		engine.run();
		return text;
	}
};

bool has(const std::string &text, const char *part)
{
	return text.find(part) != std::string::npos;
}

void handlers_are_lambdas()
{
	pair both;

	expect(both.ask("greet", SPOKE_ARGS("Ann")) == "\"hello, Ann\"", "a text is answered");
	expect(both.ask("sum", SPOKE_ARGS(40, 2)) == "42", "a number is answered");
	expect(has(both.ask("sum", SPOKE_ARGS(40, "x")), "argument 2: integer wanted, text came"),
	       "a wrong argument is named");
	expect(both.ask("greet", SPOKE_ARGS(spoke::text(std::string("Bo")))) == "\"hello, Bo\"",
	       "a std::string is an argument");
}

void exception_of_a_handler_is_an_error_of_the_call()
{
	pair both;

	expect(has(both.ask("throw", SPOKE_NO_ARGS), "out of tea"), "the exception is the reason");
	expect(has(both.ask("odd", SPOKE_NO_ARGS), "threw an exception"), "any type is caught");
	expect(has(both.ask("mute", SPOKE_NO_ARGS), "did not reply"), "every call is answered");
}

void exception_of_a_callback_ends_the_run()
{
	pair both;
	spoke::consumer consumer(both.engine, both.url);
	bool thrown = false;

	consumer.method("greet").call(SPOKE_ARGS("Ann"),
				      [](const spoke::result &result) { (void)result.as<int>(); });
	try {
		both.engine.run();
	} catch (const spoke::error &failed) {
		thrown = failed.code() == SPOKE_ETYPE &&
			 has(failed.what(), "integer wanted, text came");
	}
	expect(thrown, "run() throws the exception of a callback");
	expect(both.ask("greet", SPOKE_ARGS("Bo")) == "\"hello, Bo\"", "and can run again");
}

void errors_are_thrown_with_a_cause()
{
	pair both;
	int code = 0;

	try {
		spoke::consumer consumer(both.engine, "dubbo://127.0.0.1:1/demo.X?timeout=soon");
	} catch (const spoke::error &failed) {
		code = has(failed.what(), "timeout=soon") ? failed.code() : 0;
	}
	expect(code == SPOKE_ESYNTAX, "a wrong URL is thrown");
	try {
		both.provider.add("demo.Cpp", "twice", [](spoke::request &) {});
	} catch (const spoke::error &failed) {
		code = failed.code();
	}
	expect(code == SPOKE_EEXIST, "a service that exists is thrown");
	try {
		spoke::consumer consumer(both.engine, both.url);
		spoke_call_options options = spoke_call_options();

		options.timeout_ns = UINT64_MAX;
		consumer.method("greet").call(
			SPOKE_ARGS("Ann"), [](const spoke::result &) {}, options);
	} catch (const spoke::error &failed) {
		code = failed.code();
	}
	expect(code == SPOKE_ERANGE, "the options of a call are used");
}

void end_of_a_consumer_ends_its_calls()
{
	int ended = 0;
	{
		pair both;
		{
			spoke::consumer consumer(both.engine, both.url);

			consumer.method("hold").call(SPOKE_NO_ARGS,
						     [&](const spoke::result &result) {
							     ended = result.get()->error;
							     throw 7; /* kept by the engine */
						     });
			both.engine.run();
		}
		spoke_reply_error(both.held, 1, "late");
	}
	expect(ended == SPOKE_ECLOSED, "the callback has run once");
}

void futures_are_waited_for_on_other_threads()
{
	pair both;
	spoke::engine engine;
	spoke::consumer consumer(engine, both.url);
	spoke::method sum = consumer.method("sum");

	both.engine.start();
	engine.start();
	{
		spoke::future first = sum.start(SPOKE_ARGS(1, 2));
		spoke::future second = sum.start(SPOKE_ARGS(3, 4));

		expect(second.wait().as<int>() == 7, "the second answer");
		expect(first.wait().as<int>() == 3, "the first answer");

		spoke_call_options options = spoke_call_options();

		options.timeout_ns = UINT64_MAX;
		spoke::future refused = sum.start(SPOKE_ARGS(1, 2), options);

		expect(refused.wait().get()->error == SPOKE_ERANGE, "the options are used");
	}
	engine.stop();
	engine.join();
	both.engine.stop();
	both.engine.join();
}

} // namespace

int main()
{
	try {
		handlers_are_lambdas();
		exception_of_a_handler_is_an_error_of_the_call();
		exception_of_a_callback_ends_the_run();
		errors_are_thrown_with_a_cause();
		end_of_a_consumer_ends_its_calls();
		futures_are_waited_for_on_other_threads();
	} catch (const std::exception &failed) {
		std::cerr << "thrown: " << failed.what() << '\n';
		failures++;
	}
	return failures != 0;
}
