/* SPDX-License-Identifier: Apache-2.0 */
/*
 * spoke for C++14: objects that free themselves, and lambdas as handlers and callbacks.
 *
 *     spoke::engine engine;
 *     spoke::provider provider(engine);
 *
 *     provider.add("demo.Greeter", "greet", [](spoke::request &request) {
 *             char name[64];
 *
 *             if (request.read(SPOKE_TEXT(name)))
 *                     request.reply(std::string("hello, ") + name);
 *     });
 *     provider.listen("dubbo://127.0.0.1:20880");
 *     engine.drain_on_signals();
 *     engine.run();
 *
 * Functions that fail throw spoke::error. Exceptions never cross the C library: one that leaves a
 * handler becomes the error of the request, and one that leaves a callback ends the run, which
 * throws it again. Everything is inline and uses the public C functions only; get() returns the C
 * object. Lambdas live as long as the object that they were given to, callbacks of calls until they
 * have run. Threads are those of C: the engine's, except for futures.
 */
#ifndef SPOKE_SPOKE_HPP
#define SPOKE_SPOKE_HPP

#include <spoke/spoke.h>

#include <exception>
#include <functional>
#include <list>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

/* NOLINTBEGIN(readability-identifier-naming): private members end in an underscore */
namespace spoke
{

/* An error of spoke, with its number and a sentence. */
class error : public std::runtime_error
{
      public:
	explicit error(int code, const std::string &why = std::string())
	    : std::runtime_error(why.empty() ? spoke_strerror(code) : why), code_(code)
	{
	}

	int code() const noexcept
	{
		return code_;
	}

      private:
	int code_;
};

/* Throws unless `code` is 0. */
inline void check(int code, const std::string &why = std::string())
{
	if (code)
		throw error(code, why);
}

/* Returns a text as an argument; the string must outlive the call. */
inline spoke_arg text(const std::string &value)
{
	return spoke_arg_bytes(SPOKE_ARG_STR, value.data(), value.size());
}

/* An engine, and the exception that a callback has left behind. Neither copied nor moved. */
class engine
{
      public:
	explicit engine(const spoke_engine_options &options = spoke_engine_options())
	{
		check(spoke_engine_new(&options, &engine_));
	}

	~engine()
	{
		spoke_engine_free(engine_);
	}

	engine(const engine &) = delete;
	engine &operator=(const engine &) = delete;

	spoke_engine *get() const noexcept
	{
		return engine_;
	}

	/* Runs until stop() or the end of a drain. Throws the exception of a callback. */
	void run()
	{
		check(spoke_engine_run(engine_));
		if (thrown_)
			std::rethrow_exception(std::exchange(thrown_, nullptr));
	}

	/* Runs on a thread of its own. An exception of a callback then ends the run, and is thrown
	 * by join(). */
	void start()
	{
		check(spoke_engine_start(engine_));
	}

	void join()
	{
		check(spoke_engine_join(engine_));
		if (thrown_)
			std::rethrow_exception(std::exchange(thrown_, nullptr));
	}

	void stop() noexcept
	{
		spoke_engine_stop(engine_);
	}

	/* SIGTERM and SIGINT drain it. */
	void drain_on_signals(uint64_t timeout_ns = UINT64_C(10000000000))
	{
		check(spoke_engine_drain_on_signals(engine_, timeout_ns));
	}

	/* Throws an error with the latest sentence of the engine. */
	void check_why(int code) const
	{
		if (code)
			throw error(code, std::string(spoke_strerror(code)) + "; " +
						  spoke_engine_why(engine_));
	}

	/* Calls a function of the user; keeps its exception and stops the run. */
	template <typename F> void guard(F &&function) noexcept
	{
		try {
			function();
		} catch (...) {
			if (!thrown_)
				thrown_ = std::current_exception();
			stop();
		}
	}

      private:
	spoke_engine *engine_ = nullptr;
	std::exception_ptr thrown_;
};

/* A request in a handler, which replies exactly once. Not copied. */
class request
{
      public:
	explicit request(spoke_request *raw) noexcept : request_(raw)
	{
	}

	request(const request &) = delete;
	request &operator=(const request &) = delete;

	spoke_request *get() const noexcept
	{
		return request_;
	}

