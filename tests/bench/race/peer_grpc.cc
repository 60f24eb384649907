/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gRPC as its performance guide recommends: the asynchronous API on both sides, one thread with one
 * completion queue per core, of which there is one; channels and stubs are reused; messages are
 * ByteBuffers, so that no protobuf is parsed. Service and call replace the code that its protoc
 * plug-in would generate for a raw unary method. Each call has a deadline. The library may read on
 * threads of its own, so the clock is read for each reply.
 */
#include "tests/bench/rpc/meter.h"
#include "tests/bench/rpc/peer.h"
#include "tests/bench/rpc/stage.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/rpc_method.h>
#include <grpcpp/impl/rpc_service_method.h>
#include <grpcpp/impl/service_type.h>
#include <grpcpp/support/async_unary_call.h>
#include <grpcpp/support/byte_buffer.h>

#include <chrono>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace
{

using grpc::ByteBuffer;
using grpc::internal::RpcMethod;
using grpc::internal::RpcServiceMethod;

constexpr char method_name[] = "/demo.EchoService/echo";
constexpr auto timeout = std::chrono::seconds(1);
constexpr auto connect_timeout = std::chrono::seconds(4);

class echo_service final : public grpc::Service
{
      public:
	echo_service()
	{
		AddMethod(new RpcServiceMethod(method_name, RpcMethod::NORMAL_RPC, nullptr));
		MarkMethodRaw(0);
	}

	void request(grpc::ServerContext *context, ByteBuffer *message,
		     grpc::ServerAsyncResponseWriter<ByteBuffer> *writer,
		     grpc::ServerCompletionQueue *queue, void *tag)
	{
		RequestAsyncUnary(0, context, message, writer, queue, queue, tag);
	}
};

/* The server's state of one call at a time. */
class served_call
{
      public:
	served_call(echo_service *service, grpc::ServerCompletionQueue *queue)
	    : service(service), queue(queue)
	{
		await_request();
	}

	/* A request has arrived, or its reply was sent. */
	void advance()
	{
		if (is_answered) {
			await_request();
		} else {
			is_answered = true;
			writer->Finish(message, grpc::Status::OK, this);
		}
	}

      private:
	void await_request()
	{
		is_answered = false;
		message.Clear();
		writer.reset();
		context.emplace();
		writer.emplace(&*context);
		service->request(&*context, &message, &*writer, queue, this);
	}

	echo_service *service;
	grpc::ServerCompletionQueue *queue;
	bool is_answered = false;
	ByteBuffer message;
	std::optional<grpc::ServerContext> context;
	std::optional<grpc::ServerAsyncResponseWriter<ByteBuffer>> writer;
};

std::string url_of(const rpc_plan *plan)
{
	std::string address = plan->address;

	return plan->is_unix ? "unix:" + address : address + ":" + std::to_string(plan->port);
}

std::string read_file(const rpc_plan *plan, const char *name)
{
	std::ifstream file(std::string(plan->certs) + "/" + name);
	std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());

	if (text.empty())
		host_die("grpc: cannot read %s", name);
	return text;
}

std::shared_ptr<grpc::ServerCredentials> server_credentials(const rpc_plan *plan)
{
	grpc::SslServerCredentialsOptions options;

	if (plan->certs[0] == '\0')
		return grpc::InsecureServerCredentials();
	options.pem_key_cert_pairs.push_back(
		{ read_file(plan, "provider.key"), read_file(plan, "provider.pem") });
	return grpc::SslServerCredentials(options);
}

std::shared_ptr<grpc::ChannelCredentials> channel_credentials(const rpc_plan *plan)
{
	grpc::SslCredentialsOptions options;

	if (plan->certs[0] == '\0')
		return grpc::InsecureChannelCredentials();
	options.pem_root_certs = read_file(plan, "ca.pem");
	return grpc::SslCredentials(options);
}

void serve(const rpc_plan *plan)
{
	echo_service service;
	grpc::ServerBuilder builder;
	int port = 0;

	builder.AddListeningPort(url_of(plan), server_credentials(plan), &port);
	builder.RegisterService(&service);
	std::unique_ptr<grpc::ServerCompletionQueue> queue = builder.AddCompletionQueue();
	std::unique_ptr<grpc::Server> server = builder.BuildAndStart();
	if (!server)
		host_die("grpc: does not listen at %s", plan->address);

	std::vector<std::unique_ptr<served_call>> calls;
	for (uint32_t i = 0; i < plan->connections * plan->outstanding; i++)
		calls.push_back(std::make_unique<served_call>(&service, queue.get()));
	stage_ready(plan->is_unix ? uint16_t{ 0 } : static_cast<uint16_t>(port));

	void *tag = nullptr;
	bool ok = false;
	/* Not ok: a client has disconnected; the call is over in any case. */
	while (queue->Next(&tag, &ok))
		static_cast<served_call *>(tag)->advance();
}

