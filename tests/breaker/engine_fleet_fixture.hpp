// A breaker in a fleet whose store answers what the test writes, on virtual time.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "breaker/engine.hpp"
#include "fleet_sync_fixture.hpp"

namespace trinco::detail {

inline breaker_options calm() {
    breaker_options o;
    o.minimum_calls = 4;
    o.open_for = 1s;
    o.half_open_probes = 2;
    o.jitter = 0;
    return o;
}

class fleet_engine : public sync_world {
public:
    explicit fleet_engine(const breaker_options& o = calm()) {
        world.mirror_clock(clock_);
        engine_env env;
        env.clock = &clock_;
        env.random = [this] { return random; };
        env.shards = 1;
        core = std::make_unique<engine>("b", o, std::move(env));
        subscriber_ = core->events()->add([this](const event& e) {
            story.push_back(e.kind == event_kind::state_changed
                                ? std::string(text_of(e.from)) + ">" + std::string(text_of(e.to))
                                : std::string(text_of(e.kind)));
            last_reason = e.reason;
        });
        core->join_fleet(node, *sync);
        run(300ms);  // the first exchange
    }
    ~fleet_engine() { core->leave_fleet(); }

    // The store tells everybody of a new state.
    void publish(const view& v) {
        store.truth["b"] = v;
        store.notify({notice::kind_t::changed, "b", v});
        run(5ms);
    }
    // The answer of one call, when it has come within `d`.
    std::unique_ptr<permit> acquire(boot_clock::duration d = 10ms) {
        std::unique_ptr<permit> got;
        core->acquire_async([&got](permit p) { got = std::make_unique<permit>(std::move(p)); });
        if (!got) run(d);
        return got;
    }
    void calls(int n, outcome what) {
        for (int i = 0; i < n; ++i) core->acquire().settle(what);
    }
    // What the store was told of era `e`, and as totals only.
    counts told(era_t e) const {
        counts n;
        for (const auto& news : store.sent_of("b")) {
            if (news.mine.era != e) continue;
            for (const auto& s : news.slices) n += s.n;
        }
        return n;
    }
    counts told_stale() const {
        counts n;
        for (const auto& news : store.sent_of("b")) n += news.stale;
        return n;
    }

    std::unique_ptr<engine> core;
    std::vector<std::string> story;
    std::string last_reason;
    std::uint64_t random = 0;

private:
    std::atomic<std::int64_t> clock_{0};
    std::uint64_t subscriber_ = 0;
};

inline view open_view(era_t era, std::chrono::milliseconds left) {
    auto v = view_of_era(era, breaker_state::open);
    v.remaining = left;
    v.reason = "failure_rate";
    return v;
}

}  // namespace trinco::detail
