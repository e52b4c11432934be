// Locks on real servers that fail: a leader that is killed, a restart and a compaction during a
// wait, a full database. Without servers the tests are skipped.
#include <algorithm>

#include "etcd_real_store.hpp"

namespace trinco::detail::test {
namespace {

class EtcdCluster : public EtcdStore {
protected:
    std::optional<std::uint64_t> token_of(const lease& on, std::uint64_t id) {
        std::optional<grant> got;
        bool answered = false;
        const auto interest =
            store_->verify(on.id, {id}, on_.now() + 5s, [&](std::error_code error, grant g) {
                answered = true;
                if (!error) got = std::move(g);
            });
        EXPECT_TRUE(comes_true([&] { return answered; }));
        return got ? std::optional(got->tokens.at(0)) : std::nullopt;
    }
    std::error_code write(const std::string& key, const std::string& value) {
        const std::vector<change> changes{{key, value}};
        return try_to<std::uint64_t>([&](deadline by, completion<std::uint64_t> f) {
            return store_->write({}, {}, changes, 0s, by, std::move(f));
        });
    }
    std::error_code try_to_enter(const lease& on, std::uint64_t id, const std::string& name) {
        const claim what{{id}, on.id, {{name, claim_kind::exclusive, 0}}, "", false};
        return try_to<place>([&](deadline by, completion<place> f) {
            return store_->enter(what, by, std::move(f));
        });
    }
};

TEST_P(EtcdCluster, AKilledLeaderChangesNeitherHolderNorOrder) {
    etcd_settings three;
    three.nodes = 3;
    start(three);
    if (IsSkipped()) return;
    const auto holder = open();
    enter(holder, 1, "n");
    const auto token = token_of(holder, 1);
    ASSERT_TRUE(token.has_value());
    bool gone = false;
    const auto own = store_->on_gone(holder.id, {1}, [&](std::error_code) { gone = true; });
    std::vector<lease> leases;
    std::vector<std::unique_ptr<waiting>> waits;
    for (int i = 0; i < 3; ++i) {
        leases.push_back(open());
        enter(leases.back(), 1, "n");
        waits.push_back(await(leases.back(), 1));
    }
    server_->kill(server_->leader());
    std::optional<std::uint64_t> after;
    ASSERT_TRUE(comes_true([&] { return (after = token_of(holder, 1)).has_value(); }));
    EXPECT_EQ(after, token);
    EXPECT_FALSE(gone);
    leave(holder, 1);
    std::uint64_t before = *token;
    for (std::size_t i = 0; i < waits.size(); ++i) {
        ASSERT_TRUE(comes_true([&] { return waits[i]->granted; })) << i;
        EXPECT_GT(waits[i]->token, before);
        before = waits[i]->token;
        on_.run_for(100ms);
        for (auto k = i + 1; k < waits.size(); ++k) EXPECT_FALSE(waits[k]->granted) << k;
        leave(leases[i], 1);
    }
}

TEST_P(EtcdCluster, ARestartAndACompactionDuringAWait) {
    start();
    if (IsSkipped()) return;
    const auto on = open();
    enter(on, 1, "n");
    enter(on, 2, "n");
    const auto waits = await(on, 2);
    bool gone = false;
    const auto own = store_->on_gone(on.id, {1}, [&](std::error_code) { gone = true; });
    on_.run_for(200ms);
    for (int i = 0; i < 20; ++i) ASSERT_FALSE(write("other", std::to_string(i)));
    const auto revision =
        ask<std::optional<record>>([&](deadline by, completion<std::optional<record>> f) {
            return store_->read("other", by, std::move(f));
        });
    server_->must({"compact", std::to_string(revision->revision)});
    server_->kill();
    server_->start();
    ASSERT_TRUE(comes_true([&] { return token_of(on, 1).has_value(); }));
    EXPECT_FALSE(waits->granted);
    EXPECT_FALSE(gone);
    leave(on, 1);
    EXPECT_TRUE(comes_true([&] { return waits->granted; }));
    EXPECT_TRUE(comes_true([&] { return gone; })) << "what watches its own entry is told";
}

TEST_P(EtcdCluster, AFullDatabaseRefusesNewcomersAndLetsHoldersGo) {
    etcd_settings small;
    small.more = {"--quota-backend-bytes=2000000"};
    start(small);
    if (IsSkipped()) return;
    const auto on = open();
    enter(on, 1, "n");
    const std::string much(100'000, 'x');
    std::error_code full;
    for (int i = 0; i < 2'000 && !full; ++i) full = write("fill/" + std::to_string(i % 4), much);
    EXPECT_EQ(full, errc::unknown_outcome) << "the one that fills it is carried out";
    EXPECT_EQ(try_to_enter(on, 2, "m"), errc::busy);
    EXPECT_TRUE(token_of(on, 1).has_value());
    leave(on, 1);
    EXPECT_FALSE(token_of(on, 1).has_value());
    const auto now =
        ask<std::optional<record>>([&](deadline by, completion<std::optional<record>> f) {
            return store_->read("fill/0", by, std::move(f));
        });
    server_->must({"compact", std::to_string(now->revision)});
    server_->must({"defrag"});
    server_->must({"alarm", "disarm"});
    EXPECT_TRUE(comes_true([&] { return !try_to_enter(on, 3, "m"); }));
}

INSTANTIATE_TEST_SUITE_P(Servers, EtcdCluster,
                         ::testing::ValuesIn(etcd_kinds({"etcd", "etcd-3.4"})),
                         [](const auto& one) { return version_of(one.param); });

}  // namespace
}  // namespace trinco::detail::test