/* A separate channel makes a separate connection if nothing of it is shared. */
std::shared_ptr<grpc::Channel> open_channel(const rpc_plan *plan)
{
	grpc::ChannelArguments arguments;

	arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
	return grpc::CreateCustomChannel(url_of(plan), channel_credentials(plan), arguments);
}

struct link {
	explicit link(const rpc_plan *plan)
	    : channel(open_channel(plan)), method(method_name, RpcMethod::NORMAL_RPC, channel)
	{
	}

	std::shared_ptr<grpc::Channel> channel;
	RpcMethod method;
};

std::unique_ptr<struct link> connect(const rpc_plan *plan)
{
	auto link = std::make_unique<struct link>(plan);

	if (!link->channel->WaitForConnected(std::chrono::system_clock::now() + connect_timeout))
		host_die("grpc: no connection to %s", plan->address);
	return link;
}

/* State shared by all calls of the client. */
struct driver {
	driver(const rpc_plan *plan, struct meter *meter)
	    : meter(meter), text(plan->payload, 'x'), slice(text)
	{
	}

	struct meter *meter;
	std::string text;
	grpc::Slice slice;
	grpc::CompletionQueue queue;
};

/* A call that is kept in flight. */
class seat
{
      public:
	seat(struct driver *driver, struct link *link) : driver(driver), link(link)
	{
	}

	void call()
	{
		ByteBuffer request(&driver->slice, 1);

		reader.reset();
		context.emplace();
		context->set_deadline(std::chrono::system_clock::now() + timeout);
		begun_ns = driver->meter->now_ns;
		reader.reset(grpc::internal::ClientAsyncResponseReaderHelper::Create<ByteBuffer>(
			link->channel.get(), &driver->queue, link->method, &*context, request));
		reader->StartCall();
		reader->Finish(&reply, &status, this);
	}

	/* The call has ended. */
	void advance()
	{
		struct meter *meter = driver->meter;

		if (!status.ok())
			host_die("grpc: a call failed: %s", status.error_message().c_str());
		meter_tick(meter);
		if (!is_right())
			meter_failure(meter);
		meter_call(meter, begun_ns);
		if (!meter_is_over(meter))
			call();
	}

	void cancel()
	{
		context->TryCancel();
	}

      private:
	bool is_right() const
	{
		grpc::Slice whole;
		const std::string &text = driver->text;

		if (reply.TrySingleSlice(&whole).ok())
			return whole.size() == text.size() &&
			       std::memcmp(whole.begin(), text.data(), text.size()) == 0;
		return reply.Length() == text.size();
	}

	struct driver *driver;
	struct link *link;
	std::optional<grpc::ClientContext> context;
	std::unique_ptr<grpc::ClientAsyncResponseReader<ByteBuffer>> reader;
	ByteBuffer reply;
	grpc::Status status;
	uint64_t begun_ns = 0;
};

void drive(const rpc_plan *plan, struct meter *meter)
{
	struct driver driver(plan, meter);
	std::vector<std::unique_ptr<struct link>> links;
	std::vector<std::unique_ptr<seat>> candidates;
	void *tag = nullptr;
	bool ok = false;

	/* Deadlines begin when all connections are established. */
	for (uint32_t i = 0; i < plan->connections; i++)
		links.push_back(connect(plan));
	meter_restart(meter);
	for (auto &link : links) {
		for (uint32_t j = 0; j < plan->outstanding; j++) {
			candidates.push_back(std::make_unique<seat>(&driver, link.get()));
			candidates.back()->call();
		}
	}
	while (!meter_is_over(meter) && driver.queue.Next(&tag, &ok))
		static_cast<seat *>(tag)->advance();
	for (auto &seat : candidates)
		seat->cancel();
	driver.queue.Shutdown();
	while (driver.queue.Next(&tag, &ok)) {
	}
}

const char *version()
{
	static const std::string text = grpc::Version();

	return text.c_str();
}

} // namespace

const rpc_peer rpc_grpc = {
	"grpc", serve, drive, 0, version, nullptr, false, true, false, false, false,
};