	/* Reads all arguments into variables, by the types of the pointers. Otherwise replies with
	 * the reason, and returns false. */
	template <typename... T> bool read(const T &...into)
	{
		const spoke_into all[] = { spoke_target(into)... };

		if (spoke_request_read(request_, all, sizeof...(T)) == 0)
			return true;
		answered_ = true;
		return false;
	}

	/* Replies with a value of SPOKE_ARG(), SPOKE_LIST() or SPOKE_MAP(), or with a text. */
	template <typename T> void reply(const T &value)
	{
		answered_ = true;
		spoke_reply_arg(request_, spoke_arg_of(value));
	}

	void reply(const std::string &value)
	{
		answered_ = true;
		spoke_reply_arg(request_, text(value));
	}

	/* Replies with an error of the handler. */
	void reply_error(int32_t code, const std::string &why)
	{
		answered_ = true;
		spoke_reply_error(request_, code, "%s", why.c_str());
	}

	/* Lets the request outlive the handler: the program answers the C object later. */
	spoke_request *keep()
	{
		check(spoke_request_keep(request_));
		answered_ = true;
		return request_;
	}

	/* Calls a handler. Its exception, or the lack of a reply, becomes an error. */
	template <typename F> void serve(F &&handler) noexcept
	{
		const char *why = "the handler did not reply";
		std::exception_ptr kept; /* as long as `why` */

		try {
			handler(*this);
		} catch (const std::exception &thrown) {
			kept = std::current_exception();
			why = thrown.what();
		} catch (...) {
			why = "the handler threw an exception";
		}
		if (!answered_)
			spoke_reply_error(request_, SPOKE_ESERVER, "%s", why);
	}

      private:
	spoke_request *request_;
	bool answered_ = false;
};

/* A provider with its handlers. The engine must outlive it. Not destroyed in a handler of its own.
 */
class provider
{
      public:
	using handler = std::function<void(request &)>;

	explicit provider(engine &on,
			  const spoke_provider_options &options = spoke_provider_options())
	    : engine_(on)
	{
		engine_.check_why(spoke_provider_new(on.get(), &options, &provider_));
	}

	~provider()
	{
		spoke_provider_free(provider_);
	}

	provider(const provider &) = delete;
	provider &operator=(const provider &) = delete;

	spoke_provider *get() const noexcept
	{
		return provider_;
	}

	/* Adds a service of one method. */
	void add(const std::string &service, const std::string &method, handler handle)
	{
		add(service, { { method, std::move(handle) } });
	}

	/* Adds a service of several methods. */
	void add(const std::string &service, std::list<std::pair<std::string, handler>> methods)
	{
		std::vector<spoke_handler> raw;
		spoke_service_options options = spoke_service_options();

		for (auto &method : methods) {
			spoke_handler one = spoke_handler();

			handlers_.push_back(std::move(method.second));
			one.method = method.first.c_str();
			one.handle = handled;
			one.arg = &handlers_.back();
			raw.push_back(one);
		}
		options.name = service.c_str();
		engine_.check_why(spoke_provider_add(provider_, &options, raw.data(), raw.size()));
	}

	void listen(const std::string &url)
	{
		engine_.check_why(spoke_provider_listen(provider_, url.c_str()));
	}

	/* Returns an address, e.g. "127.0.0.1:20880"; empty: there is none. */
	std::string address(size_t index = 0) const
	{
		char at[256];

		return spoke_provider_address(provider_, index, at, sizeof(at)) ? at : "";
	}

      private:
	static void handled(spoke_request *raw, void *arg) noexcept
	{
		request(raw).serve(*static_cast<handler *>(arg));
	}

	engine &engine_;
	spoke_provider *provider_ = nullptr;
	std::list<handler> handlers_; /* never moved: the C library keeps pointers */
};

/* The result of a call, in its callback or of a future; borrowed. */
class result
{
      public:
	explicit result(const spoke_result *raw) noexcept : result_(raw)
	{
	}

	const spoke_result *get() const noexcept
	{
		return result_;
	}

	explicit operator bool() const noexcept
	{
		return result_->error == SPOKE_OK;
	}

	/* Returns the value, or the error with its times, as a text of at most 1023 bytes. */
	std::string print() const
	{
		char room[1024] = "";

		(void)spoke_result_print(result_, room, sizeof(room));
		return room;
	}

