// One lock for trinco and for Go's own client (client/v3/concurrency: Mutex, TryLock, Election) on
// real servers, in both directions. Without servers, or without Go, the tests are skipped.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <fstream>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etcd_other_clients.hpp"
#include "tests/store/go_client.hpp"

namespace trinco::detail::test {
namespace {

class EtcdGo : public EtcdInterop {
protected:
    void SetUp() override {
        go_program_ = find_test_program(go_client_program);
        if (!go_program_) GTEST_SKIP() << "Go's client was not built; try `make servers`";
        start();
    }
    std::unique_ptr<go_client> go(std::chrono::seconds ttl = 60s) {
        return std::make_unique<go_client>(*go_program_, server_->addresses(), ttl);
    }
    // Until its last word begins so.
    bool says(go_client& other, const std::string& who, const std::string& begin) {
        return comes_true([&] {
            const auto& all = other.said(who);
            return !all.empty() && all.back().starts_with(begin);
        });
    }
    // Of "locked KEY REVISION".
    static std::uint64_t revision_of(const std::string& said) {
        return std::stoull(said.substr(said.rfind(' ') + 1));
    }
    std::error_code try_to_enter(const lease& on, std::uint64_t id, const std::string& name) {
        const claim what{{id}, on.id, {{name, claim_kind::exclusive, 0}}, "", true};
        return try_to<place>([&](deadline by, completion<place> f) {
            return store_->enter(what, by, std::move(f));
        });
    }
    void campaign(const lease& on, std::uint64_t id, const std::string& name,
                  const std::string& value) {
        claim what{{id}, on.id, {{name, claim_kind::exclusive, 0}}, value, false};
        what.bare = true;
        ask<place>([&](deadline by, completion<place> f) {
            return store_->enter(what, by, std::move(f));
        });
    }

    std::optional<std::string> go_program_;
};

TEST_P(EtcdGo, AMutexOfGoWaitsForUsAndWeWaitForIt) {
    const auto on = open();
    enter(on, 1, "n");
    const auto first = await(on, 1);
    ASSERT_TRUE(comes_true([&] { return first->granted; }));
    auto other = go();
    other->send("g", "lock n");
    ASSERT_TRUE(queue_grows_to("n", 2));
    enter(on, 2, "n");
    const auto ours = await(on, 2);
    other->send("h", "lock n");
    ASSERT_TRUE(queue_grows_to("n", 4));
    on_.run_for(200ms);
    EXPECT_TRUE(other->said("g").empty()) << "it holds while we hold";
    leave(on, 1);
    ASSERT_TRUE(says(*other, "g", "locked"));
    EXPECT_GT(revision_of(other->said("g").back()), first->token);
    on_.run_for(200ms);
    EXPECT_FALSE(ours->granted) << "we are granted while it holds";
    EXPECT_EQ(other->ask("g", "unlock n"), "unlocked");
    ASSERT_TRUE(comes_true([&] { return ours->granted; }));
    EXPECT_GT(ours->token, revision_of(other->said("g").front()));
    on_.run_for(200ms);
    EXPECT_TRUE(other->said("h").empty()) << "it holds while we hold";
    leave(on, 2);
    ASSERT_TRUE(says(*other, "h", "locked"));
    EXPECT_GT(revision_of(other->said("h").back()), ours->token);
    EXPECT_EQ(other->ask("h", "unlock n"), "unlocked");
    EXPECT_TRUE(rows("n").empty());
}

TEST_P(EtcdGo, NeitherTryIsGrantedWhileTheOtherHoldsAndNothingIsLeft) {
    const auto on = open();
    enter(on, 1, "n");
    auto other = go();
    EXPECT_EQ(other->ask("g", "try n"), "taken");
    EXPECT_EQ(rows("n").size(), 1U);
    leave(on, 1);
    EXPECT_TRUE(other->ask("g", "try n").starts_with("locked"));
    EXPECT_EQ(try_to_enter(on, 2, "n"), errc::conflict);
    EXPECT_EQ(rows("n").size(), 1U);
    EXPECT_EQ(other->ask("g", "unlock n"), "unlocked");
    EXPECT_EQ(try_to_enter(on, 3, "n"), std::error_code());
    EXPECT_EQ(other->ask("h", "try n"), "taken");
    leave(on, 3);
    EXPECT_TRUE(rows("n").empty());
}

TEST_P(EtcdGo, AnElectionIsOneForBothAndEachSeesTheOthersValue) {
    std::vector<std::string> seen;
    const auto observer = store_->observe("n", [&](std::optional<entry> holder) {
        seen.push_back(holder ? holder->info : "nobody");
    });
    auto other = go();
    other->send("o", "observe n");
    EXPECT_TRUE(other->ask("g", "campaign n of-go").starts_with("leads n/"));
    ASSERT_TRUE(comes_true([&] { return !seen.empty() && seen.back() == "of-go"; }));
    const auto on = open();
    campaign(on, 1, "n", "ours");
    const auto ours = await(on, 1);
    other->send("h", "campaign n second-of-go");
    ASSERT_TRUE(queue_grows_to("n", 3));
    on_.run_for(200ms);
    EXPECT_FALSE(ours->granted);
    EXPECT_EQ(other->ask("g", "resign n"), "resigned");
    ASSERT_TRUE(comes_true([&] { return ours->granted && seen.back() == "ours"; }));
    EXPECT_TRUE(says(*other, "o", "sees ours")) << "Go takes our value for another";
    on_.run_for(200ms);
    EXPECT_TRUE(other->said("h").empty()) << "two lead";
    leave(on, 1);
    ASSERT_TRUE(says(*other, "h", "leads"));
    EXPECT_TRUE(says(*other, "o", "sees second-of-go"));
    EXPECT_EQ(other->ask("h", "resign n"), "resigned");
    EXPECT_TRUE(comes_true([&] { return seen.back() == "nobody"; }));
}

TEST_P(EtcdGo, TheLockOfAProcessOfGoThatWasKilledIsHandedToUsAndNotToItsOtherWaiter) {
    auto other = go(2s);
    EXPECT_TRUE(other->ask("g", "lock n").starts_with("locked"));
    other->send("h", "lock n");
    ASSERT_TRUE(queue_grows_to("n", 2));
    const auto on = open();
    enter(on, 1, "n");
    const auto ours = await(on, 1);
    other->kill();
    ASSERT_TRUE(comes_true([&] { return ours->granted; }));
    EXPECT_EQ(rows("n").size(), 1U);
}

INSTANTIATE_TEST_SUITE_P(Servers, EtcdGo, ::testing::ValuesIn(etcd_kinds({"etcd-3.6"})),
                         [](const auto& one) { return version_of(one.param); });

// Twenty at once: ours, those of two processes of Go, and processes of etcdctl.
class EtcdMixed : public EtcdGo {
protected:
    static constexpr std::size_t of_us = 7;
    static constexpr std::size_t of_go = 7;
    static constexpr std::size_t of_etcdctl = 6;
    static constexpr std::size_t all = of_us + of_go + of_etcdctl;

