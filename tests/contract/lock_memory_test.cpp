// The contract of lock_store on memory, and on memory behind a network that delays and loses.
#include <gtest/gtest.h>

#include "lock_store_suite.hpp"
#include "sim/lossy_locks.hpp"
#include "sim/world.hpp"
#include "store/memory/memory_locks.hpp"

namespace trinco::test {
namespace {

using detail::memory_lock_server;
using detail::memory_locks;

class memory_world final : public lock_store_world {
public:
    detail::loop& on() override { return node_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { world_.run_for(d); }
    boot_clock::duration settle_time() const override { return 10ms; }
    bool tells_ended_claims() const override { return true; }

private:
    sim::world world_{1};
    sim::node& node_ = world_.add_node("client");
    std::shared_ptr<memory_lock_server> server_ =
        std::make_shared<memory_lock_server>([this] { return world_.now(); });
    memory_locks a_{node_, server_};
    memory_locks b_{node_, server_};
};

class lossy_world final : public lock_store_world {
public:
    explicit lossy_world(const sim::net_faults& faults) { net_.set_faults(faults); }
    detail::loop& on() override { return node_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { world_.run_for(d); }
    boot_clock::duration settle_time() const override { return 5s; }
    bool applies_once() const override { return net_.faults().p_drop == 0; }

private:
    sim::world world_{7};
    sim::network net_{world_};
    sim::node& at_ = world_.add_node("server");
    sim::node& node_ = world_.add_node("client");
    memory_locks inner_{at_, std::make_shared<memory_lock_server>([this] { return world_.now(); })};
    std::shared_ptr<sim::lock_service> service_ =
        std::make_shared<sim::lock_service>(net_, at_, inner_);
    sim::lossy_locks a_{node_, service_};
    sim::lossy_locks b_{node_, service_};
};

INSTANTIATE_TEST_SUITE_P(
    Memory, LockStore,
    ::testing::Values(lock_store_case{"Near", [] { return std::make_unique<memory_world>(); }},
                      lock_store_case{"Delayed",
                                      [] {
                                          return std::make_unique<lossy_world>(
                                              sim::net_faults{.delay_min = 1ms, .delay_max = 60ms});
                                      }},
                      lock_store_case{"Lossy",
                                      [] {
                                          return std::make_unique<lossy_world>(sim::net_faults{
                                              .p_drop = 0.1, .delay_min = 1ms, .delay_max = 20ms});
                                      }}),
    lock_case_name);

TEST(MemoryLocks, EachReleaseWakesOneOfAThousandWaiters) {
    sim::world world(1);
    auto& node = world.add_node("n");
    const auto server = std::make_shared<memory_lock_server>([&] { return world.now(); });
    memory_locks store(node, server);
    const auto on = server->open(3'600s, "many").value;
    std::vector<op> waits;
    int granted = 0;
    for (std::uint64_t id = 1; id <= 1'000; ++id) {
        ASSERT_FALSE(
            server->enter({{id}, on.id, {{"n", claim_kind::exclusive, 0}}, "", false}).error);
        waits.push_back(store.await(on.id, {id}, nullptr, [&](std::error_code error, const auto&) {
            EXPECT_FALSE(error);
            ++granted;
        }));
    }
    world.run_for(1ms);
    ASSERT_EQ(granted, 1);
    for (std::uint64_t id = 1; id < 1'000; ++id) {
        const auto before = server->wakeups();
        server->leave(on.id, {id});
        ASSERT_EQ(server->wakeups() - before, 1U) << "after release " << id;
        world.run_for(1ms);
        ASSERT_EQ(granted, static_cast<int>(id) + 1);
    }
}

TEST(MemoryLocks, BoundsAreBusy) {
    memory_lock_server server(&boot_clock::now, {.leases = 1, .claims = 1, .keys = 1});
    const auto on = server.open(60s, "").value;
    EXPECT_EQ(server.open(60s, "").error, errc::busy);
    const auto enter = [&](std::uint64_t id, const char* name) {
        return server.enter({{id}, on.id, {{name, claim_kind::exclusive, 0}}, "", false}).error;
    };
    EXPECT_FALSE(enter(1, "a"));
    EXPECT_EQ(enter(2, "b"), errc::busy);
    EXPECT_FALSE(enter(1, "a")) << "what is there already may be asked for again";
    const std::vector<detail::change> one{{"k", "v"}}, two{{"l", "v"}};
    EXPECT_FALSE(server.write("", {}, one, 0s).error);
    EXPECT_EQ(server.write("", {}, two, 0s).error, errc::busy);
    EXPECT_FALSE(server.write("", {}, one, 0s).error);
}

// The simulated network's own promises, which the suite does not reach.
class LossyLocks : public ::testing::Test {
protected:
    std::error_code open_within(boot_clock::duration limit) {
        std::error_code got;
        int times = 0;
        const auto interest = store_.open(60s, "x", world_.now() + limit,
                                          [&](std::error_code error, const detail::lease&) {
                                              got = error;
                                              ++times;
                                          });
        world_.run_for(limit);
        EXPECT_EQ(times, 1) << "a call must end by its deadline, once";
        return got;
    }
    sim::world world_{3};
    sim::network net_{world_};
    sim::node& at_ = world_.add_node("server");
    sim::node& node_ = world_.add_node("client");
    std::shared_ptr<memory_lock_server> server_ =
        std::make_shared<memory_lock_server>([this] { return world_.now(); });
    memory_locks inner_{at_, server_};
    std::shared_ptr<sim::lock_service> service_ =
        std::make_shared<sim::lock_service>(net_, at_, inner_);
    sim::lossy_locks store_{node_, service_};
};

TEST_F(LossyLocks, ALostRequestAndALostReplyAreBothUnknown) {
    net_.cut(node_, at_);
    EXPECT_EQ(open_within(2s), errc::unknown_outcome);
    EXPECT_TRUE(server_->leases().empty());
    net_.restore(node_, at_);
    net_.cut(at_, node_);
    EXPECT_EQ(open_within(2s), errc::unknown_outcome);
    EXPECT_EQ(server_->leases().size(), 1U) << "it did happen";
}

TEST_F(LossyLocks, ABrokenConnectionEndsCallsAtOnceAndRefusesNewOnesUntilItIsBack) {
    at_.pause_until(world_.now() + 1h);
    std::optional<std::error_code> got;
    const auto interest =
        store_.open(60s, "x", world_.now() + 10s,
                    [&](std::error_code error, const detail::lease&) { got = error; });
    world_.run_for(100ms);
    EXPECT_FALSE(got.has_value());
    net_.break_connections(at_);
    world_.run_for(0ms);
    ASSERT_TRUE(got.has_value());
    EXPECT_EQ(*got, errc::unknown_outcome);
    std::optional<std::error_code> next;
    const auto refused =
        store_.open(60s, "x", world_.now() + 10s,
                    [&](std::error_code error, const detail::lease&) { next = error; });
    world_.run_for(0ms);
    ASSERT_TRUE(next.has_value());
    EXPECT_EQ(*next, errc::unavailable) << "surely not sent";
}

TEST_F(LossyLocks, ADuplicatedRequestIsAppliedTwice) {
    net_.set_faults({.p_duplicate = 1});
    EXPECT_FALSE(open_within(2s));
    EXPECT_EQ(server_->leases().size(), 2U);
}

}  // namespace
}  // namespace trinco::test
