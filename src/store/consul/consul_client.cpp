#include "store/consul/consul_client.hpp"

#include <unistd.h>

#include <utility>
#include <vector>

#include "net/socket_factory.hpp"
#include "net/tls_factory.hpp"
#include "store/consul/consul_fault.hpp"
#include "store/consul/consul_inquiry.hpp"
#include "store/consul/consul_requests.hpp"
#include "store/consul/consul_watches.hpp"
#include "store/consul/consul_way.hpp"
#include "store/consul/consul_wire.hpp"

namespace trinco::detail::consul {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t request_most = 4 * 1024 * 1024;

// All that it stands on; left alone in a child.
struct inside {
    inside(loop& on, std::unique_ptr<stream_factory> streams, consul_settings settings)
        : way(on, std::move(streams), std::move(settings)), requests(on, way), watches(on, way) {}

    consul_way way;
    consul_requests requests;
    consul_watches watches;
};

class consul_client final : public rpc {
public:
    consul_client(loop& on, std::unique_ptr<stream_factory> streams, consul_settings settings)
        : loop_(on), in_(std::make_unique<inside>(on, std::move(streams), std::move(settings))) {}
    ~consul_client() override {
        // The thread that used it is not there, and may have been in the midst of something.
        if (::getpid() != owner_) (void)in_.release();
    }

    [[nodiscard]] op txn(const txn_request& what, deadline by, completion<txn_reply> done) override;
    [[nodiscard]] op read(const read_request& what, deadline by,
                          completion<read_reply> done) override;
    [[nodiscard]] op keys(std::string_view prefix, deadline by,
                          completion<std::vector<std::string>> done) override;
    [[nodiscard]] op create(const session_request& what, deadline by,
                            completion<std::string> done) override;
    [[nodiscard]] op renew(std::string_view session, deadline by,
                           completion<std::chrono::seconds> done) override;
    [[nodiscard]] op destroy(std::string_view session, deadline by, completion<int> done) override;
    [[nodiscard]] op facts(std::string_view session, deadline by,
                           completion<std::optional<session_facts>> done) override;
    [[nodiscard]] op sessions(deadline by, completion<std::vector<session_facts>> done) override;
    [[nodiscard]] op watch(const read_request& what, on_news news, on_over over) override {
        if (!is_usable()) return {};
        return in_->watches.start(what, std::move(news), std::move(over));
    }
    [[nodiscard]] op status(deadline by, completion<std::vector<server_status>> done) override {
        if (!is_usable()) return {};
        const auto under_way = std::make_shared<op>(inquire(in_->way, by, std::move(done)));
        std::erase_if(inquiries_, [](const auto& one) { return one.expired(); });
        inquiries_.emplace_back(under_way);
        return op([under_way] { under_way->cancel(); });
    }

    [[nodiscard]] std::string trouble() const override {
        if (!in_->way.trouble().empty()) return in_->way.trouble();
        return in_->requests.trouble();
    }
    [[nodiscard]] std::string why(const std::error_code& told) const override {
        const auto& requests = in_->requests;
        if (requests.way_explains(told) && !in_->way.trouble().empty()) return in_->way.trouble();
        if (requests.trouble_explains(told) && !requests.trouble().empty()) {
            return requests.trouble();
        }
        return in_->watches.why(told);
    }
    [[nodiscard]] bool is_refused() const noexcept override { return in_->way.is_refused(); }
    [[nodiscard]] op stop(deadline, completion<int> done) override {
        if (::getpid() != owner_) return {};
        stopped_ = true;
        in_->requests.drop_all();
        in_->watches.drop_all();
        for (const auto& one : inquiries_) {
            if (const auto under_way = one.lock()) under_way->cancel();
        }
        in_->way.stop();
        return loop_.after(0s, [done = std::move(done)]() mutable { done({}, 0); });
    }

private:
    [[nodiscard]] bool is_usable() const noexcept { return ::getpid() == owner_ && !stopped_; }

    // decode(response) is the value, or nothing where it cannot be read: then it is not known what
    // a change has done, and what a read says is no Consul's.
    template <class T, class Decode>
    [[nodiscard]] op ask(consul_requests::request what, deadline by, Decode decode,
                         completion<T> done) {
        if (!is_usable()) return {};
        const auto code = what.changes ? errc::unknown_outcome : errc::invalid;
        return in_->requests.start(std::move(what), by,
                                   [this, decode, code, done = std::move(done)](
                                       std::error_code error, const http_response& reply) mutable {
                                       if (error) return done(error, T{});
                                       std::optional<T> value = decode(reply);
                                       if (value) return done({}, std::move(*value));
                                       in_->requests.cannot_read(code);
                                       done(make_error_code(code), T{});
                                   });
    }
    template <class T>
    [[nodiscard]] op refuse(errc why, completion<T> done) {
        return loop_.after(
            0s, [why, done = std::move(done)]() mutable { done(make_error_code(why), T{}); });
    }

