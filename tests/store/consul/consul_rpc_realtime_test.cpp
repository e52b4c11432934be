// The rpc against real servers. Without Consul the tests are skipped; `make servers` builds it.
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "consul_rpc_fixture.hpp"

namespace trinco::detail::test {
namespace {

// ---- requests -----------------------------------------------------------------------------------

TEST_F(ConsulRpc, each_operation_does_what_it_says_or_says_why_not) {
    START_OR_SKIP();
    const auto session = client_->create().value;
    const auto other = client_->create().value;
    ASSERT_FALSE(session.empty()) << client_->trouble();
    auto lock = doing(verb_t::lock, "a/k", session);
    lock.value = std::string("\0\xff\n\"", 4);
    lock.flags = std::numeric_limits<std::uint64_t>::max() - 1;
    const auto taken = done({lock, doing(verb_t::get, "a/k")});
    ASSERT_EQ(taken.rows.size(), 2U);
    const auto row = taken.rows[1];
    EXPECT_EQ(row.value, lock.value);
    EXPECT_EQ(row.flags, lock.flags);
    EXPECT_EQ(row.session, session);
    EXPECT_EQ(row.lock_index, 1U);
    EXPECT_GT(row.modify_index, 0U);
    EXPECT_EQ(client_->read({"a/k", false, true}).value.rows.at(0), row);

    EXPECT_EQ(refused({doing(verb_t::lock, "a/k", other)}), refusal_t::held);
    EXPECT_EQ(refused({doing(verb_t::lock, "a/k", "11111111-2222-3333-4444-555555555555")}),
              refusal_t::no_session);
    EXPECT_EQ(refused({doing(verb_t::unlock, "a/k", other)}), refusal_t::session);
    EXPECT_EQ(refused({doing(verb_t::check_session, "a/k", other)}), refusal_t::session);
    EXPECT_EQ(refused({doing(verb_t::check_session, "none", other)}), refusal_t::session);
    EXPECT_EQ(refused({doing(verb_t::check_not_exists, "a/k")}), refusal_t::index);
    EXPECT_EQ(refused({doing(verb_t::get, "none")}), refusal_t::absent);
    auto at = doing(verb_t::check_index, "a/k");
    at.index = row.modify_index + 1;
    EXPECT_EQ(refused({at}), refusal_t::index);
    at.verb = verb_t::cas;
    EXPECT_EQ(refused({at}), refusal_t::index);
    at.verb = verb_t::erase_cas;
    EXPECT_EQ(refused({at}), refusal_t::index);
    // None of several when one is refused.
    EXPECT_EQ(refused({doing(verb_t::set, "b/k"), doing(verb_t::get, "none")}), refusal_t::absent);
    EXPECT_TRUE(client_->keys("b/").value.empty());

    at.index = row.modify_index;
    auto check = at;
    check.verb = verb_t::check_index;
    done({check, doing(verb_t::check_session, "a/k", session),
          doing(verb_t::check_not_exists, "none"), doing(verb_t::set, "a/j")});
    EXPECT_EQ(client_->keys("a/").value, (std::vector<std::string>{"a/j", "a/k"}));
    EXPECT_EQ(done({doing(verb_t::get_tree, "a/")}).rows.size(), 2U);
    EXPECT_TRUE(done({doing(verb_t::get_tree, "none/")}).rows.empty());
    done({doing(verb_t::unlock, "a/k", session)});
    EXPECT_EQ(client_->read({"a/k", false, false}).value.rows.at(0).session, "");
    done({doing(verb_t::erase, "a/k"), doing(verb_t::erase, "none")});
    const auto none = client_->read({"a/k", false, false});
    EXPECT_FALSE(none.error) << client_->trouble();
    EXPECT_TRUE(none.value.rows.empty());
    EXPECT_GE(none.value.index, 1U);
}

TEST_F(ConsulRpc, a_key_is_named_by_any_words) {
    START_OR_SKIP();
    for (const auto* key : {"trinco:records/a b", "a?b#c%d&e=f", "\xc3\xa4/\"x\""}) {
        EXPECT_FALSE(client_->set(key, "v").error) << key << client_->trouble();
        EXPECT_EQ(client_->read({key, false, false}).value.rows.at(0).key, key);
    }
}

TEST_F(ConsulRpc, sessions_are_made_renewed_asked_about_and_ended) {
    START_OR_SKIP();
    const auto made = client_->create(15s, 3s);
    ASSERT_FALSE(made.error) << client_->trouble();
    EXPECT_EQ(client_->renew(made.value).value, 15s);
    const auto facts = client_->facts(made.value).value;
    ASSERT_TRUE(facts);
    EXPECT_EQ(facts->name, "test");
    EXPECT_EQ(facts->ttl, 15s);
    EXPECT_EQ(facts->lock_delay, 3s);
    EXPECT_TRUE(facts->erases);
    EXPECT_FALSE(facts->node.empty());
    EXPECT_EQ(client_->sessions().value.size(), 1U);
    // Its end deletes what it held, and keeps it from others for a while.
    done({doing(verb_t::lock, "k", made.value)});
    EXPECT_FALSE(client_->destroy(made.value).error);
    EXPECT_TRUE(client_->read({"k", false, true}).value.rows.empty());
    const auto next = client_->create().value;
    EXPECT_EQ(refused({doing(verb_t::lock, "k", next)}), refusal_t::lock_delay);
    EXPECT_EQ(client_->renew(made.value).error, errc::lost);
    EXPECT_FALSE(client_->destroy(made.value).error) << "there is none any more";
    EXPECT_FALSE(client_->facts(made.value).value);
    EXPECT_EQ(client_->create(100'000s).error, errc::invalid);
    EXPECT_NE(client_->trouble().find("Invalid Session TTL"), std::string::npos);
}

TEST_F(ConsulRpc, too_much_is_busy) {
    START_OR_SKIP();
    EXPECT_EQ(client_->set("k", std::string(600'000, 'x')).error, errc::busy);
    EXPECT_NE(client_->trouble().find("too large"), std::string::npos) << client_->trouble();
    std::vector<operation> many(129, doing(verb_t::set, "k"));
    EXPECT_EQ(client_->txn(many).error, errc::busy);
    many.pop_back();
    EXPECT_FALSE(client_->txn(many).error) << client_->trouble();
    for (int i = 0; i < 9; ++i) {
        ASSERT_FALSE(client_->set("big/" + std::to_string(i), std::string(390'000, 'x')).error);
    }
    EXPECT_EQ(client_->read({"big/", true, false}).error, errc::busy);
}

// ---- watches ------------------------------------------------------------------------------------

TEST_F(ConsulRpc, a_watch_tells_each_last_state) {
    START_OR_SKIP();
    const auto one = client_->watch({"w/k", false, false});
    const auto tree = client_->watch({"w/", true, true});
    ASSERT_TRUE(comes_true([&] { return one->news().size() == 1 && tree->news().size() == 1; }));
    EXPECT_TRUE(one->news()[0].rows.empty());
    for (int i = 0; i < 20; ++i) ASSERT_FALSE(client_->set("w/k", std::to_string(i)).error);
    EXPECT_TRUE(comes_true([&] { return one->last() == "19"; }, 5s));
    EXPECT_TRUE(comes_true([&] { return tree->last() == "19"; }));
    // Who waited long is told at once: of ten times, for the machine may have other things to do.
    auto fastest = boot_clock::duration::max();
    for (int i = 0; i < 10 && fastest >= 100ms; ++i) {
        const auto value = "x" + std::to_string(i);
        ::poll(nullptr, 0, 150);
        fastest = std::min(fastest, took([&] {
                               EXPECT_FALSE(client_->set("w/k", value).error);
                               EXPECT_TRUE(comes_true([&] { return one->last() == value; }));
                           }));
    }
    EXPECT_LT(fastest, 100ms);
    done({doing(verb_t::erase, "w/k")});
    EXPECT_TRUE(comes_true([&] { return !one->last() && !tree->last(); }));
    EXPECT_FALSE(one->over());
    const auto told = one->news().size();
    ASSERT_FALSE(client_->set("other", "1").error);
    ::poll(nullptr, 0, 300);
    EXPECT_EQ(one->news().size(), told) << "the change of another key is no news";
}

TEST_F(ConsulRpc, more_watches_than_an_agent_takes_connections_do_not_keep_out_requests) {
    START_OR_SKIP({.program = {}, .connections = 200});
    std::vector<std::shared_ptr<consul_rpc_client::heard>> all;
    for (int i = 0; i < 300; ++i) {
        all.push_back(client_->watch({"w/" + std::to_string(i), false, false}));
    }
    const auto session = client_->create().value;
    for (int i = 0; i < 20; ++i) EXPECT_FALSE(client_->renew(session, 5s).error);
    EXPECT_TRUE(comes_true([&] {
        for (const auto& one : all) {
            if (one->news().empty()) return false;
        }
        return true;
    })) << client_->trouble();
    ASSERT_FALSE(client_->set("w/299", "x").error);
    EXPECT_TRUE(comes_true([&] { return all[299]->last() == "x"; }));
    for (const auto& one : all) EXPECT_FALSE(one->over());
}

TEST_F(ConsulRpc, where_all_connections_are_taken_the_limit_is_named_and_what_is_connected_works) {
    START_OR_SKIP({.program = {}, .connections = 200});
    const auto session = client_->create().value;
    std::vector<int> taken;
    const auto take = [&](int many) {
        for (int i = 0; i < many; ++i) {
            const int s = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            const auto at = loopback(servers_->port());
            EXPECT_EQ(::connect(s, reinterpret_cast<const ::sockaddr*>(&at), sizeof at), 0);
            taken.push_back(s);
        }
    };
    take(200);
    EXPECT_EQ(client_->renew(session, 1s).value, 15s) << "by the connection that it has";
    client_.reset();
    ::poll(nullptr, 0, 200);  // the agent sees it gone
    take(10);
    connect();
    EXPECT_TRUE(client_->set("k", "v", 1s).error);
    EXPECT_NE(client_->trouble().find("http_max_conns_per_client"), std::string::npos)
        << client_->trouble();
    for (const int s : taken) ::close(s);
    EXPECT_FALSE(client_->set("k", "v").error) << client_->trouble();
}

}  // namespace
}  // namespace trinco::detail::test
