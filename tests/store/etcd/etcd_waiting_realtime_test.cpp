// Waiting and holding on real servers while something happens to the entries, the lease, the login
// or the servers. Without servers the tests are skipped.
#include "etcd_real_store.hpp"
#include "lock/lock_claim.hpp"
#include "lock/session_core.hpp"

namespace trinco::detail::test {
namespace {

class EtcdWaiting : public EtcdStore {
protected:
    lease open_for(std::chrono::seconds ttl) {
        return ask<lease>([&](deadline by, completion<lease> f) {
            return store_->open(ttl, "test", by, std::move(f));
        });
    }
    std::error_code verify(const lease& on, std::uint64_t id) {
        return try_to<grant>([&](deadline by, completion<grant> f) {
            return store_->verify(on.id, {id}, by, std::move(f));
        });
    }
    // With the error of its end.
    struct watched {
        std::optional<std::error_code> ended;
        op interest;
    };
    std::unique_ptr<watched> await_end(const lease& on, std::uint64_t id) {
        auto w = std::make_unique<watched>();
        w->interest = store_->await(
            on.id, {id}, nullptr, [p = w.get()](std::error_code e, const grant&) { p->ended = e; });
        return w;
    }
    std::unique_ptr<watched> watch_own(const lease& on, std::uint64_t id) {
        auto w = std::make_unique<watched>();
        w->interest =
            store_->on_gone(on.id, {id}, [p = w.get()](std::error_code e) { p->ended = e; });
        return w;
    }
};

TEST_P(EtcdWaiting, AWaiterWhoseLeaseWasRevokedIsNeverGranted) {
    start();
    if (IsSkipped()) return;
    const auto holder = open();
    enter(holder, 1, "n");
    const auto dying = open_for(6s);
    enter(dying, 1, "n");
    const auto waits = await_end(dying, 1);
    on_.run_for(100ms);
    // As etcdctl 3.4 was seen to go wrong: the waiter's lease ends, then the holder goes.
    server_->must({"lease", "revoke", dying.id});
    leave(holder, 1);
    const auto next = open();
    enter(next, 1, "n");
    ASSERT_TRUE(comes_true([&] { return waits->ended.has_value(); }));
    EXPECT_EQ(*waits->ended, errc::lost);
    EXPECT_FALSE(verify(next, 1)) << "the next one has it";
}

TEST_P(EtcdWaiting, ADeletedKeyIsLostForWhoWaitsAndForWhoHolds) {
    start();
    if (IsSkipped()) return;
    const auto on = open_for(6s);
    enter(on, 1, "n");
    enter(on, 2, "n");
    const auto holds = watch_own(on, 1);
    const auto waits = await_end(on, 2);
    on_.run_for(100ms);
    server_->must({"del", "n/" + on.id + ".2"});
    ASSERT_TRUE(comes_true([&] { return waits->ended.has_value(); }));
    EXPECT_EQ(*waits->ended, errc::lost);
    EXPECT_FALSE(holds->ended.has_value());
    server_->must({"del", "n/" + on.id});
    ASSERT_TRUE(comes_true([&] { return holds->ended.has_value(); }));
    EXPECT_EQ(*holds->ended, errc::lost);
}

TEST_P(EtcdWaiting, ADefragmentationAndACompactionLeaveEverythingAsItIs) {
    start();
    if (IsSkipped()) return;
    const auto on = open();
    enter(on, 1, "n");
    enter(on, 2, "n");
    const auto holds = watch_own(on, 1);
    const auto waits = await(on, 2);
    on_.run_for(100ms);
    for (int i = 0; i < 50; ++i) server_->must({"put", "other", std::string(10'000, 'x')});
    server_->must({"compact", "30"});
    server_->must({"defrag"});
    EXPECT_FALSE(verify(on, 1));
    EXPECT_FALSE(holds->ended.has_value());
    EXPECT_FALSE(waits->granted);
    leave(on, 1);
    EXPECT_TRUE(comes_true([&] { return waits->granted; }));
}

TEST_P(EtcdWaiting, ATokenOfAUserThatExpiresDuringAWaitIsFetchedAnew) {
    start({.program = {}, .more = {"--auth-token-ttl=1"}});
    if (IsSkipped()) return;
    server_->demand_login("secret");
    store_ = std::make_unique<etcd_locks>(
        on_,
        etcd::make_etcd_client(
            on_,
            etcd::make_grpc_transport(on_, {stream_address::tcp("127.0.0.1", server_->port())}, {}),
            {"root", "secret"}));
    const auto on = open();
    enter(on, 1, "n");
    enter(on, 2, "n");
    enter(on, 3, "n");
    const auto waits = await(on, 2);
    const auto last = await(on, 3);
    // A token that nobody uses for a second is forgotten.
    on_.run_for(2'500ms);
    EXPECT_FALSE(waits->granted);
    leave(on, 1);
    EXPECT_TRUE(comes_true([&] { return waits->granted; })) << store_->trouble();
    on_.run_for(2'500ms);
    EXPECT_FALSE(last->granted);
    leave(on, 2);
    EXPECT_TRUE(comes_true([&] { return last->granted; })) << store_->trouble();
}

TEST_P(EtcdWaiting, APausedLeaderChangesNeitherHolderNorOrder) {
    etcd_settings three;
    three.nodes = 3;
    start(three);
    if (IsSkipped()) return;
    const auto on = open();
    enter(on, 1, "n");
    const auto holds = watch_own(on, 1);
    enter(on, 2, "n");
    const auto second = await(on, 2);
    const auto paused = server_->leader();
    server_->signal(SIGSTOP, paused);
    // As a session does: what may have been carried out is asked for again.
    const claim what{{3}, on.id, {{"n", claim_kind::exclusive, 0}}, "", false};
    ASSERT_TRUE(comes_true([&] {
        return !try_to<place>([&](deadline by, completion<place> f) {
            return store_->enter(what, by, std::move(f));
        });
    }));
    const auto third = await(on, 3);
    EXPECT_FALSE(second->granted);
    leave(on, 1);
    ASSERT_TRUE(comes_true([&] { return second->granted; }));
    server_->signal(SIGCONT, paused);
    // The old one takes itself for the leader for a moment.
    on_.run_for(500ms);
    EXPECT_FALSE(third->granted);
    EXPECT_FALSE(verify(on, 2));
    leave(on, 2);
    ASSERT_TRUE(comes_true([&] { return third->granted; }));
    EXPECT_GT(third->token, second->token);
}

// A session by itself, as the library has it.
TEST_P(EtcdWaiting, AnEnterThatLandsAfterItsCallerGaveUpIsFoundAndRemoved) {
    etcd_settings three;
    three.nodes = 3;
    start(three);
    if (IsSkipped()) return;
    // At a follower alone, which hands on to the leader.
    const auto leads = server_->leader();
    const auto port = server_->port((leads + 1) % 3);
    store_ = std::make_unique<etcd_locks>(
        on_,
        etcd::make_etcd_client(
            on_, etcd::make_grpc_transport(on_, {stream_address::tcp("127.0.0.1", port)}, {}), {}));
    session_settings settings;
    settings.ttl = 6s;
    settings.request_timeout = 300ms;
    settings.read_clocks = [] {
        return clocks{boot_clock::now(), std::chrono::system_clock::now()};
    };
    const auto session = std::make_shared<session_core>(on_, *store_, settings);
    std::optional<std::error_code> opened;
    session->open(on_.now() + 10s, [&](std::error_code e) { opened = e; });
    ASSERT_TRUE(comes_true([&] { return opened.has_value(); }));
    ASSERT_FALSE(*opened);
    bool landed = false;
    for (int attempt = 0; attempt < 5 && !landed; ++attempt) {
        lock_claim lock(session);
        std::optional<std::error_code> answer;
        lock_request what;
        what.parts = {{"n", claim_kind::exclusive, 0}};
        what.only_if_free = true;
        what.by = on_.now() + 300ms;
        // Shorter than it takes the others to elect another one.
        server_->signal(SIGSTOP, leads);
        lock.acquire(what, [&](std::error_code e, const grant&) { answer = e; });
        on_.run_until([&] { return answer.has_value(); }, 2s);
        server_->signal(SIGCONT, leads);
        ASSERT_TRUE(answer.has_value());
        ASSERT_EQ(*answer, errc::unavailable) << "it cannot know";
        for (const auto end = on_.now() + 2s; on_.now() < end && !landed;) {
            landed = server_->must({"get", "n/", "--prefix", "--keys-only"}).find("n/") == 0;
            on_.run_for(1ms);
        }
    }
    ASSERT_TRUE(landed) << "no attempt was carried out late";
    EXPECT_TRUE(comes_true([&] {
        return server_->must({"get", "n/", "--prefix", "--keys-only"}).find("n/") != 0;
    })) << "it stays under a lease that is renewed";
    EXPECT_FALSE(session->ended());
    EXPECT_TRUE(comes_true([&] { return session->debts() == 0; }));
    std::optional<std::error_code> closed;
    session->close(on_.now() + 2s, [&](std::error_code e) { closed = e; });
    EXPECT_TRUE(comes_true([&] { return closed.has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Servers, EtcdWaiting,
                         ::testing::ValuesIn(etcd_kinds({"etcd", "etcd-3.4"})),
                         [](const auto& one) { return version_of(one.param); });

}  // namespace
}  // namespace trinco::detail::test
