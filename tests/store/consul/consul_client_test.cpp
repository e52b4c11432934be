// The rpc over addresses that say what a test lets them say: the way, repeating, bounds.
#include "store/consul/consul_client.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "consul_client_scene.hpp"
#include "store/consul/consul_requests.hpp"

namespace trinco::detail::test {
namespace {

constexpr const char* txn = "/v1/txn";

// ---- the way ------------------------------------------------------------------------------------

TEST_F(ConsulClient, an_address_that_does_not_answer_costs_200_ms) {
    make(2);
    by_->leads = false;
    const auto change = set();
    run(199ms);
    ASSERT_EQ(by_->waiting().size(), 1U);
    const auto first = one("/v1/status/leader")->host;
    run(10ms);
    const auto probes = by_->waiting("/v1/status/leader");
    ASSERT_EQ(probes.size(), 2U);
    EXPECT_NE(probes[1]->host, first);
    by_->answer(probes[1], 200, "\"10.0.0.1:8300\"");
    run();
    EXPECT_FALSE(probes[0]->waits()) << "nobody wants to know any more";
    ASSERT_EQ(by_->waiting(txn).size(), 1U);
    EXPECT_EQ(one(txn)->host, probes[1]->host);
    answer(txn, 200, a_txn);
    EXPECT_FALSE(change->error.value());
    EXPECT_TRUE(change->value.applied);
}

TEST_F(ConsulClient, an_address_without_a_leader_is_not_used) {
    make(2);
    by_->leads = false;
    const auto change = set();
    run();
    const auto without = one("/v1/status/leader")->host;
    answer("/v1/status/leader", 200, "\"\"");
    EXPECT_TRUE(by_->waiting(txn).empty());
    EXPECT_NE(rpc_->trouble().find(without + ":8500: its cluster has no leader"),
              std::string::npos);
    answer("/v1/status/leader", 200, "\"10.0.0.1:8300\"");
    ASSERT_FALSE(by_->waiting(txn).empty());
    EXPECT_NE(one(txn)->host, without);
    EXPECT_EQ(rpc_->trouble(), "");
}

TEST_F(ConsulClient, what_all_say_and_will_say_again_is_said_at_once) {
    make(2);
    by_->leads = false;
    const auto change = set(10s);
    const auto looking = watch();
    for (int i = 0; i < 2; ++i) {
        run();
        answer("/v1/status/leader", 200, "<html>");
    }
    EXPECT_EQ(change->error.value(), errc::invalid);
    EXPECT_EQ(looking->over, errc::invalid);
    EXPECT_NE(rpc_->why(*change->error).find("not as Consul does"), std::string::npos);
}

TEST_F(ConsulClient, where_nobody_is_the_deadline_counts_and_the_reason_is_known) {
    make(2);
    by_->doors = {{"h0", door::refuse}, {"h1", door::refuse}};
    const auto change = set(3s);
    run(2'999ms);
    EXPECT_FALSE(change->error);
    run(2ms);
    EXPECT_EQ(change->error.value(), errc::unavailable);
    EXPECT_NE(rpc_->why(*change->error).find("is Consul running there?"), std::string::npos);
    by_->doors.clear();
    const auto next = set(3s);
    run(50ms);
    answer(txn, 200, a_txn);
    EXPECT_FALSE(next->error.value()) << "a wish is tried at once";
    EXPECT_EQ(rpc_->trouble(), "");
}

TEST_F(ConsulClient, a_read_goes_elsewhere_at_half_of_its_time_a_change_does_not) {
    make(2);
    const auto change = set(4s);
    const auto reading = read({"k", false, false}, 4s);
    run();
    ASSERT_EQ(by_->waiting(txn).size(), 1U);
    const auto silent = one(txn)->host;
    run(2s);
    EXPECT_EQ(one(txn)->host, silent) << "the change still waits there";
    ASSERT_EQ(by_->waiting("/v1/kv/k").size(), 1U);
    EXPECT_NE(one("/v1/kv/k")->host, silent);
    answer("/v1/kv/k", 404, "", index(3));
    EXPECT_FALSE(reading->error.value());
    EXPECT_EQ(reading->value.index, 3U);
    run(2s);
    EXPECT_EQ(change->error.value(), errc::unknown_outcome);
    EXPECT_EQ(change->at, by_->all.front()->at + 4s - 1ms) << "not a turn too late";
    EXPECT_EQ(by_->waiting(txn).size(), 0U);
}

TEST_F(ConsulClient, an_address_that_answers_others_only_takes_its_time) {
    make(2);
    const auto change = set(4s);
    run(1s);
    const auto reading = read();
    run();
    answer("/v1/kv/k", 404, "", index(3));
    run(2s);
    const auto next = read();
    run();
    EXPECT_EQ(one("/v1/kv/k")->host, one(txn)->host);
}

// ---- repeating ----------------------------------------------------------------------------------

TEST_F(ConsulClient, a_change_is_sent_again_only_when_it_was_not_carried_out) {
    make(1);
    const auto first = set();
    const auto second = set();
    run();
    ASSERT_EQ(by_->waiting(txn).size(), 2U);
    answer(txn, 500, "No cluster leader");
    answer(txn, 500, "rpc error making call: EOF");
    EXPECT_EQ(second->error.value(), errc::unknown_outcome);
    run(300ms);
    EXPECT_FALSE(first->error);
    ASSERT_EQ(by_->waiting(txn).size(), 1U);
    by_->doors["h0"] = door::refuse;
    one(txn)->wire->reset();
    run();
    EXPECT_EQ(first->error.value(), errc::unknown_outcome);
    EXPECT_NE(rpc_->why(*first->error).find("h0:8500: "), std::string::npos);
}

TEST_F(ConsulClient, a_change_that_was_not_sent_is_sent_when_it_can_be) {
    make(1);
    const auto reading = read();
    run();
    answer("/v1/kv/k", 404, "", index(1));
    run(20s);  // no connection is kept so long
    by_->doors["h0"] = door::refuse;
    const auto change = set();
    run(300ms);
    EXPECT_FALSE(change->error);
    by_->doors.clear();
    run(1'100ms);
    answer(txn, 200, a_txn);
    EXPECT_FALSE(change->error.value());
}

TEST_F(ConsulClient, a_connection_that_hangs_unsent_leaves_nothing_behind) {
    make(1);
    const auto reading = read();
    run();
    answer("/v1/kv/k", 404, "", index(1));
    run(20s);
    by_->doors["h0"] = door::hang;
    const auto change = set(1s);
    run(1'001ms);
    EXPECT_EQ(change->error.value(), errc::unavailable) << "it was certainly not sent";
}

TEST_F(ConsulClient, reads_are_repeated_until_their_deadline) {
    make(1);
    const auto reading = read();
    for (int i = 0; i < 3; ++i) {
        run(1'100ms);
        answer("/v1/kv/k", 500, "rpc error making call: EOF");
    }
    EXPECT_FALSE(reading->error);
    run(1s);
    EXPECT_EQ(reading->error.value(), errc::unavailable);
    EXPECT_NE(rpc_->why(*reading->error).find("did not answer in time"), std::string::npos);
}

TEST_F(ConsulClient, renewing_is_repeated_and_creating_is_not) {
    make(1);
    const auto renewing = renew();
    const auto creating = create();
    run();
    one("/v1/session/renew/s1")->wire->reset();
    one("/v1/session/create")->wire->reset();
    run(300ms);
    EXPECT_EQ(creating->error.value(), errc::unknown_outcome);
    EXPECT_FALSE(renewing->error);
    answer("/v1/session/renew/s1", 200, R"([{"ID":"s1","TTL":"30s"}])");
    EXPECT_EQ(renewing->value, 30s) << "as it was granted";
    const auto next = renew(1s);
    run();
    answer("/v1/session/renew/s1", 404, "Session id 's1' not found");
    EXPECT_EQ(next->error.value(), errc::lost);
    const auto last = renew(1s);
    run(1'001ms);
    EXPECT_EQ(last->error.value(), errc::unknown_outcome) << "it may have been renewed";
}

TEST_F(ConsulClient, destroying_succeeds_when_there_is_none) {
    make(1);
    const auto out =
        ask<int>(4s, [&](auto by, auto done) { return rpc_->destroy("s1", by, std::move(done)); });
    run();
    EXPECT_EQ(one("/v1/session/destroy/s1")->request.method, "PUT");
    answer("/v1/session/destroy/s1", 404, "Session id 's1' not found");
    EXPECT_FALSE(out->error.value());
}

TEST_F(ConsulClient, what_cannot_be_read_is_no_consul) {
    make(1);
    const auto change = set();
    const auto reading = read();
    run();
    answer(txn, 200, "{}x");
    answer("/v1/kv/k", 200, "[]");  // without an index
    EXPECT_EQ(change->error.value(), errc::unknown_outcome);
    EXPECT_EQ(reading->error.value(), errc::invalid);
    EXPECT_NE(rpc_->why(*reading->error).find("not as Consul does"), std::string::npos);
}

TEST_F(ConsulClient, what_is_no_session_is_said_to_be_none) {
    make(1);
    const auto creating = create();
    run();
    answer("/v1/session/create", 200, R"({"ID":"../../kv/x"})");
    EXPECT_EQ(creating->error.value(), errc::unknown_outcome);
    EXPECT_NE(rpc_->why(*creating->error).find("not as Consul does"), std::string::npos);
}

TEST_F(ConsulClient, whoever_hears_that_all_is_hopeless_may_end_everything) {
    make(1);
    by_->leads = false;
    int ends = 0;
    std::vector<op> watching;
    for (int i = 0; i < 20; ++i) {
        watching.push_back(rpc_->watch(
            {"k", false, false}, [](const read_reply&) {},
            [&](std::error_code) {
                ++ends;
                rpc_.reset();
            }));
    }
    const auto change = set();
    run();
    answer("/v1/status/leader", 200, "<html>");
    run(1s);
    EXPECT_EQ(change->error.value(), errc::invalid);
    EXPECT_EQ(ends, 1);
}

TEST_F(ConsulClient, a_request_that_hears_that_all_is_hopeless_may_end_everything) {
    make(1);
    by_->leads = false;
    int ends = 0;
    operation one;
    one.verb = operation::verb_t::set;
    one.key = "k";
    std::vector<op> asking;
    for (int i = 0; i < 20; ++i) {
        asking.push_back(rpc_->txn({{one}}, at_.now() + 4s, [&](std::error_code, const txn_reply&) {
            ++ends;
            rpc_.reset();
        }));
    }
    run();
    answer("/v1/status/leader", 200, "<html>");
    run(1s);
    EXPECT_EQ(ends, 1);
}

TEST_F(ConsulClient, a_refused_transaction_is_an_answer) {
    make(1);
    const auto change = set();
    run();
    answer(txn, 409,
           R"({"Results":null,"Errors":[{"OpIndex":0,)"
           R"("What":"failed to set key \"k\", index is stale"}]})");
    EXPECT_FALSE(change->error.value());
    EXPECT_FALSE(change->value.applied);
    EXPECT_EQ(change->value.refusals.at(0).why, refusal_t::index);
}

// ---- what goes with each request ----------------------------------------------------------------

TEST_F(ConsulClient, the_leader_is_asked_where_the_contract_says_so) {
    make(1);
    operation get;
    get.key = "k";
    const auto reading = ask<txn_reply>(
        4s, [&](auto by, auto done) { return rpc_->txn({{get}}, by, std::move(done)); });
    const auto changing = set();
    const auto facts = ask<std::optional<session_facts>>(
        4s, [&](auto by, auto done) { return rpc_->facts("s1", by, std::move(done)); });
    const auto rows = read({"a b/", true, true});
    const auto keys = ask<std::vector<std::string>>(
        4s, [&](auto by, auto done) { return rpc_->keys("a/", by, std::move(done)); });
    run();
    EXPECT_EQ(by_->waiting("/v1/txn?consistent").size(), 1U);
    EXPECT_EQ(by_->waiting(txn).size(), 2U);
    EXPECT_EQ(by_->waiting("/v1/session/info/s1?consistent").size(), 1U);
    EXPECT_EQ(by_->waiting("/v1/kv/a%20b/?recurse&consistent").size(), 1U);
    answer("/v1/kv/a/?keys", 200, R"(["a/b","a/c"])");
    EXPECT_EQ(keys->value, (std::vector<std::string>{"a/b", "a/c"}));
    answer("/v1/session/info/s1", 200, "[]");
    EXPECT_FALSE(facts->error.value());
    EXPECT_FALSE(facts->value);
}

TEST_F(ConsulClient, token_datacenter_and_namespace_go_with_each_request) {
    make(1, {.token = "t-1", .datacenter = "d", .name_space = "n"});
    const auto a = set();
    const auto b = read({"k", true, true});
    const auto c = renew();
    const auto d = watch();
    const auto e = ask<std::vector<server_status>>(
        4s, [&](auto by, auto done) { return rpc_->status(by, std::move(done)); });
    run();
    ASSERT_GE(by_->all.size(), 8U);
    for (const auto& one : by_->all) {
        const auto& r = one->request;
        EXPECT_EQ(field_of(r.fields, "X-Consul-Token"), "t-1") << r.target;
        EXPECT_EQ(field_of(r.fields, "X-Consul-Namespace"), "n") << r.target;
        EXPECT_TRUE(r.target.ends_with("dc=d")) << r.target;
    }
    e->interest.cancel();  // which it is a part of
}

// ---- bounds -------------------------------------------------------------------------------------

TEST_F(ConsulClient, few_are_under_way_at_once_and_renewals_go_past_them) {
    make(1);
    std::vector<std::shared_ptr<outcome<txn_reply>>> many;
    for (std::size_t i = 0; i < consul_requests::most - 1; ++i) many.push_back(set(60s));
    const auto renewing = renew();
    const auto too_many = set();
    run();
    EXPECT_EQ(too_many->error.value(), errc::busy);
    EXPECT_EQ(by_->waiting(txn).size(), consul_requests::at_once);
    answer("/v1/session/renew/s1", 200, R"([{"ID":"s1","TTL":"15s"}])");
    EXPECT_FALSE(renewing->error.value());
    for (std::size_t i = 0; i < many.size(); ++i) {
        ASSERT_FALSE(by_->waiting(txn).empty()) << i;
        by_->answer(one(txn), 200, a_txn);
        run(1ms);
        run(1ms);
    }
    run();
    for (const auto& each : many) EXPECT_FALSE(each->error.value());
    EXPECT_LE(by_->connections, consul_requests::at_once + 2);
}

TEST_F(ConsulClient, those_that_wait_in_vain_take_no_place) {
    make(1);
    std::vector<std::shared_ptr<outcome<txn_reply>>> first;
    for (std::size_t i = 0; i < consul_requests::at_once; ++i) first.push_back(set(4s));
    std::vector<std::shared_ptr<outcome<txn_reply>>> short_ones;
    for (int i = 0; i < 50; ++i) short_ones.push_back(set(4s));
    const auto last = set(60s);
    run(4'010ms);
    for (const auto& each : short_ones) EXPECT_EQ(each->error.value(), errc::unavailable);
    run();
    ASSERT_EQ(by_->waiting(txn).size(), 1U);
    answer(txn, 200, a_txn);
    EXPECT_FALSE(last->error.value());
}

TEST_F(ConsulClient, an_answer_that_is_too_large_is_busy) {
    make(1);
    const auto reading = read();
    run();
    answer("/v1/kv/k", 200, std::string(4 * 1024 * 1024 + 1, ' '), index(1));
    EXPECT_EQ(reading->error.value(), errc::busy);
    EXPECT_NE(rpc_->why(*reading->error).find("4194304"), std::string::npos);
    operation big;
    big.verb = operation::verb_t::set;
    big.key = "k";
    big.value = std::string(4 * 1024 * 1024, 'x');
    const auto change = ask<txn_reply>(
        4s, [&](auto by, auto done) { return rpc_->txn({{big}}, by, std::move(done)); });
    run();
    EXPECT_EQ(change->error.value(), errc::busy);
}

// ---- the end ------------------------------------------------------------------------------------

TEST_F(ConsulClient, dropping_an_op_ends_its_connection) {
    make(1);
    const auto change = set();
    run();
    const auto begun = one(txn);
    change->interest.cancel();
    EXPECT_FALSE(begun->wire->open);
    run(10s);
    EXPECT_FALSE(change->error);
}

TEST_F(ConsulClient, a_connection_that_nobody_uses_is_closed_in_time) {
    make(1);
    const auto reading = read();
    run();
    const auto used = one("/v1/kv/k")->wire;
    answer("/v1/kv/k", 404, "", index(1));
    run(14s);
    EXPECT_TRUE(used->open);
    const auto again = read();
    run();
    answer("/v1/kv/k", 404, "", index(1));
    run(14s);
    EXPECT_TRUE(used->open) << "it was used since";
    run(1'100ms);
    EXPECT_FALSE(used->open);
}

TEST_F(ConsulClient, what_was_asked_before_an_address_was_left_does_not_have_it_left_again) {
    make(1);
    const auto first = set();
    const auto second = set();
    run();
    answer(txn, 500, "No cluster leader");
    run(100ms);
    const auto all = by_->waiting(txn);
    ASSERT_EQ(all.size(), 2U) << "the first was sent again";
    by_->answer(all[0], 500, "No cluster leader");
    run(0ms);
    const auto leaders = by_->waiting("/v1/status/leader").size();
    EXPECT_EQ(leaders, 0U);
    EXPECT_EQ(rpc_->trouble(), "");
}

TEST_F(ConsulClient, stopping_ends_all_and_nothing_runs_afterwards) {
    make(2);
    by_->doors["h1"] = door::refuse;
    const auto change = set();
    const auto looking = watch();
    const auto status = ask<std::vector<server_status>>(
        4s, [&](auto by, auto done) { return rpc_->status(by, std::move(done)); });
    run();
    const auto stopping =
        ask<int>(1s, [&](auto by, auto done) { return rpc_->stop(by, std::move(done)); });
    run();
    EXPECT_FALSE(stopping->error.value());
    const auto late = set();
    run(10s);
    EXPECT_FALSE(change->error);
    EXPECT_FALSE(late->error);
    EXPECT_FALSE(status->error);
    EXPECT_FALSE(looking->over);
    EXPECT_TRUE(by_->waiting().empty());
}

TEST_F(ConsulClient, every_address_says_how_it_is) {
    make(3, {.token = "t"});
    by_->doors["h1"] = door::refuse;
    by_->leads = false;
    const auto* const unwell = R"({"Healthy":false,"FailureTolerance":0,"Servers":[
        {"Name":"s0","Healthy":true},{"Name":"s1","Healthy":false}]})";
    const auto out = ask<std::vector<server_status>>(
        4s, [&](auto by, auto done) { return rpc_->status(by, std::move(done)); });
    run();
    for (const auto& one : by_->waiting()) {
        const auto& target = one->request.target;
        if (target == "/v1/status/leader") by_->answer(one, 200, "\"1.2.3.4:8300\"");
        if (target == "/v1/status/peers") by_->answer(one, 200, R"(["1.2.3.4:8300"])");
        if (target == "/v1/operator/autopilot/health") {
            one->host == "h0" ? by_->answer(one, 429, unwell) : by_->answer(one, 403, "denied");
        }
        if (target != "/v1/agent/self") continue;
        if (one->host == "h0") {
            by_->answer(one, 200, R"({"Config":{"Version":"1.14.11","Server":true}})");
        } else {
            by_->answer(one, 403, "Permission denied: lacks permission 'agent:read'");
        }
    }
    run();
    ASSERT_TRUE(out->error && !*out->error);
    const auto& all = out->value;
    EXPECT_EQ(all[0].address, "h0:8500");
    EXPECT_EQ(all[0].why, "");
    EXPECT_EQ(all[0].version, "1.14.11");
    EXPECT_EQ(all[0].leader, "1.2.3.4:8300");
    EXPECT_EQ(all[0].peers.size(), 1U);
    EXPECT_EQ(all[0].may_be_lost, 0U);
    EXPECT_EQ(all[0].unwell, (std::vector<std::string>{"s1"}));
    EXPECT_FALSE(all[2].may_be_lost) << "who may not ask for it is told nothing, and no error";
    EXPECT_NE(all[1].why.find("connection refused"), std::string::npos);
    EXPECT_EQ(all[2].why, "") << "it serves; what it says of itself is not for everybody";
    EXPECT_EQ(all[2].version, "");
}

}  // namespace
}  // namespace trinco::detail::test