    // Whoever is in makes a folder, which only one can, and stays for a moment.
    [[nodiscard]] std::string script() const {
        return "mkdir " + file("in") + " || echo overlap >> " + file("violations") +
               "; echo $ETCD_LOCK_KEY >> " + file("log") + "; sleep 0.02; rmdir " + file("in");
    }
    struct own {
        lease on;
        std::unique_ptr<waiting> wait;
        std::uint64_t visits = 0;
        std::optional<op> stay;
    };
    // As the others do, but on the loop: the others are looked for, and told of, meanwhile.
    void visit(own& one, std::size_t times) {
        if (!one.wait->granted || one.stay || one.visits == times) return;
        EXPECT_GT(one.wait->token, last_token_) << "a token that is not above an earlier one";
        last_token_ = one.wait->token;
        EXPECT_EQ(::mkdir(file("in").c_str(), 0700), 0) << "somebody else is in";
        std::ofstream(file("log"), std::ios::app)
            << "n/" << one.on.id << (one.visits == 0 ? "" : "." + std::to_string(one.visits + 1))
            << '\n';
        one.stay = on_.after(20ms, [this, &one] { done_.push_back(&one); });
    }
    void leave_and_enter(std::size_t times) {
        for (auto* one : std::exchange(done_, {})) {
            EXPECT_EQ(::rmdir(file("in").c_str()), 0);
            one->stay.reset();
            leave(one->on, ++one->visits);
            if (one->visits == times) continue;
            enter(one->on, one->visits + 1, "n");
            one->wait = await(one->on, one->visits + 1);
        }
    }
    void run_until_all_visited(std::vector<own>& ours, std::size_t times) {
        for (const auto end = on_.now() + 40s; on_.now() < end;) {
            for (auto& one : ours) visit(one, times);
            leave_and_enter(times);
            if (lines("log").size() >= all * times && rows("n").empty()) return;
            on_.run_for(5ms);
        }
        ADD_FAILURE() << lines("log").size() << " of " << all * times << " visits";
    }
    void begin(std::vector<own>& ours, go_client& a, go_client& b, std::size_t times) {
        const auto n = std::to_string(times);
        const auto visits = "visit n " + n + " " + folder_.path().string();
        const auto again = "i=0; while [ $i -lt " + n + " ]; do i=$((i+1)); " + etcdctl() +
                           " --endpoints " + server_->address() + " lock n -- sh -c '" + script() +
                           "'; done";
        for (std::size_t i = 0; i < of_us; ++i) {
            ours.push_back({open(), nullptr, 0, {}});
            enter(ours.back().on, 1, "n");
            ours.back().wait = await(ours.back().on, 1);
            (i % 2 == 0 ? a : b).send("g" + std::to_string(i), visits);
            if (i >= of_etcdctl) continue;
            theirs_.push_back(
                std::make_unique<other_process>(std::vector<std::string>{"/bin/sh", "-c", again}));
        }
    }

    std::vector<std::unique_ptr<other_process>> theirs_;
    std::uint64_t last_token_ = 0;
    std::vector<own*> done_;
};

TEST_P(EtcdMixed, TwentyHaveItOneAfterAnotherAtFirstInTheOrderOfComing) {
    constexpr std::size_t times = 3;
    const auto first = open();
    enter(first, 1, "n");
    const auto a = go();
    const auto b = go();
    std::vector<own> ours;
    ours.reserve(of_us);
    begin(ours, *a, *b, times);
    ASSERT_TRUE(queue_grows_to("n", all + 1));
    std::vector<std::string> expected;
    for (const auto& row : rows("n")) {
        expected.push_back(row.handle.substr(row.handle.find(' ') + 1));
    }
    expected.erase(expected.begin());
    leave(first, 1);
    run_until_all_visited(ours, times);
    auto log = lines("log");
    EXPECT_EQ(log.size(), all * times);
    log.resize(all);
    EXPECT_EQ(log, expected) << "not in the order of the queue";
    EXPECT_TRUE(lines("violations").empty());
}

INSTANTIATE_TEST_SUITE_P(Servers, EtcdMixed,
                         ::testing::ValuesIn(etcd_kinds({"etcd", "etcd-3.4", "etcd-3.6"})),
                         [](const auto& one) { return version_of(one.param); });

}  // namespace
}  // namespace trinco::detail::test