	/* Returns the value as a T: bool, a number, or a std::string. Throws the error of the call,
	 * or that of a value of another type. */
	template <typename T> T as() const
	{
		T to = T();

		read(spoke_target(&to));
		return to;
	}

      private:
	void read(spoke_into into) const
	{
		spoke_reader reader = spoke_reader_of(result_->value);
		char why[256] = "";

		if (result_->error)
			throw error(result_->error, print());
		if (int failed = spoke_read(&reader, &into, 1)) {
			(void)spoke_reader_why(&reader, why, sizeof(why));
			throw error(failed, why);
		}
	}

	const spoke_result *result_;
};

template <> inline std::string result::as<std::string>() const
{
	spoke_span span = spoke_span();

	read(spoke_into_of(&span, sizeof(span), SPOKE_INTO_SPAN));
	return std::string(static_cast<const char *>(static_cast<const void *>(span.data)),
			   span.len);
}

/* A call that any thread may wait for. Moved, not copied. */
class future
{
      public:
	explicit future(spoke_future *raw) noexcept : future_(raw)
	{
	}

	/* Waits; blocks. Not on the engine's thread. Returns the result, which is borrowed. */
	result wait()
	{
		check(spoke_future_wait(future_.get()));
		return result(spoke_future_result(future_.get()));
	}

	void cancel() noexcept
	{
		spoke_future_cancel(future_.get());
	}

	spoke_future *get() const noexcept
	{
		return future_.get();
	}

      private:
	struct freed {
		void operator()(spoke_future *raw) const noexcept
		{
			spoke_future_free(raw);
		}
	};

	std::unique_ptr<spoke_future, freed> future_;
};

/* A method of a consumer, by value; valid as long as the consumer. */
class method
{
      public:
	method(engine &on, spoke_method *raw) noexcept : engine_(&on), method_(raw)
	{
	}

	spoke_method *get() const noexcept
	{
		return method_;
	}

	/* Calls; done(const spoke::result &) runs exactly once, on the engine's thread. `args` is
	 * SPOKE_ARGS() or SPOKE_NO_ARGS. */
	template <typename F> void call(spoke_args args, F done)
	{
		call(args, std::move(done), spoke_call_options());
	}

	/* The same with options of the call, e.g. the request for which it is made. */
	template <typename F> void call(spoke_args args, F done, const spoke_call_options &options)
	{
		std::unique_ptr<callback<F>> kept(new callback<F>{ engine_, std::move(done) });

		engine_->check_why(spoke_call_args(method_, args, &options, callback<F>::run,
						   kept.get(), nullptr));
		(void)kept.release(); /* freed by run() */
	}

	/* Starts a call, also with options, e.g. the request for which it is made. Any thread. */
	future start(spoke_args args, const spoke_call_options &options = spoke_call_options())
	{
		spoke_future *raw = nullptr;

		check(spoke_future_start_args(method_, args, &options, &raw));
		return future(raw);
	}

      private:
	template <typename F> struct callback {
		engine *on;
		F done;

		static void run(void *arg, const spoke_result *raw) noexcept
		{
			std::unique_ptr<callback> self(static_cast<callback *>(arg));

			self->on->guard([&] { self->done(result(raw)); });
		}
	};

	engine *engine_;
	spoke_method *method_;
};

/* A consumer. The engine must outlive it. */
class consumer
{
      public:
	consumer(engine &on, const std::string &url,
		 spoke_consumer_options options = spoke_consumer_options())
	    : engine_(on)
	{
		options.url = url.c_str();
		engine_.check_why(spoke_consumer_new(on.get(), &options, &consumer_));
	}

	~consumer()
	{
		spoke_consumer_free(consumer_);
	}

	consumer(const consumer &) = delete;
	consumer &operator=(const consumer &) = delete;

	spoke_consumer *get() const noexcept
	{
		return consumer_;
	}

	/* Makes a method; keep it, because every call makes a new one. */
	spoke::method method(const std::string &name)
	{
		spoke_method *made = nullptr;

		check(spoke_consumer_method(consumer_, name.c_str(), nullptr, &made));
		return spoke::method(engine_, made);
	}

      private:
	engine &engine_;
	spoke_consumer *consumer_ = nullptr;
};

} // namespace spoke
/* NOLINTEND(readability-identifier-naming) */

#endif