    loop& loop_;
    const ::pid_t owner_ = ::getpid();
    bool stopped_ = false;
    std::unique_ptr<inside> in_;
    std::vector<std::weak_ptr<op>> inquiries_;
};

op consul_client::txn(const txn_request& what, deadline by, completion<txn_reply> done) {
    const bool changes = !what.reads_only();
    consul_call call{"PUT", "/v1/txn", changes ? "" : "consistent", encode_txn(what)};
    if (call.body.size() > request_most) {
        return refuse<txn_reply>(errc::busy, std::move(done));
    }
    return ask<txn_reply>(
        {std::move(call), changes}, by,
        [](const http_response& reply) { return decode_txn(reply.body, reply.status == 200); },
        std::move(done));
}

op consul_client::read(const read_request& what, deadline by, completion<read_reply> done) {
    consul_call call{"GET", "/v1/kv/" + escaped(what.key, true)};
    if (what.under) call.query = "recurse";
    if (what.consistent) call.query += call.query.empty() ? "consistent" : "&consistent";
    return ask<read_reply>({std::move(call), false}, by, decode_read, std::move(done));
}

op consul_client::keys(std::string_view prefix, deadline by,
                       completion<std::vector<std::string>> done) {
    return ask<std::vector<std::string>>(
        {{"GET", "/v1/kv/" + escaped(prefix, true), "keys"}, false}, by,
        [](const http_response& reply) {
            return reply.status == 404 ? std::vector<std::string>() : decode_texts(reply.body);
        },
        std::move(done));
}

op consul_client::create(const session_request& what, deadline by, completion<std::string> done) {
    return ask<std::string>(
        {{"PUT", "/v1/session/create", "", encode_session(what)}, true}, by,
        [](const http_response& reply) { return decode_session_id(reply.body); }, std::move(done));
}

op consul_client::renew(std::string_view session, deadline by,
                        completion<std::chrono::seconds> done) {
    return ask<std::chrono::seconds>(
        {{"PUT", "/v1/session/renew/" + escaped(session, false)}, true, true, true}, by,
        [](const http_response& reply) -> std::optional<std::chrono::seconds> {
            const auto renewed = decode_sessions(reply.body);
            if (!renewed || renewed->size() != 1) return {};
            return renewed->front().ttl;
        },
        std::move(done));
}

op consul_client::destroy(std::string_view session, deadline by, completion<int> done) {
    return ask<int>(
        {{"PUT", "/v1/session/destroy/" + escaped(session, false)}, true, true, true}, by,
        [](const http_response&) { return std::optional(0); },
        [done = std::move(done)](std::error_code error, int) mutable {
            if (error == errc::lost) error.clear();
            done(error, 0);
        });
}

op consul_client::facts(std::string_view session, deadline by,
                        completion<std::optional<session_facts>> done) {
    return ask<std::vector<session_facts>>(
        {{"GET", "/v1/session/info/" + escaped(session, false), "consistent"}, false}, by,
        [](const http_response& reply) { return decode_sessions(reply.body); },
        [done = std::move(done)](std::error_code error, std::vector<session_facts> all) mutable {
            if (error || all.empty()) return done(error, std::nullopt);
            done({}, std::move(all.front()));
        });
}

op consul_client::sessions(deadline by, completion<std::vector<session_facts>> done) {
    return ask<std::vector<session_facts>>(
        {{"GET", "/v1/session/list", "consistent"}, false}, by,
        [](const http_response& reply) { return decode_sessions(reply.body); }, std::move(done));
}

}  // namespace

std::unique_ptr<rpc> make_consul_client(event_loop& on, consul_settings settings) {
    return make_consul_client(static_cast<loop&>(on), make_tls_factory(on, make_socket_factory(on)),
                              std::move(settings));
}

std::unique_ptr<rpc> make_consul_client(loop& on, std::unique_ptr<stream_factory> streams,
                                        consul_settings settings) {
    return std::make_unique<consul_client>(on, std::move(streams), std::move(settings));
}

}  // namespace trinco::detail::consul
