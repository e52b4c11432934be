// Breakers on local beyond the contract: damage, another life, a gate that stays shut, processes.
#include "store/local/local_breakers.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include <filesystem>
#include <memory>
#include <random>
#include <vector>

#include "store/local/local_breaker_rows.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/store/local/child_process.hpp"
#include "tests/store/local/scratch_folder.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

class local_scene final : public breaker_store_fixture {
public:
    std::unique_ptr<breaker_store> make_store(breaker_identity who) override {
        return std::make_unique<local_breakers>(
            on_, std::make_shared<local_worker>(settings, "local:x"), space, std::move(who));
    }
    loop& on() override { return on_; }
    void pass(milliseconds d) override { on_.run_for(d); }
    bool run_until(const std::function<bool()>& done, milliseconds limit) override {
        return on_.run_until(done, limit);
    }
    void change(const std::string& sql) const {
        sqlite_database db(settings.file.string());
        db.run(sql);
    }
    [[nodiscard]] std::int64_t number(const std::string& sql) const {
        sqlite_database db(settings.file.string());
        return db.number(sql);
    }
    // The record's totals as a newcomer sees them.
    counts totals() {
        member m(*this, "reader", "reader");
        return m.inspect("payments").value.rows.at(0).totals;
    }

    scratch_folder folder;
    local_settings settings = local_settings_for(folder.file());
    std::string space = "default";

private:
    driven_loop on_;
};

control_request an_order(control_verb verb, std::uint64_t id) {
    control_request c;
    c.id = id;
    c.breaker = "payments";
    c.who = "ann";
    c.verb = verb;
    return c;
}

TEST(LocalBreakers, WhatOneStoreKeptTheNextOneFinds) {
    local_scene s;
    {
        member a(s, "a-1", "a");
        a.report("payments", calls(3, 1));
    }
    EXPECT_EQ(s.totals(), calls(3, 1));
    s.space = "other";
    member b(s, "b-1", "b");
    EXPECT_TRUE(b.inspect("").value.rows.empty()) << "another namespace";
}

TEST(LocalBreakers, ADamagedRowIsAnErrorOfThatBreakerUntilItIsForgotten) {
    local_scene s;
    member a(s, "a-1", "a");
    a.report("payments", calls(1, 0));
    s.change("UPDATE breakers SET record = x'545201ffff'");
    const auto got = a.exchange({a.about("payments"), a.about("other", calls(1, 0))});
    ASSERT_EQ(got.value.size(), 2U);
    EXPECT_EQ(got.value[0].error, errc::unavailable);
    EXPECT_FALSE(got.value[1].error);
    EXPECT_EQ(a.probe(a.asking("payments", 1)).error, errc::unavailable);
    EXPECT_EQ(a.control(an_order(control_verb::trip, 1)).error, errc::unavailable);
    EXPECT_EQ(a.inspect("").value.rows.size(), 1U);
    EXPECT_FALSE(a.control(an_order(control_verb::forget, 2)).error);
    EXPECT_FALSE(a.report("payments", calls(1, 0)).error);
}

TEST(LocalBreakers, AnotherLifeOfTheMachineIsAnnouncedToWhoSubscribes) {
    local_scene s;
    { member a(s, "a-1", "a"); }
    s.settings.boot_id = "another life";
    member b(s, "b-1", "b");
    b.subscribe();
    ASSERT_TRUE(s.run_until([&] { return !b.heard.empty(); }, 5s));
    EXPECT_EQ(b.heard[0].kind, notice::kind_t::new_server);
    s.change("UPDATE machine SET began = began - 3700000000");
    member c(s, "c-1", "c");
    c.subscribe();
    c.report("payments", {});
    s.pass(20ms);
    for (const notice& n : c.heard) EXPECT_NE(n.kind, notice::kind_t::new_server);
}

