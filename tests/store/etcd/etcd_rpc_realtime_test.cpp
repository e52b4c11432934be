// The rpc against real servers, 3.5 and 3.4. Without servers the tests are skipped; `make servers`
// fetches both.
#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "etcd_rpc_fixture.hpp"

namespace trinco::detail::test {
namespace {

using namespace etcd;

comparison absent(const key_range& keys) {
    return {keys, comparison::target_t::create_revision, comparison::is_t::equal, 0};
}

// ---- requests -----------------------------------------------------------------------------------

TEST_P(EtcdRpc, a_transaction_reads_writes_and_compares_ranges) {
    START_OR_SKIP();
    const auto queue = all_under("a/");
    const txn_request enter{{absent(queue)}, {put_request{"a/1", "me", 0}}, {range_request{queue}}};
    const auto first = client_->txn(enter);
    ASSERT_FALSE(first.error) << first.error.message() << client_->trouble();
    EXPECT_TRUE(first.value.succeeded);
    EXPECT_GT(first.value.revision, 0);
    const auto second = client_->txn(enter);
    ASSERT_FALSE(second.error);
    EXPECT_FALSE(second.value.succeeded);
    const auto& seen = second.value.replies.at(0);
    ASSERT_EQ(seen.kvs.size(), 1U);
    EXPECT_EQ(seen.kvs[0],
              (key_value{"a/1", "me", first.value.revision, first.value.revision, 1, 0}));
    EXPECT_EQ(seen.count, 1);
    const auto gone = client_->txn({{}, {erase_request{queue}}, {}});
    EXPECT_EQ(gone.value.replies.at(0).erased, 1);
}

TEST_P(EtcdRpc, a_range_is_sorted_bounded_and_without_values) {
    START_OR_SKIP();
    for (const auto* key : {"q/c", "q/a", "q/b"}) ASSERT_FALSE(client_->put(key, "v").error);
    range_request newest;
    newest.keys = all_under("q/");
    newest.limit = 2;
    newest.order = range_request::order_t::descend;
    newest.by = range_request::by_t::create_revision;
    newest.keys_only = true;
    auto answer = client_->txn({{}, {newest}, {}});
    ASSERT_FALSE(answer.error);
    auto& reply = answer.value.replies.at(0);
    ASSERT_EQ(reply.kvs.size(), 2U);
    EXPECT_EQ(reply.kvs[0].key, "q/b");
    EXPECT_EQ(reply.kvs[1].key, "q/a");
    EXPECT_EQ(reply.kvs[0].value, "");
    EXPECT_TRUE(reply.more);
    EXPECT_EQ(reply.count, 3);
    newest.max_create_revision = reply.kvs[1].create_revision;
    answer = client_->txn({{}, {newest}, {}});
    EXPECT_EQ(answer.value.replies.at(0).kvs.at(0).key, "q/a");
    newest.count_only = true;
    answer = client_->txn({{}, {newest}, {}});
    EXPECT_TRUE(answer.value.replies.at(0).kvs.empty());
}

TEST_P(EtcdRpc, a_lease_is_granted_renewed_asked_about_and_revoked) {
    START_OR_SKIP();
    const auto lease = client_->grant(7s);
    ASSERT_FALSE(lease.error);
    EXPECT_GT(lease.value.id, 0);
    EXPECT_EQ(lease.value.ttl, 7s);
    EXPECT_EQ(client_->keep_alive(lease.value.id).value, 7s);
    ASSERT_FALSE(client_->put("k", "v", lease.value.id).error);
    const auto facts = client_->facts(lease.value.id);
    EXPECT_EQ(facts.value.granted_ttl, 7s);
    EXPECT_EQ(facts.value.keys, std::vector<std::string>{"k"});
    EXPECT_FALSE(client_->revoke(lease.value.id).error);
    EXPECT_FALSE(client_->revoke(lease.value.id).error) << "there is none to end any more";
    EXPECT_EQ(client_->keep_alive(lease.value.id).error, errc::lost);
    EXPECT_EQ(client_->put("k", "v", lease.value.id).error, errc::lost);
    EXPECT_LT(client_->facts(lease.value.id).value.ttl, 0s);
    EXPECT_TRUE(client_->get({"k", ""}).value.replies.at(0).kvs.empty());
}

TEST_P(EtcdRpc, a_message_that_is_too_large_is_refused_either_way) {
    START_OR_SKIP();
    const std::string large(1'000'000, 'x');
    EXPECT_EQ(client_->put("k", std::string(2'000'000, 'x')).error, errc::busy);
    for (int i = 0; i < 5; ++i) ASSERT_FALSE(client_->put("big/" + std::to_string(i), large).error);
    EXPECT_EQ(client_->get(all_under("big/"), 2s).error, errc::busy);
    EXPECT_EQ(client_->get({"big/1", ""}).value.replies.at(0).kvs.at(0).value, large);
    EXPECT_EQ(client_->put("", "v").error, errc::invalid);
}

TEST_P(EtcdRpc, the_cluster_tells_of_itself) {
    START_OR_SKIP();
    const auto status = client_->status();
    ASSERT_EQ(status.value.size(), 1U);
    EXPECT_EQ(status.value[0].endpoint, servers_->address());
    EXPECT_EQ(status.value[0].version.substr(0, 3), "3." + version_of(GetParam()).substr(3));
    EXPECT_EQ(status.value[0].leader, status.value[0].member);
    EXPECT_GT(status.value[0].size, 0);
    EXPECT_GT(status.value[0].size_in_use, 0);
    EXPECT_TRUE(status.value[0].errors.empty());
    const auto members = client_->members();
    ASSERT_EQ(members.value.size(), 1U);
    EXPECT_EQ(members.value[0].name, "n0");
    EXPECT_EQ(members.value[0].client_urls.at(0), "http://" + servers_->address());
    servers_->kill();
    const auto gone = client_->status(2s);
    ASSERT_EQ(gone.value.size(), 1U);
    EXPECT_EQ(gone.value[0].endpoint, servers_->address());
    EXPECT_EQ(gone.value[0].errors.size(), 1U);
}

TEST_P(EtcdRpc, many_requests_of_two_threads_are_each_answered) {
    START_OR_SKIP();
    std::atomic<int> good{0};
    const auto load = [&](const std::string& name) {
        std::vector<awaited<txn_reply>> answers(500);
        std::vector<op> interests(answers.size());
        for (std::size_t i = 0; i < answers.size(); ++i) {
            client_->on().post([&, i, done = answers[i].next()]() mutable {
                interests[i] =
                    client_->rpc().txn({{}, {put_request{name + std::to_string(i), "v", 0}}, {}},
                                       client_->on().now() + 10s, std::move(done));
            });
        }
        for (auto& one : answers) good += one.wait() && !one.error() ? 1 : 0;
        run_and_wait(client_->on(), patience, [&] { interests.clear(); });
    };
    std::thread other([&] { load("b/"); });
    load("a/");
    other.join();
    EXPECT_EQ(good, 1'000);
    EXPECT_EQ(client_->get(all_under("a/")).value.replies.at(0).count, 500);
    EXPECT_EQ(client_->get(all_under("b/")).value.replies.at(0).count, 500);
}

TEST_P(EtcdRpc, a_request_that_nobody_wants_any_more_is_not_answered) {
    START_OR_SKIP();
    servers_->signal(SIGSTOP);
    awaited<txn_reply> answer;
    op interest;
    client_->on().post([&, done = answer.next()]() mutable {
        interest = client_->rpc().txn({{}, {put_request{"k", "v", 0}}, {}},
                                      client_->on().now() + 300ms, std::move(done));
    });
    run_and_wait(client_->on(), patience, [&] { interest.cancel(); });
    EXPECT_FALSE(answer.wait(400ms));
    servers_->signal(SIGCONT);
    EXPECT_FALSE(client_->put("k", "w").error);
}

// ---- watches ------------------------------------------------------------------------------------

std::vector<std::string> keys_of(const std::vector<watch_event>& events) {
    std::vector<std::string> all;
    for (const auto& e : events) all.push_back((e.erased ? "-" : "+") + e.now.key);
    return all;
}

TEST_P(EtcdRpc, a_watch_tells_what_it_was_asked_for_in_order) {
    START_OR_SKIP();
    const auto begin = client_->put("w/0", "v").value.revision;
    const auto all = client_->watch({all_under("w/"), begin});
    const auto erasures = client_->watch({all_under("w/"), begin, false, true});
    const auto one = client_->watch({{"w/1", ""}, begin});
    ASSERT_FALSE(client_->put("w/1", "v").error);
    ASSERT_FALSE(client_->put("x", "v").error);
    ASSERT_FALSE(client_->txn({{}, {erase_request{all_under("w/")}}, {}}).error);
    EXPECT_TRUE(comes_true([&] { return all->count() == 4 && erasures->count() == 2; }));
    EXPECT_TRUE(comes_true([&] { return one->count() == 2; }));
    EXPECT_EQ(keys_of(all->events()), (std::vector<std::string>{"+w/0", "+w/1", "-w/0", "-w/1"}));
    EXPECT_EQ(keys_of(erasures->events()), (std::vector<std::string>{"-w/0", "-w/1"}));
    EXPECT_EQ(keys_of(one->events()), (std::vector<std::string>{"+w/1", "-w/1"}));
    EXPECT_EQ(all->events()[3].now.mod_revision, begin + 3);
}

TEST_P(EtcdRpc, a_watch_goes_on_where_it_was_when_the_server_comes_back) {
    START_OR_SKIP();
    const auto watch = client_->watch({all_under("w/"), 0});
    EXPECT_TRUE(comes_true([&] {
        EXPECT_FALSE(client_->put("w/0", "v").error);
        return watch->count() > 0;
    }));
    EXPECT_TRUE(comes_true([&] { return !client_->put("end", "v").error; }));
    const auto before = watch->count();
    servers_->kill();
    servers_->start();
    // Before the client is back: by etcdctl.
    servers_->must({"put", "w/1", "v"});
    servers_->must({"del", "w/1"});
    EXPECT_TRUE(comes_true([&] { return watch->count() >= before + 2; }));
    ASSERT_FALSE(client_->put("w/2", "v").error);
    EXPECT_TRUE(comes_true([&] { return watch->count() >= before + 3; }));
    auto keys = keys_of(watch->events());
    keys.erase(keys.begin(), keys.begin() + static_cast<std::ptrdiff_t>(before));
    EXPECT_EQ(keys, (std::vector<std::string>{"+w/1", "-w/1", "+w/2"}));
    EXPECT_FALSE(watch->over());
}

TEST_P(EtcdRpc, what_is_compacted_away_is_said) {
    START_OR_SKIP();
    const auto old = client_->put("w/0", "v").value.revision;
    for (int i = 0; i < 5; ++i) ASSERT_FALSE(client_->put("w/0", "v").error);
    const auto quiet = client_->watch({{"nothing", ""}, 0});
    const auto heard = client_->watch({all_under("w/"), old + 5});
    ASSERT_TRUE(comes_true([&] { return heard->count() == 1; }));
    servers_->must({"compact", std::to_string(old + 4)});
    const auto too_old = client_->watch({all_under("w/"), old});
    EXPECT_TRUE(comes_true([&] { return too_old->over() == errc::conflict; }));
    EXPECT_EQ(too_old->count(), 0U);
    // A quiet one, whose place goes, learns it when it has to begin anew; one that heard goes on.
    ASSERT_FALSE(client_->put("w/0", "v").error);
    const auto last = client_->put("w/0", "v").value.revision;
    ASSERT_TRUE(comes_true([&] { return heard->count() == 3; }));
    servers_->must({"compact", std::to_string(last)});
    servers_->kill();
    servers_->start();
    EXPECT_TRUE(comes_true([&] { return quiet->over() == errc::conflict; }));
    ASSERT_FALSE(client_->put("w/0", "v").error);
    EXPECT_TRUE(comes_true([&] { return heard->count() == 4; }));
    EXPECT_FALSE(heard->over());
}

TEST_P(EtcdRpc, two_thousand_watches_and_renewals_share_their_streams) {
    START_OR_SKIP();
    constexpr std::size_t n = 2'000;
    const auto descriptors = open_descriptors();
    std::vector<std::shared_ptr<etcd_rpc_client::heard>> all;
    const auto begin = client_->put("begin", "v").value.revision;
    for (std::size_t i = 0; i < n; ++i) {
        all.push_back(client_->watch({{"w/" + std::to_string(i), ""}, begin}));
    }
    const auto lease = client_->grant(60s).value.id;
    std::vector<awaited<std::chrono::seconds>> renewals(n);
    std::vector<op> interests(n);
    for (std::size_t i = 0; i < n; ++i) {
        client_->on().post([&, i, done = renewals[i].next()]() mutable {
            interests[i] =
                client_->rpc().keep_alive(lease, client_->on().now() + 20s, std::move(done));
        });
    }
    txn_request many;
    for (std::size_t i = 0; i < n; i += 100) {
        many.success.clear();
        for (std::size_t k = i; k < i + 100; ++k) {
            many.success.push_back(put_request{"w/" + std::to_string(k), "v", 0});
        }
        ASSERT_FALSE(client_->txn(many).error);
    }
    for (auto& one : renewals) EXPECT_TRUE(one.wait() && !one.error());
    run_and_wait(client_->on(), patience, [&] { interests.clear(); });
    EXPECT_TRUE(comes_true([&] {
        return std::all_of(all.begin(), all.end(), [](const auto& w) { return w->count() == 1; });
    }));
    EXPECT_LE(open_descriptors(), descriptors + 10) << "a connection each would be thousands";
}

// Also of the tests of etcd_rpc_faults_realtime_test.cpp.
INSTANTIATE_TEST_SUITE_P(Real, EtcdRpc, testing::ValuesIn(etcd_kinds({"etcd", "etcd-3.4"})),
                         [](const auto& of) { return version_of(of.param); });

}  // namespace
}  // namespace trinco::detail::test
