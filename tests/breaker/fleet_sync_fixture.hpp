// A store whose answers the test writes, and a breaker that only remembers what it was told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "breaker/fleet_sync.hpp"
#include "sim/world.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

using namespace std::chrono_literals;

// Every call is kept, and answered after `delay` by the test's function; while `silent`, only its
// deadline ends it, with unknown_outcome.
class scripted_store final : public breaker_store {
public:
    explicit scripted_store(sim::node& on) : on_(on) {}

    template <class Request>
    struct call {
        Request request;
        boot_clock::time_point at;
        deadline by;
    };
    std::vector<call<std::vector<news>>> exchanges;
    std::vector<call<look_request>> looks;
    std::vector<call<probe_request>> probes;
    std::vector<call<control_request>> controls;

    boot_clock::duration delay = 1ms;
    bool silent = false;
    std::string why_silent;
    std::error_code fails;        // answers with this at once instead
    std::error_code writes_fail;  // answers all but looks with this, as a full server does
    std::map<std::string, view> truth;
    std::function<verdict(const news&)> on_news = [this](const news& n) { return plain(n); };
    std::function<glance(const look_request&)> on_look = [this](const look_request& q) {
        glance g;
        g.fleet = truth[q.breaker];
        g.exchange_first = q.mine.newer_than(g.fleet);
        return g;
    };
    std::function<probe_reply(const probe_request&)> on_probe = [this](const probe_request& p) {
        return probe_reply{
            .granted = true, .retry_after = {}, .fleet = truth[p.breaker], .live = 1};
    };
    unique_function<void(const notice&)> notify;
    unique_function<bool(const opening&)> foretold;

    // Agrees with whoever knows more, and stamps as a record would.
    verdict plain(const news& n) {
        view& mine = truth[n.breaker];
        if (n.mine.newer_than(mine)) mine = n.mine;
        verdict v;
        v.fleet = mine;
        v.counted = n.seq != 0;
        v.live = 1;
        v.own_stamp = n.own_stamp != 0 ? n.own_stamp : 7;
        return v;
    }

    [[nodiscard]] op exchange(std::span<const news> batch, deadline by,
                              completion<std::vector<verdict>> done) override {
        std::vector<news> all(batch.begin(), batch.end());
        exchanges.push_back({all, on_.now(), by});
        return answer<std::vector<verdict>>(by, std::move(done), [this, all = std::move(all)] {
            std::vector<verdict> verdicts;
            for (const auto& n : all) verdicts.push_back(on_news(n));
            return verdicts;
        });
    }
    [[nodiscard]] op look(const look_request& request, deadline by,
                          completion<glance> done) override {
        looks.push_back({request, on_.now(), by});
        return answer<glance>(
            by, std::move(done), [this, request] { return on_look(request); }, fails);
    }
    [[nodiscard]] op probe(const probe_request& request, deadline by,
                           completion<probe_reply> done) override {
        probes.push_back({request, on_.now(), by});
        return answer<probe_reply>(by, std::move(done),
                                   [this, request] { return on_probe(request); });
    }
    [[nodiscard]] op control(const control_request& request, deadline by,
                             completion<view> done) override {
        controls.push_back({request, on_.now(), by});
        return answer<view>(by, std::move(done), [this, b = request.breaker] { return truth[b]; });
    }
    [[nodiscard]] op inspect(std::string_view, std::string_view, std::size_t, deadline by,
                             completion<page> done) override {
        return answer<page>(by, std::move(done), [] { return page{}; });
    }
    [[nodiscard]] op subscribe(unique_function<void(const notice&)> on_notice) override {
        notify = std::move(on_notice);
        return op([this] { notify = nullptr; });
    }
    void foretell(unique_function<bool(const opening&)> on_opening) override {
        foretold = std::move(on_opening);
    }
    [[nodiscard]] op stop(deadline by, completion<int> done) override {
        return answer<int>(by, std::move(done), [] { return 0; });
    }
    [[nodiscard]] std::string trouble() const override { return silent ? why_silent : ""; }

    // All elements of all exchanges about one breaker, in the order of sending.
    [[nodiscard]] std::vector<news> sent_of(const std::string& breaker) const {
        std::vector<news> all;
        for (const auto& e : exchanges) {
            for (const auto& n : e.request) {
                if (n.breaker == breaker) all.push_back(n);
            }
        }
        return all;
    }

private:
    template <class T, class Make>
    op answer(deadline by, completion<T> done, Make make) {
        return answer<T>(by, std::move(done), std::move(make), fails ? fails : writes_fail);
    }
    template <class T, class Make>
    op answer(deadline by, completion<T> done, Make make, std::error_code fault) {
        const auto shared = std::make_shared<completion<T>>(std::move(done));
        const auto finish = [shared](std::error_code ec, T value) {
            auto f = std::move(*shared);
            *shared = nullptr;
            if (f) f(ec, std::move(value));
        };
        if (silent) {
            keep(by, [finish] { finish(errc::unknown_outcome, T{}); });
        } else if (fault) {
            keep(on_.now() + delay, [finish, fault] { finish(fault, T{}); });
        } else {
            keep(on_.now() + delay, [finish, make] { finish({}, make()); });
        }
        return op([shared] { *shared = nullptr; });
    }
    void keep(boot_clock::time_point when, std::function<void()> f) {
        timers_.push_back(on_.at(when, [f = std::move(f)] { f(); }));
    }

    sim::node& on_;
    std::vector<op> timers_;
};

class remembering_port final : public fleet_port {
public:
    void add(std::uint64_t successes, std::uint64_t failures) {
        pending.success += successes;
        pending.failure += failures;
    }

    harvest collect(era_t era) override {
        ++collected;
        last_era = era;
        harvest h;
        if (!pending.empty()) h.slices.push_back({pending, 0ms});
        h.stale = stale;
        pending = {};
        stale = {};
        return h;
    }
    [[nodiscard]] bool has_news() const override {
        ++asked;
        return !pending.empty() || !stale.empty();
    }
    void adopt(const terms& t) override {
        told.push_back(t);
        story += 'a';
    }
    void store_lost(std::uint32_t live, std::string_view why) override {
        lost_live = live;
        lost_why = why;
        story += 'L';
    }
    void store_back() override { story += 'B'; }
    bool open_ahead(const opening&) override {
        story += 'o';
        return true;
    }

    counts pending;
    counts stale;
    mutable std::size_t asked = 0;  // whether there is news
    int collected = 0;
    era_t last_era = 0;
    std::vector<terms> told;
    std::uint32_t lost_live = 0;
    std::string lost_why;
    std::string story;  // a: adopt, L: store_lost, B: store_back, in order
};

// A node, a store and a fleet_sync on it.
struct sync_world {
    explicit sync_world(std::uint64_t seed = 1) : world(seed) {}

    sim::world world;
    sim::node& node = world.add_node("me");
    scripted_store store{node};
    std::unique_ptr<fleet_sync> sync =
        std::make_unique<fleet_sync>(node, store, breaker_identity{"me-1", "m1"});
    breaker_options options;

    std::unique_ptr<fleet_sync::membership> join(const std::string& name, remembering_port& port) {
        return sync->join(name, options, port);
    }
    void run(boot_clock::duration d) { world.run_for(d); }
    [[nodiscard]] boot_clock::time_point now() const { return world.now(); }
};

[[nodiscard]] inline view view_of_era(era_t era, breaker_state state, std::uint64_t rev = 0) {
    view v;
    v.era = era;
    v.rev = rev;
    v.state = state;
    return v;
}

}  // namespace trinco::detail
