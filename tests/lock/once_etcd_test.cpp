// A key that is done once, on a simulated etcd, over hours of virtual time.
#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lock/once_run.hpp"
#include "lock/session_core.hpp"
#include "sim/simulated_etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "trinco/error.hpp"

namespace trinco::test {
namespace {

using namespace std::chrono_literals;
using namespace detail;

class OnceOnEtcd : public ::testing::Test {
protected:
    static constexpr std::chrono::seconds ttl{15};
    static constexpr std::chrono::seconds kept{2h};

    struct caller {
        std::unique_ptr<once_run> run;
        std::optional<std::error_code> error;
        once_turn turn;
        [[nodiscard]] bool has(once_step s) const { return error && !*error && turn.step == s; }
    };

    std::unique_ptr<etcd_locks> store_for(sim::node& at) {
        etcd_locks_settings settings;
        settings.wall_clock = [this] { return wall(); };
        return std::make_unique<etcd_locks>(
            at, std::make_unique<sim::simulated_etcd_client>(at, etcd_), std::move(settings));
    }
    std::chrono::milliseconds wall() const {
        return std::chrono::duration_cast<std::chrono::milliseconds>(
            world_.now().time_since_epoch());
    }
    std::shared_ptr<session_core> open(sim::node& at, lock_store& store) {
        session_settings settings;
        settings.ttl = ttl;
        settings.label = at.name();
        settings.read_clocks = [this] {
            return clocks{world_.now(), std::chrono::system_clock::time_point(wall())};
        };
        auto s = std::make_shared<session_core>(at, store, settings);
        std::optional<std::error_code> opened;
        s->open(world_.now() + 5s, [&](std::error_code error) { opened = error; });
        world_.run_for(50ms);
        EXPECT_EQ(opened, std::error_code());
        return s;
    }
    void begin(caller& c, const std::shared_ptr<session_core>& on) {
        once_settings s;
        s.key = "invoice/42";
        s.label = on == first_ ? "worker" : "other";
        s.keep = kept;
        s.wall_clock = [this] { return wall(); };
        c.run = std::make_unique<once_run>(on, std::move(s));
        c.run->begin([&c](std::error_code error, once_turn t) {
            c.error = error;
            c.turn = std::move(t);
        });
    }
    // One who comes now, and is answered at once or within a second.
    caller ask() {
        caller c;
        begin(c, second_);
        world_.run_for(1s);
        return c;
    }
    // As a person does with `trinco records resolve`.
    void resolve(once_record found, std::uint64_t revision, const std::string& result) {
        found.state = once_record::state_t::done;
        found.payload = result;
        const std::array<change, 1> one{change{once_key_of("invoice/42"), encode(found), revision}};
        std::optional<std::error_code> written;
        const auto interest =
            store_two_->write("", std::nullopt, one, kept, world_.now() + 5s,
                              [&](std::error_code error, std::uint64_t) { written = error; });
        world_.run_for(100ms);
        ASSERT_EQ(written, std::error_code());
    }
    std::optional<record> stored() {
        std::optional<record> out;
        const auto interest =
            store_two_->read(once_key_of("invoice/42"), world_.now() + 5s,
                             [&](std::error_code error, std::optional<record> found) {
                                 EXPECT_FALSE(error);
                                 out = std::move(found);
                             });
        world_.run_for(100ms);
        return out;
    }

    const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed 1"};
    sim::world world_{1};
    sim::network net_{world_};
    sim::simulated_etcd etcd_{world_, net_, 3};
    sim::node& one_ = world_.add_node("one");
    sim::node& two_ = world_.add_node("two");
    std::unique_ptr<etcd_locks> store_one_ = store_for(one_);
    std::unique_ptr<etcd_locks> store_two_ = store_for(two_);
    std::shared_ptr<session_core> first_ = open(one_, *store_one_);
    std::shared_ptr<session_core> second_ = open(two_, *store_two_);
};

TEST_F(OnceOnEtcd, WhatWasResolvedIsToldForAsLongAsItIsKept) {
    caller dies;
    begin(dies, first_);
    world_.run_for(1s);
    ASSERT_TRUE(dies.has(once_step::begin));
    const auto run_id = dies.turn.record.run_id;
    std::vector<caller> waiting(10);
    for (auto& c : waiting) begin(c, second_);
    world_.run_for(1s);
    for (auto& c : waiting) EXPECT_FALSE(c.error) << "it still runs";
    one_.kill();
    world_.run_for(ttl + 5s);
    for (auto& c : waiting) {
        ASSERT_TRUE(c.has(once_step::tell));
        EXPECT_EQ(c.turn.record.run_id, run_id);
        EXPECT_EQ(c.turn.record.owner, "worker");
    }
    // Nobody turns it into something else by waiting.
    world_.run_for(3h);
    EXPECT_TRUE(ask().has(once_step::tell));
    const auto found = stored();
    ASSERT_TRUE(found.has_value());
    const auto interrupted = decode_once(found->value);
    ASSERT_TRUE(interrupted.has_value());
    resolve(*interrupted, found->revision, "charge 7");
    const auto resolved = world_.now();
    for (const auto after : {0s, 3'600s, 7'000s}) {
        world_.run_until(std::max(resolved + after, world_.now()));
        const auto c = ask();
        ASSERT_TRUE(c.has(once_step::answer)) << after.count() << " s after it was resolved";
        EXPECT_EQ(c.turn.record.payload, "charge 7");
        EXPECT_EQ(c.turn.record.run_id, run_id);
    }
    world_.run_until(resolved + kept + kept / 16 + 2s);
    EXPECT_FALSE(stored().has_value()) << "it is forgotten";
    const auto anew = ask();
    ASSERT_TRUE(anew.has(once_step::begin)) << "the key is as new";
    EXPECT_NE(anew.turn.record.run_id, run_id);
    EXPECT_EQ(anew.turn.record.attempt, 1U);
}

}  // namespace
}  // namespace trinco::test
