// One request and one stream in gRPC's hands. What gRPC has not ended keeps itself alive, so that
// whoever began it may be gone. The loop's thread. For grpc_*.cpp only.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>
#include <grpcpp/generic/generic_stub.h>

#include <chrono>
#include <deque>
#include <memory>
#include <string>

#include "store/etcd/etcd_transport.hpp"
#include "store/etcd/grpc_engine.hpp"

namespace trinco::detail::etcd {

class grpc_call : public std::enable_shared_from_this<grpc_call> {
public:
    void start(std::shared_ptr<grpc::Channel> by, const char* method, const std::string& request,
               const wire_metadata& with, std::chrono::nanoseconds within, grpc_engine& engine,
               transport::on_answer done);
    // Nothing is answered any more.
    void cancel();

private:
    void ended();

    std::shared_ptr<grpc::Channel> channel_;
    grpc::ClientContext context_;
    grpc::ByteBuffer reply_;
    grpc::Status status_;
    std::unique_ptr<grpc::ClientAsyncResponseReader<grpc::ByteBuffer>> call_;
    transport::on_answer done_;
};

class grpc_stream : public std::enable_shared_from_this<grpc_stream> {
public:
    void start(std::shared_ptr<grpc::Channel> by, const char* method, const wire_metadata& with,
               grpc_engine& engine, transport::on_message heard, transport::on_end over);
    void send(std::string message);
    // Nothing is told any more.
    void cancel();

private:
    void begun(bool well);
    void read();
    void was_read(bool well);
    void write_next();
    void finish();
    void ended();

    std::shared_ptr<grpc::Channel> channel_;
    grpc::ClientContext context_;
    grpc::ByteBuffer in_;
    grpc::ByteBuffer writing_;
    grpc::Status status_;
    std::unique_ptr<grpc::GenericClientAsyncReaderWriter> stream_;
    transport::on_message heard_;
    transport::on_end over_;
    std::deque<std::string> out_;
    bool is_open_ = false;
    bool is_over_ = false;
    bool is_writing_ = false;
    bool is_canceled_ = false;
};

}  // namespace trinco::detail::etcd
