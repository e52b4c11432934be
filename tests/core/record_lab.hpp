// A record with its clock, and the requests of a fleet in short form.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <ostream>
#include <string>
#include <string_view>

#include "core/breaker/record.hpp"

namespace trinco::detail {

inline std::ostream& operator<<(std::ostream& s, breaker_state b) {
    return s << (b == breaker_state::closed ? "closed"
                 : b == breaker_state::open ? "open"
                                            : "half_open");
}

inline std::ostream& operator<<(std::ostream& s, const counts& n) {
    return s << n.success << "+" << n.failure << " slow " << n.slow_success << "+" << n.slow_failure
             << " ignored " << n.ignored << " rejected " << n.rejected;
}

namespace test {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

inline counts calls(std::uint64_t ok, std::uint64_t bad) {
    counts n;
    n.success = ok;
    n.failure = bad;
    return n;
}

// Defaults: two voters of quorum, 5 probes, a window of 10 s, no jitter.
inline policy plain_policy() {
    policy p;
    p.jitter = 0;
    return p;
}

class record_lab {
public:
    explicit record_lab(const policy& p = plain_policy()) : text_(to_text(p)) {}

    fleet_record r;
    store_time now = 1'000'000s;
    effects did;

    void pass(store_time d) { now += d; }

    [[nodiscard]] view seen() const { return view_of(r, now); }
    [[nodiscard]] breaker_state state() const { return seen().state; }

    [[nodiscard]] static breaker_identity voter(std::string_view name) {
        return {std::string(name) + "-1", std::string(name)};
    }

    // A news of this voter's instance that knows what the record knows, with the next seq.
    [[nodiscard]] news of(std::string_view name) {
        news n;
        n.breaker = "payments";
        n.mine = seen();
        n.mine.options_stamp = stamps_[std::string(name)];
        n.seq = ++seqs_[std::string(name)];
        n.own_stamp = own_[std::string(name)];
        if (n.own_stamp == 0) n.options = text_;
        return n;
    }
    verdict send(std::string_view name, const news& n) {
        did = {};
        verdict v = apply(r, voter(name), n, now, did);
        own_[std::string(name)] = v.own_stamp;
        if (!v.options.empty()) stamps_[std::string(name)] = v.fleet.options_stamp;
        return v;
    }
    verdict report(std::string_view name, counts n, milliseconds age = 0ms) {
        news batch = of(name);
        batch.slices.push_back({n, age});
        return send(name, batch);
    }
    verdict hello(std::string_view name) { return send(name, of(name)); }

    probe_reply probe(std::string_view name, probe_step step, std::uint64_t token) {
        probe_request p;
        p.breaker = "payments";
        p.mine = seen();
        p.step = step;
        p.token = token;
        did = {};
        return apply(r, voter(name), p, now, did);
    }
    probe_reply take(std::string_view name, std::uint64_t token) {
        return probe(name, probe_step::take, token);
    }
    probe_reply succeed(std::string_view name, std::uint64_t token) {
        return probe(name, probe_step::success, token);
    }
    probe_reply fail(std::string_view name, std::uint64_t token) {
        return probe(name, probe_step::failure, token);
    }
    probe_reply give_back(std::string_view name, std::uint64_t token) {
        return probe(name, probe_step::give_back, token);
    }

    view control(control_verb verb, std::uint64_t id, milliseconds expires = 0ms,
                 std::string options = {}) {
        control_request c;
        c.id = id;
        c.breaker = "payments";
        c.who = "ann";
        c.reason = "drill";
        c.verb = verb;
        c.expires = expires;
        c.options = std::move(options);
        did = {};
        error.clear();
        return apply(r, c, now, did, error);
    }
    std::error_code error;

    // Both voters fail for long enough that the window is warm: the fleet's breaker opens.
    void open_it() {
        for (int i = 0; i < 40 && state() == breaker_state::closed; ++i) {
            report(i % 2 == 0 ? "a" : "b", calls(0, 5));
            if (state() == breaker_state::closed) pass(300ms);
        }
        ASSERT_EQ(state(), breaker_state::open);
    }
    void open_until_due() {
        open_it();
        pass(seen().remaining);
    }
    // Forgets what this voter's instance knows, as a restarted process.
    void restart(std::string_view name) {
        own_.erase(std::string(name));
        stamps_.erase(std::string(name));
    }
    void configure(const policy& p) { text_ = to_text(p); }

private:
    std::string text_;
    std::map<std::string, std::uint64_t> seqs_;
    std::map<std::string, std::uint64_t> own_;
    std::map<std::string, std::uint64_t> stamps_;
};

}  // namespace test
}  // namespace trinco::detail
