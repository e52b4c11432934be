#include "store/etcd/http2_connection.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <new>
#include <utility>

#include "store/etcd/http2_trouble.hpp"
#include "wire/grpc/grpc_head.hpp"

namespace trinco::detail::etcd {
namespace {

using namespace std::chrono_literals;

constexpr auto connect_within = 2s;
constexpr auto sign_within = 3s;
constexpr auto ping_after_most = 10min;
constexpr auto reading_may_tell = 1s;  // why a write failed
constexpr std::string_view agent = "trinco/" TRINCO_VERSION;

}  // namespace

// ---- what is asked for --------------------------------------------------------------------------

void http2_connection::connect(stream_factory& by) {
    const auto until = loop_.now() + connect_within;
    limit_ = loop_.at(until, [this] {
        if (in_ == state::connecting) {
            fail(no_connection(std::make_error_code(std::errc::timed_out), {}));
        } else {
            fail({wire_code::unavailable, "it takes connections, but does not answer",
                  wire_cause::broken});
        }
    });
    connecting_ = by.connect(place_->address, until,
                             [this](std::error_code error, std::unique_ptr<byte_stream> made) {
                                 if (error) return fail(no_connection(error, place_->address.tls));
                                 connected(std::move(made));
                             });
}

void http2_connection::begin(std::shared_ptr<http2_exchange> one) {
    auto& added = *one;
    added.belongs_to(this);
    if (added.by()) {
        added.limit = loop_.at(*added.by(), [this, &added] { late(added); });
    }
    if (open_.empty()) busy_since_ = loop_.now();
    added.place = open_.insert(open_.end(), std::move(one));
    added.is_open = true;
    if (in_ != state::connected) return;
    submit(added);
    watch_life();
    flush();
}

void http2_connection::submit(http2_exchange& one) {
    const auto& with = one.metadata();
    std::array<http2_field, 2> metadata;
    std::size_t n = 0;
    if (!with.token.empty()) metadata[n++] = {"token", with.token};
    if (with.needs_leader) metadata[n++] = {"hasleader", "true"};
    grpc_request head;
    head.tls = place_->address.tls.has_value();
    head.authority = place_->authority;
    head.method = one.method();
    head.agent = agent;
    if (one.by()) head.within = std::max<boot_clock::duration>(*one.by() - loop_.now(), 1ns);
    head.metadata = {metadata.data(), n};
    if (!client_->begin(one, grpc_head(head).fields())) {
        leaves_ = true;
        return one.end(
            {wire_code::unavailable, "this connection has served its time", wire_cause::not_sent});
    }
    one.is_begun = true;
    for (auto& message : std::exchange(one.unsent, {})) send(one, std::move(message));
}

void http2_connection::send(http2_exchange& on, std::string message) {
    if (!on.is_open) return;
    if (!on.is_begun) return on.unsent.push_back(std::move(message));
    client_->send(on, grpc_prefix(message.size()), false);
    client_->send(on, std::move(message), on.is_call());
    flush();
}

void http2_connection::drop(http2_exchange& one) {
    one.forget();
    if (!one.is_open) return;
    one.is_open = false;
    const auto kept = *one.place;
    open_.erase(one.place);
    if (one.is_begun && in_ == state::connected) {
        client_->cancel(one);
        flush();
    }
    see_to_the_end();
}

void http2_connection::retire() {
    leaves_ = true;
    see_to_the_end();
}

void http2_connection::end() noexcept {
    silent_ = true;
    hang_up();
    for (const auto& one : std::exchange(due_, {})) one->forget();
    const auto all = std::exchange(open_, {});
    for (const auto& one : all) {
        one->is_open = false;  // before what one of them owns may drop another
        one->belongs_to(nullptr);
    }
    for (const auto& one : all) one->forget();
}

// ---- the connection -----------------------------------------------------------------------------

void http2_connection::connected(std::unique_ptr<byte_stream> stream) {
    stream_ = std::move(stream);
    client_ = std::make_unique<http2_client>();
    in_ = state::connected;
    heard_ = loop_.now();
    corked_ = true;
    const std::vector<std::shared_ptr<http2_exchange>> all(open_.begin(), open_.end());
    for (const auto& one : all) submit(*one);
    corked_ = false;
    if (!open_.empty()) watch_life();
    read();
    flush();
}

void http2_connection::read() {
    reading_ = stream_->read_some(
        [this](std::error_code error, std::string_view bytes) { arrived(error, bytes); });
}

void http2_connection::arrived(std::error_code error, std::string_view bytes) {
    const auto alive = shared_from_this();  // whoever is told may drop us
    if (error || bytes.empty()) return fail(connection_lost(error, client_->is_ready()));
    heard_ = loop_.now();
    const bool was_ready = client_->is_ready();
    tells_soon_ = true;
    try {
        client_->feed(bytes);
    } catch (const std::bad_alloc&) {
        tells_soon_ = false;
        return fail({wire_code::unavailable, "this process has no memory left for its answers",
                     wire_cause::broken});
    }
    if (!was_ready && client_->is_ready()) limit_.cancel();
    if (const auto& goodbye = client_->goodbye()) {
        leaves_ = true;
        const bool wants_calm = goodbye->code == http2_code::enhance_your_calm;
        if (wants_calm && !std::exchange(is_calmed_, true)) {
            place_->ping_after =
                std::min<boot_clock::duration>(2 * place_->ping_after, ping_after_most);
        }
    }
    tell();
    flush();
    if (in_ == state::connected) read();
}

// One write at a time; what comes up meanwhile goes out with the next.
void http2_connection::flush() {
    if (in_ != state::connected || corked_) return;
    const bool is_free = !writes_;
    auto bytes = is_free ? client_->take() : std::string();
    if (!bytes.empty()) {
        writes_ = true;
        writing_ = stream_->write(std::move(bytes),
                                  [this](std::error_code error, std::size_t) { written(error); });
    }
    if (client_->fault()) {
        fail(not_understood(*client_->fault()));
    } else if (is_free && client_->is_over()) {
        fail({wire_code::unavailable, "it ended the connection", wire_cause::broken});
    }
}

void http2_connection::written(std::error_code error) {
    if (error) {
        // The peer may have said why, which reading tells.
        writing_ = loop_.after(
            reading_may_tell, [this, error] { fail(connection_lost(error, client_->is_ready())); });
        return;
    }
    const auto alive = shared_from_this();
    writes_ = false;
    flush();
}

void http2_connection::see_to_the_end() {
    if (leaves_ && open_.empty() && due_.empty()) hang_up();
}

void http2_connection::hang_up() noexcept {
    in_ = state::over;
    connecting_.cancel();
    limit_.cancel();
    reading_.cancel();
    writing_.cancel();
    life_.cancel();
    stream_.reset();
}

void http2_connection::fail(const wire_status& how) {
    if (in_ == state::over) return;
    hang_up();
    while (!open_.empty()) {
        auto& one = *open_.front();
        const bool was_sent = one.is_begun && (one.was_sent() || !one.is_call());
        auto so = how;
        if (!was_sent && so.by == wire_cause::broken) so.by = wire_cause::not_sent;
        one.end(std::move(so));
    }
}

// ---- what is told -------------------------------------------------------------------------------

// Also in the midst of feeding the client, so nothing is told now.
void http2_connection::has_news(http2_exchange& of) {
    if (!std::exchange(of.is_due, true)) due_.push_back(*of.place);
    if (of.has_ended() && std::exchange(of.is_open, false)) {
        open_.erase(of.place);
        if (of.is_begun && in_ == state::connected) client_->cancel(of);
    }
    if (std::exchange(tells_soon_, true)) return;
    loop_.post([self = shared_from_this()] {
        self->tell();
        self->flush();
    });
}

void http2_connection::tell() {
    tells_soon_ = false;
    corked_ = true;
    for (const auto& one : std::exchange(due_, {})) {
        one->is_due = false;
        try {
            silent_ ? one->forget() : one->tell();
        } catch (...) {
            // The loop says so; the others are told all the same.
            loop_.post([thrown = std::current_exception()] { std::rethrow_exception(thrown); });
        }
    }
    corked_ = false;
    see_to_the_end();
}

void http2_connection::late(http2_exchange& one) {
    one.end({wire_code::deadline_exceeded, "it did not answer in time", wire_cause::server});
    flush();
}

// ---- whether the peer lives ---------------------------------------------------------------------

void http2_connection::watch_life() {
    if (std::exchange(watches_life_, true)) return;
    life_ = loop_.at(std::max(heard_, busy_since_) + place_->ping_after, [this] { see_life(); });
}

void http2_connection::see_life() {
    watches_life_ = false;
    if (open_.empty()) return;
    if (loop_.now() < std::max(heard_, busy_since_) + place_->ping_after) return watch_life();
    watches_life_ = true;
    client_->ping();
    pinged_ = loop_.now();
    life_ = loop_.at(pinged_ + sign_within, [this] { see_sign(); });
    flush();
}

void http2_connection::see_sign() {
    watches_life_ = false;
    if (heard_ >= pinged_) {
        if (!open_.empty()) watch_life();
        return;
    }
    fail({wire_code::unavailable, "it gives no sign of life", wire_cause::broken});
}

}  // namespace trinco::detail::etcd
