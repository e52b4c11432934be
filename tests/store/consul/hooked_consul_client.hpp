// A way to a simulated Consul at which a test stands.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "sim/simulated_consul_client.hpp"
#include "trinco/error.hpp"

namespace trinco::test {

class hooked_consul_client final : public sim::simulated_consul_client {
public:
    using txn_request = detail::consul::txn_request;

    hooked_consul_client(sim::node& from, sim::simulated_consul& to)
        : sim::simulated_consul_client(from, to), node_(from), cluster_(to) {}

    // When it says so, nobody hears of the transaction, and it is carried out so much later; not
    // at all where that is less than nothing.
    std::function<std::chrono::milliseconds(const txn_request&)> lose;

    // Where it is not 0, a session is made at once and told of so much later.
    std::chrono::milliseconds made_is_told_after{0};

    [[nodiscard]] detail::op create(const detail::consul::session_request& what,
                                    detail::deadline by,
                                    detail::completion<std::string> done) override {
        if (made_is_told_after.count() == 0) {
            return simulated_consul_client::create(what, by, std::move(done));
        }
        const auto made = cluster_.create(what);
        const bool in_time = node_.now() + made_is_told_after <= by;
        return node_.at(in_time ? node_.now() + made_is_told_after : by,
                        [made, in_time, done = std::move(done)]() mutable {
                            if (in_time) return done(made.error, made.value);
                            done(make_error_code(errc::unknown_outcome), {});
                        });
    }
    [[nodiscard]] detail::op txn(const txn_request& what, detail::deadline by,
                                 detail::completion<detail::consul::txn_reply> done) override {
        const auto late = lose ? lose(what) : std::chrono::milliseconds(0);
        if (late.count() == 0) return simulated_consul_client::txn(what, by, std::move(done));
        if (late.count() > 0) {
            late_.push_back(node_.after(late, [this, what] { (void)cluster_.txn(what); }));
        }
        return node_.at(by, [done = std::move(done)]() mutable {
            done(make_error_code(errc::unknown_outcome), {});
        });
    }

private:
    sim::node& node_;
    sim::simulated_consul& cluster_;
    std::vector<detail::op> late_;
};

// Whether it takes a lock.
inline bool takes(const detail::consul::txn_request& what) {
    for (const auto& one : what.operations) {
        if (one.verb == detail::consul::operation::verb_t::lock) return true;
    }
    return false;
}

}  // namespace trinco::test
