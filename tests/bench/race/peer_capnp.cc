/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cap'n Proto RPC in its own event loop: one capability, calls pipelined as promises, a timeout of
 * kj's timer for each. Server and call replace the code that its compiler would generate, with a
 * text instead of a struct that contains one text.
 */
#include "tests/bench/rpc/meter.h"
#include "tests/bench/rpc/peer.h"
#include "tests/bench/rpc/stage.h"

#include <capnp/any.h>
#include <capnp/capability.h>
#include <capnp/common.h>
#include <capnp/rpc-twoparty.h>
#include <kj/async-io.h>
#include <kj/debug.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace
{

constexpr uint64_t interface_id = 0xe1b7d6a9c5f04d13;
constexpr uint16_t method_id = 0;
constexpr kj::Duration timeout = 1 * kj::SECONDS;

/*
 * Number of events that run in a row; a call takes about 14. By default a loop of kj polls for I/O
 * only when no event is left, which under load may take a second. Until then connections with
 * replies starve, and calls time out early, because the timer uses the time of the last poll.
 */
constexpr uint32_t events_max = 128;

/* Overhead of a text in a message, in words. */
constexpr uint64_t words_extra = 8;

class echo_server final : public capnp::Capability::Server
{
      public:
	DispatchCallResult dispatchCall(
		uint64_t, uint16_t,
		capnp::CallContext<capnp::AnyPointer, capnp::AnyPointer> context) override
	{
		auto text = context.getParams().getAs<capnp::Text>();

		context.getResults(capnp::MessageSize{ text.size() / 8 + words_extra, 0 })
			.setAs<capnp::Text>(text);
		return { kj::READY_NOW, false };
	}
};

kj::AsyncIoContext open_io()
{
	kj::AsyncIoContext io = kj::setupAsyncIo();

	io.waitScope.setBusyPollInterval(events_max);
	return io;
}

kj::Own<kj::NetworkAddress> address_of(kj::AsyncIoContext &io, const rpc_plan *plan)
{
	std::string text = plan->address;

	text = plan->is_unix ? "unix:" + text : text + ":" + std::to_string(plan->port);
	return io.provider->getNetwork().parseAddress(text.c_str()).wait(io.waitScope);
}

void serve(const rpc_plan *plan)
{
	kj::AsyncIoContext io = open_io();
	capnp::TwoPartyServer server(kj::heap<echo_server>());
	kj::Own<kj::ConnectionReceiver> receiver = address_of(io, plan)->listen();

	stage_ready(plan->is_unix ? uint16_t{ 0 } : static_cast<uint16_t>(receiver->getPort()));
	server.listen(*receiver).wait(io.waitScope);
}

struct link {
	explicit link(kj::Own<kj::AsyncIoStream> from)
	    : stream(kj::mv(from)), client(*stream), echo(client.bootstrap())
	{
	}

	kj::Own<kj::AsyncIoStream> stream;
	capnp::TwoPartyClient client;
	capnp::Capability::Client echo;
};

/* Keeps its calls in flight. */
class driver final : kj::TaskSet::ErrorHandler
{
      public:
	driver(const rpc_plan *plan, struct meter *meter)
	    : plan(plan), meter(meter), io(open_io()), over(kj::newPromiseAndFulfiller<void>()),
	      text(kj::heapString(plan->payload)), tasks(*this)
	{
		std::memset(text.begin(), 'x', text.size());
	}

	void run()
	{
		for (uint32_t i = 0; i < plan->connections; i++) {
			auto stream = address_of(io, plan)->connect().wait(io.waitScope);

			links.push_back(std::make_unique<struct link>(kj::mv(stream)));
			links.back()->echo.whenResolved().wait(io.waitScope);
		}
		meter_restart(meter);
		for (auto &link : links)
			for (uint32_t j = 0; j < plan->outstanding; j++)
				call(link.get());
		over.promise.wait(io.waitScope);
	}

      private:
	void call(struct link *link)
	{
		capnp::MessageSize size{ text.size() / 8 + words_extra, 0 };
		auto request = link->echo.typelessRequest(interface_id, method_id, size);
		uint64_t begun_ns = meter->now_ns;

		request.setAs<capnp::Text>(text);
		tasks.add(request.send().dropPipeline().exclusiveJoin(give_up()).then(
			[this, link, begun_ns](auto reply) {
				take_reply(link, begun_ns, reply.template getAs<capnp::Text>());
			}));
	}

	/* The timer's own timeoutAfter() fails a call whose reply has arrived but was not read,
	 * because the client had to wait for its core. Here the reply is read first. */
	kj::Promise<capnp::Response<capnp::AnyPointer>> give_up()
	{
		return io.provider->getTimer().afterDelay(timeout).then([]() {
			return kj::evalLast([]() -> capnp::Response<capnp::AnyPointer> {
				kj::throwFatalException(KJ_EXCEPTION(OVERLOADED, "timed out"));
			});
		});
	}

	void take_reply(struct link *link, uint64_t begun_ns, capnp::Text::Reader reply)
	{
		if (meter_is_over(meter))
			return;
		if (meter_is_new_batch(meter) && reply != text)
			meter_failure(meter);
		meter_call(meter, begun_ns);
		if (meter_is_over(meter))
			over.fulfiller->fulfill();
		else
			call(link);
	}

	void taskFailed(kj::Exception &&exception) override
	{
		host_die("capnp: a call failed: %s", exception.getDescription().cStr());
	}

	const rpc_plan *plan;
	struct meter *meter;
	kj::AsyncIoContext io;
	kj::PromiseFulfillerPair<void> over;
	kj::String text;
	std::vector<std::unique_ptr<struct link>> links;
	kj::TaskSet tasks; /* destroyed before the objects that it uses */
};

void drive(const rpc_plan *plan, struct meter *meter)
{
	driver(plan, meter).run();
}

const char *version()
{
	static const std::string text = std::to_string(CAPNP_VERSION_MAJOR) + "." +
					std::to_string(CAPNP_VERSION_MINOR) + "." +
					std::to_string(CAPNP_VERSION_MICRO);

	return text.c_str();
}

} // namespace

const rpc_peer rpc_capnp = {
	"capnp",
	serve,
	drive,
	0,
	version,
	"its loop polls for I/O after at most 128 events; otherwise connections starve and calls"
	" time out",
	false,
	false,
	false,
	false,
	false,
};
