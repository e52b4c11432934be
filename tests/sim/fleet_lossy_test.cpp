// The simulated store of breakers: the contract's suite while the network is calm, and its faults.
#include <gtest/gtest.h>

#include "sim/lossy_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

class lossy_fixture : public breaker_store_fixture {
public:
    std::unique_ptr<breaker_store> make_store(breaker_identity who) override {
        return std::make_unique<sim::lossy_breakers>(net, client, server, std::move(who));
    }
    loop& on() override { return client; }
    void pass(milliseconds d) override { world.run_for(d); }
    bool run_until(const std::function<bool()>& done, milliseconds limit) override {
        world.run_for(0ms);
        for (milliseconds t{0}; t < limit && !done(); t += 1ms) world.run_for(1ms);
        return done();
    }
    faults can() override {
        faults f;
        f.lose_data = [this] { server.restart({}); };
        f.miss_messages = [this] { net.break_connections(client, at); };
        f.breakers_kept = [this] { return server.memory().size(); };
        f.drop_replies = [this](bool on) { on ? net.cut(at, client) : net.heal(); };
        f.drop_requests = [this](bool on) { on ? net.cut(client, at) : net.heal(); };
        return f;
    }
    [[nodiscard]] milliseconds slack() const override { return 5ms; }
    [[nodiscard]] bool is_exact() const override { return false; }

    sim::world world{1};
    sim::network net{world};
    sim::node& client = world.add_node("client");
    sim::node& at = world.add_node("server");
    sim::lossy_breaker_server server{world, net, at};
};

INSTANTIATE_BREAKER_STORE_SUITE(lossy, [] { return std::make_unique<lossy_fixture>(); });

struct LossyBreakers : testing::Test {
    lossy_fixture f;
    member a{f, "a-1", "a"};

    // Sends one batch and lets that much time pass; the error with which it ended by then.
    std::optional<std::error_code> exchange_for(milliseconds d, milliseconds deadline = 100ms) {
        std::optional<std::error_code> result;
        const news n = a.about("payments", calls(1, 0));
        const auto call = a.store().exchange({&n, 1}, f.client.now() + deadline,
                                             [&](std::error_code ec, const auto&) { result = ec; });
        f.pass(d);
        return result;
    }
    [[nodiscard]] std::uint64_t counted() {
        return f.server.memory().record_of("payments").totals.success;
    }
};

TEST_F(LossyBreakers, LostReplyIsUnknownAtTheDeadlineAndTheEffectRemains) {
    f.net.cut(f.at, f.client);
    EXPECT_FALSE(exchange_for(99ms));
    EXPECT_EQ(exchange_for(100ms), make_error_code(errc::unknown_outcome));
    EXPECT_EQ(counted(), 2U);
}

TEST_F(LossyBreakers, DoubledRequestCountsOnce) {
    sim::net_faults faults;
    faults.p_duplicate = 1;
    f.net.set_faults(faults);
    for (int i = 0; i < 50; ++i) EXPECT_EQ(exchange_for(20ms), std::error_code{});
    EXPECT_EQ(counted(), 50U);
    EXPECT_GT(f.net.duplicated(), 90U);
}

TEST_F(LossyBreakers, PausedServerAnswersWhenItWakes) {
    f.at.pause_until(f.client.now() + 50ms);
    EXPECT_FALSE(exchange_for(49ms));
    f.pass(100ms);
    EXPECT_EQ(counted(), 1U) << "the request lay in its buffer";
}

TEST_F(LossyBreakers, RestartLosesWhatIsUnderWayAndIsToldBeforeAnyLaterAnswer) {
    a.subscribe();
    std::vector<std::string> story;
    const auto notices = a.store().subscribe([&](const notice& n) {
        if (n.kind == notice::kind_t::new_server) story.emplace_back("new_server");
    });
    const news n = a.about("payments", calls(1, 0));
    const auto first = a.store().exchange(
        {&n, 1}, f.client.now() + 1s,
        [&](std::error_code ec, const auto&) { story.push_back(ec ? "lost" : "answered"); });
    f.server.restart({});
    const auto second = a.store().exchange(
        {&n, 1}, f.client.now() + 1s,
        [&](std::error_code ec, const auto&) { story.push_back(ec ? "lost" : "answered"); });
    f.pass(20ms);
    EXPECT_EQ(story, (std::vector<std::string>{"new_server", "lost", "answered"}));
}

TEST_F(LossyBreakers, FlushedServerTellsNobody) {
    a.report("payments", calls(1, 0));
    a.subscribe();
    f.server.flush_all();
    f.pass(2s);
    EXPECT_TRUE(a.heard.empty());
    EXPECT_EQ(counted(), 0U);
}

TEST_F(LossyBreakers, ServerThatIsDownRefusesAtOnceAndComesBackAsAnother) {
    a.report("payments", calls(1, 0));
    a.subscribe();
    f.server.crash();
    EXPECT_EQ(exchange_for(2ms), make_error_code(errc::unavailable));
    f.server.start(f.server.snapshot());
    f.pass(5ms);
    ASSERT_EQ(a.heard.size(), 2U);
    EXPECT_EQ(a.heard[0].kind, notice::kind_t::gap);
    EXPECT_EQ(a.heard[1].kind, notice::kind_t::new_server);
    EXPECT_EQ(counted(), 1U);
}

TEST_F(LossyBreakers, NewcomerIsToldOfAnEarlierLife) {
    f.server.restart({});
    member late(f, "b-1", "b");
    late.subscribe();
    f.pass(1ms);
    ASSERT_EQ(late.heard.size(), 1U);
    EXPECT_EQ(late.heard[0].kind, notice::kind_t::new_server);
}

TEST_F(LossyBreakers, LostNoticeBecomesAGapAndOthersKeepTheirOrder) {
    a.report("payments", calls(1, 0));
    member b(f, "b-1", "b");
    b.subscribe();
    sim::net_faults faults;
    faults.p_drop = 0.3;
    faults.delay_max = 50ms;
    f.net.set_faults(faults);
    std::error_code error;
    for (std::uint64_t id = 1; id <= 60; ++id) {
        control_request c;
        c.id = id;
        c.breaker = "payments";
        c.who = "ann";
        c.verb = id % 2 == 0 ? control_verb::reset : control_verb::trip;
        (void)f.server.memory().control(c, error);
        f.pass(10ms);
    }
    f.net.heal();
    f.pass(3s);
    int gaps = 0;
    view last;
    for (const auto& n : b.heard) {
        if (n.kind == notice::kind_t::gap) {
            ++gaps;
        } else {
            EXPECT_TRUE(n.fleet.newer_than(last));
            last = n.fleet;
        }
    }
    EXPECT_GT(gaps, 0);
    EXPECT_GT(b.heard.size(), 5U);
}

TEST_F(LossyBreakers, LastNoticeThatGotLostIsMissedByTheHeartbeat) {
    a.report("payments", calls(1, 0));
    a.subscribe();
    f.net.cut(f.at, f.client);
    std::error_code error;
    control_request c;
    c.id = 1;
    c.breaker = "payments";
    c.who = "ann";
    c.verb = control_verb::trip;
    (void)f.server.memory().control(c, error);
    f.pass(200ms);
    f.net.heal();
    f.pass(2s);
    ASSERT_EQ(a.heard.size(), 1U);
    EXPECT_EQ(a.heard[0].kind, notice::kind_t::gap);
}

}  // namespace
}  // namespace trinco::detail::test
