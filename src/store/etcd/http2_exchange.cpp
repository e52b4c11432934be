#include "store/etcd/http2_exchange.hpp"

#include <utility>

namespace trinco::detail::etcd {

http2_exchange::http2_exchange(const char* method, wire_metadata with, std::string request,
                               deadline by, transport::on_answer done)
    : method_(method), with_(std::move(with)), by_(by), done_(std::move(done)) {
    unsent.push_back(std::move(request));
}

http2_exchange::http2_exchange(const char* method, wire_metadata with, transport::on_message heard,
                               transport::on_end ended)
    : method_(method), with_(std::move(with)), heard_(std::move(heard)), ended_(std::move(ended)) {}

void http2_exchange::end(wire_status how) {
    if (over_) return;
    over_ = std::move(how);
    if (owner_ != nullptr) owner_->has_news(*this);
}

void http2_exchange::forget() {
    is_wanted_ = false;
    limit.cancel();
    const auto done = std::move(done_);
    const auto heard = std::move(heard_);
    const auto ended = std::move(ended_);
}

void http2_exchange::tell() {
    if (!is_call()) {
        for (auto& message : std::exchange(messages_, {})) {
            if (!is_wanted_) return;
            auto heard = std::move(heard_);  // it may be forgotten while it runs
            heard(std::move(message));
            heard_ = std::move(heard);
        }
    }
    if (!over_ || !is_wanted_) return;
    is_wanted_ = false;
    limit.cancel();
    if (is_call()) {
        auto reply = messages_.empty() ? std::string() : std::move(messages_.front());
        auto done = std::move(done_);
        done(std::move(*over_), std::move(reply));
    } else {
        heard_ = nullptr;
        auto ended = std::move(ended_);
        ended(std::move(*over_));
    }
}

void http2_exchange::on_field(std::string_view name, std::string_view value) {
    answer_.field(name, value);
}

void http2_exchange::on_fields_end() {
    answer_.fields_end();
    if (answer_.is_lost()) end(status_of({}));
}

void http2_exchange::on_data(std::string_view bytes) {
    answer_.data(bytes);
    auto more = answer_.take();
    if (messages_.empty()) {
        messages_ = std::move(more);
    } else {
        for (auto& one : more) messages_.push_back(std::move(one));
    }
    if (answer_.is_lost()) return end(status_of({}));
    if (is_call() && messages_.size() > 1) {
        return end({wire_code::internal, "it answered twice", wire_cause::broken});
    }
    if (!is_call() && !messages_.empty() && owner_ != nullptr) owner_->has_news(*this);
}

void http2_exchange::on_end(http2_end how) {
    end(status_of(how));
}

wire_status http2_exchange::status_of(http2_end how) {
    switch (how.kind) {
        case http2_end::kind_t::refused:
            return {wire_code::unavailable, "it takes no more requests on this connection",
                    wire_cause::not_sent};
        case http2_end::kind_t::reset:
            if (how.code == http2_code::http_1_1_required) {
                return {wire_code::unavailable, "it speaks HTTP, and not gRPC: it is no etcd",
                        wire_cause::misdirected};
            }
            return {wire_code::unavailable,
                    "it gave the request up (" + http2_code_name(how.code) + ")",
                    wire_cause::broken};
        case http2_end::kind_t::too_large:
            return {wire_code::internal, "the head of its answer is too large", wire_cause::broken};
        case http2_end::kind_t::complete: break;
    }
    auto verdict = answer_.verdict();
    auto& status = verdict.status;
    switch (verdict.by) {
        case grpc_verdict::by_t::server: break;
        case grpc_verdict::by_t::too_large:
        case grpc_verdict::by_t::broken:
            return {status.code, std::move(status.text), wire_cause::broken};
        case grpc_verdict::by_t::not_grpc:
            // A proxy before an etcd that is away, or that fails itself: the request may have been
            // carried out behind it.
            if (status.code == wire_code::unavailable ||
                (owner_ != nullptr && owner_->speaks_grpc())) {
                return {wire_code::unavailable, std::move(status.text), wire_cause::broken};
            }
            return {wire_code::unavailable, status.text + ": it is no etcd",
                    wire_cause::misdirected};
    }
    if (is_call() && status.code == wire_code::ok && messages_.size() != 1) {
        return {wire_code::internal, "its answer is without a message", wire_cause::broken};
    }
    if (owner_ != nullptr) owner_->spoke_grpc();
    return {status.code, std::move(status.text), wire_cause::server};
}

}  // namespace trinco::detail::etcd
