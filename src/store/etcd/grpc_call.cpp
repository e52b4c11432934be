#include "store/etcd/grpc_call.hpp"

#include <utility>
#include <vector>

namespace trinco::detail::etcd {
namespace {

void set_metadata(grpc::ClientContext& context, const wire_metadata& with) {
    if (!with.token.empty()) context.AddMetadata("token", with.token);
    if (with.needs_leader) context.AddMetadata("hasleader", "true");
}

wire_status status_of(const grpc::Status& status) {
    return {static_cast<wire_code>(status.error_code()), status.error_message()};
}

std::string bytes_of(const grpc::ByteBuffer& buffer) {
    std::string out;
    std::vector<grpc::Slice> slices;
    if (!buffer.Valid() || !buffer.Dump(&slices).ok()) return out;
    out.reserve(buffer.Length());
    for (const auto& one : slices) {
        out.append(reinterpret_cast<const char*>(one.begin()), one.size());
    }
    return out;
}

grpc::ByteBuffer buffer_of(const std::string& bytes) {
    const grpc::Slice one(bytes);
    return {&one, 1};
}

}  // namespace

void grpc_call::start(std::shared_ptr<grpc::Channel> by, const char* method,
                      const std::string& request, const wire_metadata& with,
                      std::chrono::nanoseconds within, grpc_engine& engine,
                      transport::on_answer done) {
    channel_ = std::move(by);
    done_ = std::move(done);
    set_metadata(context_, with);
    // A duration: gRPC's clocks are others than the loop's.
    context_.set_deadline(std::chrono::system_clock::now() +
                          std::chrono::duration_cast<std::chrono::system_clock::duration>(within));
    call_ = grpc::GenericStub(channel_).PrepareUnaryCall(&context_, method, buffer_of(request),
                                                         &engine.queue());
    call_->StartCall();
    call_->Finish(&reply_, &status_,
                  grpc_engine::tag([self = shared_from_this()](bool) { self->ended(); }));
}

void grpc_call::cancel() {
    done_ = nullptr;
    context_.TryCancel();
}

void grpc_call::ended() {
    if (auto done = std::exchange(done_, nullptr)) {
        done(status_of(status_), status_.ok() ? bytes_of(reply_) : std::string());
    }
}

void grpc_stream::start(std::shared_ptr<grpc::Channel> by, const char* method,
                        const wire_metadata& with, grpc_engine& engine, transport::on_message heard,
                        transport::on_end over) {
    channel_ = std::move(by);
    heard_ = std::move(heard);
    over_ = std::move(over);
    set_metadata(context_, with);
    stream_ = grpc::GenericStub(channel_).PrepareCall(&context_, method, &engine.queue());
    stream_->StartCall(
        grpc_engine::tag([self = shared_from_this()](bool well) { self->begun(well); }));
}

void grpc_stream::begun(bool well) {
    if (is_canceled_) return;
    if (!well) return finish();
    is_open_ = true;
    read();
    if (!out_.empty()) write_next();
}

void grpc_stream::read() {
    stream_->Read(
        &in_, grpc_engine::tag([self = shared_from_this()](bool well) { self->was_read(well); }));
}

void grpc_stream::was_read(bool well) {
    if (is_canceled_) return;
    if (!well) return finish();
    heard_(bytes_of(in_));
    if (!is_canceled_) read();
}

void grpc_stream::send(std::string message) {
    if (is_over_ || is_canceled_) return;
    out_.push_back(std::move(message));
    if (is_open_ && !is_writing_) write_next();
}

void grpc_stream::write_next() {
    is_writing_ = true;
    writing_ = buffer_of(out_.front());
    out_.pop_front();
    stream_->Write(writing_, grpc_engine::tag([self = shared_from_this()](bool well) {
                       self->is_writing_ = false;
                       if (well && !self->is_canceled_ && !self->out_.empty()) self->write_next();
                   }));
}

void grpc_stream::finish() {
    is_over_ = true;
    out_.clear();
    stream_->Finish(&status_,
                    grpc_engine::tag([self = shared_from_this()](bool) { self->ended(); }));
}

void grpc_stream::ended() {
    if (is_canceled_) return;
    is_canceled_ = true;
    over_(status_of(status_));
}

void grpc_stream::cancel() {
    if (std::exchange(is_canceled_, true)) return;
    context_.TryCancel();
}

}  // namespace trinco::detail::etcd
