#include "store/etcd/etcd_client.hpp"

#include <optional>
#include <utility>

#include "store/etcd/etcd_fault.hpp"
#include "store/etcd/etcd_login.hpp"
#include "store/etcd/etcd_methods.hpp"
#include "store/etcd/etcd_renewals.hpp"
#include "store/etcd/etcd_requests.hpp"
#include "store/etcd/etcd_watches.hpp"
#include "store/etcd/etcd_way.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::etcd {
namespace {

// A reply that was answered well and cannot be read is of a server that is none of etcd's; what it
// has done nobody knows.
template <class T, class Decode>
completion<etcd_requests::answer> decoding(Decode decode, completion<T> done) {
    return [decode, done = std::move(done)](std::error_code error,
                                            const etcd_requests::answer& said) mutable {
        if (error) return done(error, T{});
        std::optional<T> value = decode(said.bytes);
        if (!value) return done(make_error_code(errc::unknown_outcome), T{});
        done({}, std::move(*value));
    };
}

// What each member says of itself, gathered.
struct inquiry {
    std::vector<server_status> all;
    std::vector<op> calls;
    std::size_t open = 0;
    completion<std::vector<server_status>> done;
};

class etcd_client final : public rpc {
public:
    etcd_client(loop& on, std::unique_ptr<transport> by, credentials who)
        : loop_(on),
          by_(std::move(by)),
          way_(on, *by_),
          login_(on, way_, std::move(who.user), std::move(who.password), [this] { logged_in(); }),
          requests_(on, way_, login_),
          renewals_(on, way_, login_),
          watches_(on, way_, login_) {}

    [[nodiscard]] op txn(const txn_request& what, deadline by,
                         completion<txn_reply> done) override {
        return requests_.start({method::txn, encode_txn(what), !what.reads_only()}, by,
                               [done = std::move(done)](std::error_code error,
                                                        const etcd_requests::answer& said) mutable {
                                   txn_reply nothing;
                                   nothing.settled = said.settled;
                                   if (error) return done(error, std::move(nothing));
                                   auto reply = decode_txn(said.bytes);
                                   if (!reply)
                                       return done(make_error_code(errc::unknown_outcome), {});
                                   done({}, std::move(*reply));
                               });
    }
    [[nodiscard]] op grant(std::chrono::seconds ttl, deadline by,
                           completion<lease_reply> done) override {
        // A lease that nobody knows of ends by itself.
        return requests_.start({method::grant, encode_grant(ttl), true, true}, by,
                               decoding(decode_grant, std::move(done)));
    }
    [[nodiscard]] op revoke(std::int64_t lease, deadline by, completion<int> done) override {
        return requests_.start(
            {method::revoke, encode_revoke(lease)}, by,
            [done = std::move(done)](std::error_code error, const etcd_requests::answer&) mutable {
                if (error == errc::lost) error.clear();
                done(error, 0);
            });
    }
    [[nodiscard]] op keep_alive(std::int64_t lease, deadline by,
                                completion<std::chrono::seconds> done) override {
        return renewals_.start(lease, by, std::move(done));
    }
    [[nodiscard]] op facts(std::int64_t lease, bool with_keys, deadline by,
                           completion<lease_facts> done) override {
        return requests_.start({method::time_to_live, encode_facts(lease, with_keys), false}, by,
                               decoding(decode_facts, std::move(done)));
    }
    [[nodiscard]] op watch(const watch_request& what, on_news news, on_over over) override {
        return watches_.start(what, std::move(news), std::move(over));
    }
    [[nodiscard]] op status(deadline by, completion<std::vector<server_status>> done) override;
    [[nodiscard]] op members(deadline by, completion<std::vector<member>> done) override {
        return requests_.start({method::member_list, encode_members(), false}, by,
                               decoding(decode_members, std::move(done)));
    }
    [[nodiscard]] std::string trouble() const override {
        if (!way_.trouble().empty()) return way_.trouble();
        return login_.trouble().empty() ? requests_.trouble() : login_.trouble();
    }
    [[nodiscard]] std::string why(const std::error_code& told) const override {
        if (requests_.way_explains(told) && !way_.trouble().empty()) return way_.trouble();
        if (told == errc::denied && !login_.trouble().empty()) return login_.trouble();
        return requests_.trouble_explains(told) ? requests_.trouble() : std::string();
    }
    [[nodiscard]] bool is_refused() const noexcept override { return way_.is_refused(); }
    [[nodiscard]] op stop(deadline by, completion<int> done) override {
        requests_.drop_all();
        renewals_.drop_all();
        watches_.drop_all();
        return by_->stop(by, std::move(done));
    }

private:
    void logged_in() {
        requests_.login_changed();
        renewals_.login_changed();
        watches_.login_changed();
    }

    loop& loop_;
    std::unique_ptr<transport> by_;
    etcd_way way_;
    etcd_login login_;
    etcd_requests requests_;
    etcd_renewals renewals_;
    etcd_watches watches_;
};

op etcd_client::status(deadline by, completion<std::vector<server_status>> done) {
    const auto all = std::make_shared<inquiry>();
    all->done = std::move(done);
    all->open = by_->endpoints();
    all->all.resize(all->open);
    for (std::size_t i = 0; i < all->all.size(); ++i) {
        all->all[i].endpoint = by_->name(i);
        all->calls.push_back(by_->call(
            {i, lane::requests}, method::status, encode_status(), {login_.token(), false}, by,
            [all = std::weak_ptr(all), i](const wire_status& said, const std::string& reply) {
                const auto to = all.lock();
                if (!to) return;
                auto& row = to->all[i];
                const auto name = row.endpoint;
                auto answer = said.good() ? decode_status(reply) : std::nullopt;
                if (answer) {
                    row = std::move(*answer);
                    row.endpoint = name;
                } else {
                    row.errors.push_back(judge(said, name).sentence);
                }
                if (--to->open == 0) to->done({}, std::move(to->all));
            }));
    }
    return op([all] { all->calls.clear(); });
}

}  // namespace

std::unique_ptr<rpc> make_etcd_client(loop& on, std::unique_ptr<transport> by, credentials who) {
    return std::make_unique<etcd_client>(on, std::move(by), std::move(who));
}

}  // namespace trinco::detail::etcd