TEST(LocalBreakers, CallsEndByTheirDeadlinesWhileSomebodyHoldsTheGate) {
    local_scene s;
    member a(s, "a-1", "a");
    a.report("payments", calls(1, 0));
    const auto gate = s.settings.file.string() + "-gate";
    const owned_descriptor held(::open(gate.c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
    const news n = a.about("payments", calls(1, 0));
    std::error_code error;
    bool over = false;
    const auto began = boot_clock::now();
    const op waiting = a.store().exchange({&n, 1}, began + 50ms,
                                          [&](std::error_code e, const std::vector<verdict>&) {
                                              error = e;
                                              over = true;
                                          });
    ASSERT_TRUE(s.run_until([&] { return over; }, 2s));
    EXPECT_EQ(error, errc::unavailable) << "it had not begun";
    ASSERT_EQ(::flock(held.get(), LOCK_UN), 0);
    EXPECT_EQ(a.report("payments", {}).window, calls(1, 0)) << "and was not carried out later";
}

TEST(LocalBreakers, AFileThatIsGoneIsUnavailable) {
    local_scene s;
    member a(s, "a-1", "a");
    a.report("payments", calls(1, 0));
    std::filesystem::remove(s.settings.file);
    EXPECT_EQ(a.tell(a.about("payments")).error, errc::unavailable);
}

TEST(LocalBreakers, AProcessOfAnotherLifeDoesNotRingForEver) {
    local_scene s;
    member a(s, "a-1", "a");
    a.report("payments", {});
    s.change("INSERT INTO peers VALUES('local.db-snobody')");
    a.control(an_order(control_verb::trip, 1));
    a.control(an_order(control_verb::reset, 2));
    EXPECT_EQ(s.number("SELECT count(*) FROM peers"), 0);
}

// ---- across processes ---------------------------------------------------------------------------

TEST(LocalBreakersProcesses, ANoticeReachesAnotherProcessAtOnce) {
    local_scene s;
    member a(s, "a-1", "a");
    a.report("payments", {});
    child_process listener(TRINCO_LOCAL_CHILD, {s.settings.file.string(), "listen"});
    ASSERT_EQ(listener.line(10s), "ready");
    const auto before = boot_clock::now();
    const auto tripped = a.control(an_order(control_verb::trip, 1));
    ASSERT_FALSE(tripped.error);
    EXPECT_EQ(listener.line(10s), "payments " + std::to_string(tripped.value.era));
    EXPECT_LT(boot_clock::now() - before, 500ms) << "by a ring, not by reading again";
}

TEST(LocalBreakersProcesses, CountsAreExactWhileProcessesAreKilled) {
    local_scene s;
    { member a(s, "a-1", "a"); }
    std::mt19937 random(7);
    constexpr int rounds = 5;
    constexpr int at_once = 4;
    std::uint64_t answered = 0;
    for (int round = 0; round < rounds; ++round) {
        std::vector<std::unique_ptr<child_process>> fleet;
        for (int i = 0; i < at_once; ++i) {
            fleet.push_back(std::make_unique<child_process>(
                TRINCO_LOCAL_CHILD,
                std::vector<std::string>{s.settings.file.string(), "count",
                                         "i" + std::to_string(round * at_once + i)}));
        }
        for (const auto& child : fleet) {
            const auto lines = 20 + random() % 60;
            for (std::uint64_t n = 1; n < lines; ++n) ASSERT_TRUE(child->line(20s).has_value());
        }
        for (const auto& child : fleet) {
            auto line = child->line(20s);
            child->signal(SIGKILL);
            EXPECT_EQ(child->wait(), 128 + SIGKILL);
            std::uint64_t last = 0;
            for (; line; line = child->line(1s)) last = std::stoull(*line);
            answered += last;
        }
    }
    const auto counted = s.totals().success;
    EXPECT_GE(counted, answered) << "an answered one was lost";
    EXPECT_LE(counted, answered + rounds * at_once) << "one was counted twice";
    EXPECT_GT(answered, 400U);
    EXPECT_EQ(s.number("SELECT count(*) FROM pragma_integrity_check WHERE integrity_check = 'ok'"),
              1);
}

}  // namespace
}  // namespace trinco::detail::test
