// A server of locks and two clients on virtual time, for tests of sessions and claims.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lock/lock_claim.hpp"
#include "lock/session_core.hpp"
#include "sim/lossy_locks.hpp"
#include "sim/network.hpp"
#include "sim/world.hpp"
#include "store/memory/memory_locks.hpp"
#include "trinco/error.hpp"

namespace trinco::test {

using namespace std::chrono_literals;
using detail::boot_clock;
using detail::claim_id;
using detail::clocks;
using detail::ended_claims;
using detail::grant;
using detail::lease_state;
using detail::lock_claim;
using detail::lock_request;
using detail::memory_lock_server;
using detail::memory_locks;
using detail::session_core;
using detail::session_settings;

// What a claim was told.
struct told {
    std::optional<std::error_code> answer;
    int answers = 0;
    std::uint64_t token = 0;
    std::vector<std::error_code> losses;
    [[nodiscard]] bool granted() const { return answer && !*answer; }
};

class LockScene : public ::testing::Test {
protected:
    static constexpr std::chrono::seconds ttl{15};

    LockScene() { net_.set_faults({.delay_min = 1ms, .delay_max = 1ms}); }

    // What replays a failure exactly.
    void TearDown() override {
        if (HasFailure()) std::cout << "seed " << seed << "\n";
    }

    std::shared_ptr<session_core> make_session(sim::node& at, detail::lock_store& store) {
        session_settings settings;
        settings.ttl = ttl;
        settings.label = at.name();
        settings.read_clocks = [this] {
            const auto boot = world_.now();
            return clocks{boot, std::chrono::system_clock::time_point(
                                    std::chrono::duration_cast<std::chrono::system_clock::duration>(
                                        boot.time_since_epoch() + wall_offset_))};
        };
        return std::make_shared<session_core>(at, store, settings);
    }
    std::shared_ptr<session_core> open(sim::node& at, detail::lock_store& store) {
        auto s = make_session(at, store);
        std::optional<std::error_code> opened;
        s->open(world_.now() + 5s, [&](std::error_code error) { opened = error; });
        world_.run_for(50ms);
        EXPECT_TRUE(opened.has_value());
        EXPECT_FALSE(*opened) << opened->message();
        return s;
    }
    static lock_request exclusive(std::string name, bool only_if_free = false) {
        lock_request r;
        r.parts = {{std::move(name), detail::claim_kind::exclusive, 0}};
        r.only_if_free = only_if_free;
        return r;
    }
    static void acquire(lock_claim& c, told& t, lock_request what) {
        c.when_lost([&t](std::error_code why) { t.losses.push_back(why); });
        c.acquire(std::move(what), [&t](std::error_code error, const grant& g) {
            t.answer = error;
            ++t.answers;
            if (!error) t.token = g.tokens.at(0);
        });
    }
    void cut(sim::node& at) { net_.partition(at, server_); }
    void mend(sim::node& at) {
        net_.restore(at, server_);
        net_.restore(server_, at);
    }

    static constexpr std::uint64_t seed = 1;
    sim::world world_{seed};
    sim::network net_{world_};
    sim::node& server_ = world_.add_node("server");
    sim::node& one_ = world_.add_node("one");
    sim::node& two_ = world_.add_node("two");
    std::shared_ptr<memory_lock_server> locks_ =
        std::make_shared<memory_lock_server>([this] { return world_.now(); });
    memory_locks inner_{server_, locks_};
    std::shared_ptr<sim::lock_service> service_ =
        std::make_shared<sim::lock_service>(net_, server_, inner_);
    sim::lossy_locks store_one_{one_, service_};
    sim::lossy_locks store_two_{two_, service_};
    boot_clock::duration wall_offset_{};
};

}  // namespace trinco::test
