// The rpc over members that say what a test lets them say.
#include "store/etcd/etcd_client.hpp"

#include <algorithm>
#include <utility>

#include "etcd_client_scene.hpp"
#include "store/etcd/etcd_requests.hpp"
#include "store/etcd/etcd_wire.hpp"

namespace trinco::detail::test {
namespace {

std::string renewed(std::int64_t lease, std::int64_t ttl) {
    return proto_bytes().number(2, lease).number(3, ttl);
}
std::string header(std::int64_t revision) {
    return proto_bytes().number(3, revision);
}
std::string put_event(const std::string& key, std::int64_t revision) {
    return proto_bytes().text(2, proto_bytes().text(1, key).number(3, revision));
}
std::string created(std::int64_t id, std::int64_t revision) {
    return proto_bytes().text(1, header(revision)).number(2, id).number(3, 1);
}

// ---- the way ------------------------------------------------------------------------------------

TEST_F(EtcdClient, a_member_that_does_not_answer_costs_200_ms) {
    make(2);
    const auto answer = put();
    run(199ms);
    ASSERT_EQ(by_->waiting(method::status).size(), 1U);
    const auto first = by_->waiting(method::status)[0]->to.endpoint;
    run(2ms);
    const auto probes = by_->waiting(method::status);
    ASSERT_EQ(probes.size(), 2U);
    EXPECT_NE(probes[1]->to.endpoint, first);
    EXPECT_TRUE(probes[1]->with.needs_leader);
    by_->up.insert(probes[1]->to.endpoint);
    by_->answer(probes[1], {});
    run();
    ASSERT_EQ(by_->waiting(method::txn).size(), 1U);
    EXPECT_EQ(by_->waiting(method::txn)[0]->to.endpoint, probes[1]->to.endpoint);
    by_->answer(by_->waiting(method::txn)[0], {}, a_txn);
    ASSERT_TRUE(answer->error);
    EXPECT_FALSE(*answer->error);
    EXPECT_EQ(answer->value.revision, 7);
}

TEST_F(EtcdClient, what_all_say_and_will_say_again_is_said_at_once) {
    make(2);
    const auto answer = put(10s);
    for (int i = 0; i < 2; ++i) {
        run();
        by_->answer(by_->waiting(method::status).at(0),
                    {wire_code::unavailable,
                     "its certificate is not believed; name ca=", wire_cause::distrusted});
    }
    run();
    ASSERT_TRUE(answer->error);
    EXPECT_EQ(*answer->error, errc::denied);
    EXPECT_NE(rpc_->trouble().find("ca="), std::string::npos);
}

TEST_F(EtcdClient, a_read_goes_elsewhere_at_half_of_its_time_a_change_does_not) {
    make(2);
    const auto change = put(4s);
    const auto read = get(4s);
    come_up();
    const auto sent = by_->waiting(method::txn);
    ASSERT_EQ(sent.size(), 2U);
    const auto silent = sent[0]->to.endpoint;
    run(2s);
    come_up();  // the other one, which is asked first
    const auto now = by_->waiting(method::txn);
    ASSERT_EQ(now.size(), 2U);
    EXPECT_EQ(now[0]->to.endpoint, silent) << "the change still waits there";
    EXPECT_NE(now[1]->to.endpoint, silent);
    by_->answer(now[1], {}, a_txn);
    EXPECT_FALSE(read->error.value());
    run(2s);
    EXPECT_EQ(change->error.value(), errc::unknown_outcome);
    EXPECT_EQ(by_->calls.size(), 5U) << "two probes, two transactions, one again";
}

TEST_F(EtcdClient, a_change_is_sent_again_only_when_it_was_not_carried_out) {
    make(1);
    const auto first = put();
    const auto second = put();
    come_up();
    auto sent = by_->waiting(method::txn);
    by_->answer(sent[0], {wire_code::unavailable, "etcdserver: no leader"});
    by_->answer(sent[1], {wire_code::unavailable, "it ended", wire_cause::broken});
    EXPECT_FALSE(first->error);
    EXPECT_EQ(second->error.value(), errc::unknown_outcome);
    run(50ms);
    come_up();
    sent = by_->waiting(method::txn);
    ASSERT_EQ(sent.size(), 1U);
    by_->answer(sent[0], {wire_code::unavailable, "connection refused", wire_cause::not_sent});
    EXPECT_FALSE(first->error);
    run(100ms);
    come_up();
    sent = by_->waiting(method::txn);
    ASSERT_EQ(sent.size(), 1U);
    by_->answer(sent[0], {wire_code::unavailable, "etcdserver: request timed out"});
    EXPECT_EQ(first->error.value(), errc::unknown_outcome);
}

// ---- login --------------------------------------------------------------------------------------

TEST_F(EtcdClient, a_token_is_fetched_once_and_anew_when_it_is_not_taken) {
    make(1, {"ann", "pw"});
    const auto first = put();
    const auto second = put();
    come_up();
    ASSERT_EQ(by_->waiting(method::authenticate).size(), 1U);
    by_->answer(by_->waiting(method::authenticate)[0], {}, proto_bytes().text(2, "t1"));
    auto sent = by_->waiting(method::txn);
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[0]->with.token, "t1");
    const wire_status old{wire_code::unauthenticated, "etcdserver: invalid auth token"};
    by_->answer(sent[0], old);
    by_->answer(sent[1], old);
    ASSERT_EQ(by_->waiting(method::authenticate).size(), 1U) << "for both";
    by_->answer(by_->waiting(method::authenticate)[0], {}, proto_bytes().text(2, "t2"));
    sent = by_->waiting(method::txn);
    ASSERT_EQ(sent.size(), 2U);
    EXPECT_EQ(sent[1]->with.token, "t2");
    by_->answer(sent[0], {}, a_txn);
    by_->answer(sent[1], old);
    EXPECT_FALSE(first->error.value());
    EXPECT_EQ(second->error.value(), errc::denied) << "once more, and no more";
}

TEST_F(EtcdClient, what_is_sent_in_place_of_a_refused_one_does_not_go_the_same_way) {
    make(1, {"ann", "pw"});
    std::vector<std::shared_ptr<outcome<txn_reply>>> all;
    for (std::size_t i = 0; i < etcd_requests::at_once + 1; ++i) all.push_back(put());
    come_up();
    by_->answer(by_->waiting(method::authenticate).at(0), {}, proto_bytes().text(2, "t1"));
    ASSERT_EQ(by_->waiting(method::txn).size(), etcd_requests::at_once);
    by_->answer(by_->waiting(method::txn)[0],
                {wire_code::unauthenticated, "etcdserver: invalid auth token"});
    EXPECT_EQ(by_->waiting(method::txn).size(), etcd_requests::at_once - 1) << "with t1";
    by_->answer(by_->waiting(method::authenticate).at(0), {}, proto_bytes().text(2, "t2"));
    EXPECT_EQ(by_->waiting(method::txn).size(), etcd_requests::at_once);
    EXPECT_EQ(by_->waiting(method::txn).back()->with.token, "t2");
    by_->answer(by_->waiting(method::txn)[0], {wire_code::unavailable, "etcdserver: no leader"});
    EXPECT_EQ(by_->waiting(method::txn).size(), etcd_requests::at_once - 1) << "which has none";
}

// ---- renewals -----------------------------------------------------------------------------------

TEST_F(EtcdClient, a_renewal_is_not_answered_by_the_answer_to_an_earlier_one) {
    make(1);
    auto first = renew(5);
    come_up();
    const auto stream = by_->open_streams(method::keep_alive).at(0);
    EXPECT_EQ(stream->to.by, lane::renewals);
    const auto second = renew(5);
    const auto other = renew(6);
    ASSERT_EQ(stream->sent,
              (std::vector<std::string>{encode_renewal(5), encode_renewal(5), encode_renewal(6)}));
    first->interest.cancel();
    stream->heard(renewed(5, 15));
    EXPECT_FALSE(second->error) << "that was the one which nobody wants any more";
    EXPECT_FALSE(first->error);
    stream->heard(renewed(6, 0));
    EXPECT_EQ(other->error.value(), errc::lost);
    stream->heard(renewed(5, 14));
    EXPECT_EQ(second->value, 14s);
}

TEST_F(EtcdClient, renewals_are_sent_again_when_the_stream_ends_or_is_silent) {
    make(1);
    const auto first = renew(5, 4s);
    come_up();
    const auto stream = by_->open_streams(method::keep_alive).at(0);
    stream->ended({wire_code::unavailable, "etcdserver: no leader"});
    run(30ms);
    come_up();
    auto next = by_->open_streams(method::keep_alive).at(0);
    EXPECT_EQ(next->sent.size(), 1U);
    run(2s);
    ASSERT_TRUE(next->gone) << "half of the time is over";
    next = by_->open_streams(method::keep_alive).at(0);
    next->heard(renewed(5, 15));
    EXPECT_EQ(first->value, 15s);
    const auto second = renew(5, 1s);
    run(1s);
    EXPECT_EQ(second->error.value(), errc::unknown_outcome);
}

// ---- watches ------------------------------------------------------------------------------------

TEST_F(EtcdClient, a_watch_goes_on_behind_what_it_told) {
    make(1);
    const watch_request what{{"k", ""}, 10};
    const auto w = watch(what);
    come_up();
    auto stream = by_->open_streams(method::watch).at(0);
    ASSERT_EQ(stream->sent.at(0), encode_watch(1, what));
    stream->heard(created(1, 20));
    // It catches up: the store is at 20, what is told reaches 12.
    stream->heard(proto_bytes().text(1, header(20)).number(2, 1).text(11, put_event("k", 12)));
    ASSERT_EQ(w->news.size(), 1U);
    EXPECT_EQ(w->news[0].revision, 12);
    stream->heard(
        proto_bytes().text(1, header(20)).number(2, 1).number(7, 1).text(11, put_event("k", 15)));
    EXPECT_EQ(w->news.size(), 1U) << "the rest of what happened then follows";
    stream->ended({wire_code::unavailable, "it ended", wire_cause::broken});
    run(30ms);
    come_up();
    stream = by_->open_streams(method::watch).at(0);
    auto next = what;
    next.from_revision = 13;
    ASSERT_EQ(stream->sent.at(0), encode_watch(1, next));
    stream->heard(created(1, 20));
    stream->heard(
        proto_bytes().text(1, header(20)).number(2, 1).number(7, 1).text(11, put_event("k", 15)));
    stream->heard(proto_bytes().text(1, header(20)).number(2, 1).text(11, put_event("k", 16)));
    ASSERT_EQ(w->news.size(), 2U);
    EXPECT_EQ(w->news[1].events.size(), 2U);
    EXPECT_EQ(w->news[1].revision, 16);
    w->interest.cancel();
    EXPECT_EQ(stream->sent.at(1), encode_watch_end(1));
}

TEST_F(EtcdClient, from_now_on_begins_where_the_watch_was_created) {
    make(1);
    const watch_request what{{"k", ""}, 0};
    const auto w = watch(what);
    come_up();
    by_->open_streams(method::watch).at(0)->heard(created(1, 20));
    by_->open_streams(method::watch)
        .at(0)
        ->ended({wire_code::unavailable, "it ended", wire_cause::broken});
    run(30ms);
    come_up();
    auto next = what;
    next.from_revision = 21;
    EXPECT_EQ(by_->open_streams(method::watch).at(0)->sent.at(0), encode_watch(1, next));
}

TEST_F(EtcdClient, a_refusal_without_a_name_is_of_the_oldest_watch_not_answered) {
    make(1);
    const auto one = watch({{"a", ""}, 1});
    come_up();
    const auto two = watch({{"b", ""}, 1});
    const auto three = watch({{"c", ""}, 1});
    const auto stream = by_->open_streams(method::watch).at(0);
    stream->heard(created(1, 20));
    const std::string refused = proto_bytes()
                                    .text(1, header(20))
                                    .number(2, -1)
                                    .number(3, 1)
                                    .number(4, 1)
                                    .text(6, "etcdserver: permission denied");
    stream->heard(refused);
    stream->heard(created(3, 20));
    stream->heard(proto_bytes().text(1, header(20)).number(2, 3).number(4, 1).number(5, 9));
    EXPECT_FALSE(one->over);
    EXPECT_EQ(two->over, errc::denied);
    EXPECT_EQ(three->over, errc::conflict) << "compacted";
}

// ---- whatever comes -----------------------------------------------------------------------------

// Members that answer at random, late, or never: everything is answered once, by its deadline.
class random_members {
public:
    random_members(sim::node& at, sim::world& w, scripted_transport& by) : at_(at), w_(w), by_(by) {
        step();
    }

private:
    std::uint64_t draw(std::uint64_t n) { return w_.random() % n; }
    wire_status status() {
        static const std::vector<wire_status> all{
            {},
            {},
            {},
            {wire_code::unavailable, "etcdserver: no leader"},
            {wire_code::unavailable, "connection refused", wire_cause::not_sent},
            {wire_code::unavailable, "it ended", wire_cause::broken},
            {wire_code::unauthenticated, "etcdserver: invalid auth token"},
            {wire_code::resource_exhausted, "etcdserver: too many requests"},
            {wire_code::unknown, "?"}};
        return all[draw(all.size())];
    }
    void step() {
        for (const auto& call : std::vector(by_.calls)) {
            if (!call->done || draw(4) != 0) continue;
            auto s = status();
            if (s.good()) by_.up.insert(call->to.endpoint);
            const bool login = call->method == method::authenticate;
            by_.answer(call, s, login ? std::string(proto_bytes().text(2, "t")) : a_txn);
        }
        for (const auto& stream : std::vector(by_.streams)) {
            if (stream->gone) continue;
            if (draw(10) == 0) {
                stream->ended(status());
            } else if (draw(3) == 0 && stream->method == method::keep_alive) {
                stream->heard(renewed(static_cast<std::int64_t>(1 + draw(3)), 15));
            }
        }
        if (draw(20) == 0) by_.up.clear();
        timer_ = at_.after(std::chrono::milliseconds(1 + draw(50)), [this] { step(); });
    }

    sim::node& at_;
    sim::world& w_;
    scripted_transport& by_;
    op timer_;
};

TEST_F(EtcdClient, so_many_requests_are_sent_at_once_and_the_others_follow) {
    make(1);
    std::vector<std::shared_ptr<outcome<txn_reply>>> all;
    for (std::size_t i = 0; i < etcd_requests::at_once + 3; ++i) all.push_back(put());
    come_up();
    auto sent = by_->waiting(method::txn);
    ASSERT_EQ(sent.size(), etcd_requests::at_once);
    by_->answer(sent[0], {}, a_txn);
    all[1]->interest.cancel();
    run();
    EXPECT_TRUE(all[0]->error);
    EXPECT_EQ(by_->waiting(method::txn).size(), etcd_requests::at_once) << "two made room for two";
    run(5s);
    EXPECT_EQ(all[2]->error, errc::unknown_outcome) << "it was sent";
    EXPECT_EQ(all.back()->error, errc::unavailable) << "it was never sent";
}

TEST_F(EtcdClient, everything_is_answered_once_by_its_deadline) {
    for (int seed = 0; seed < 300; ++seed) {
        sim::world w(static_cast<std::uint64_t>(seed));
        auto& at = w.add_node("client");
        auto by = std::make_unique<scripted_transport>(1 + w.random() % 3);
        auto& members = *by;
        const auto rpc = make_etcd_client(
            at, std::move(by), w.random() % 2 == 0 ? credentials{} : credentials{"ann", "pw"});
        random_members others(at, w, members);
        std::vector<std::shared_ptr<outcome<txn_reply>>> calls;
        std::vector<std::shared_ptr<outcome<std::chrono::seconds>>> renewals;
        for (int i = 0; i < 40; ++i) {
            calls.push_back(std::make_shared<outcome<txn_reply>>());
            txn_request what{{}, {range_request{}}, {}};
            const bool changes = w.random() % 2 == 0;
            if (changes) what.success = {put_request{"k", "v", 0}};
            const auto late = at.now() + 3s;
            calls.back()->interest = rpc->txn(
                what, late,
                [&, to = calls.back(), changes, late](std::error_code error, const txn_reply&) {
                    EXPECT_FALSE(to->error) << "seed " << seed;
                    EXPECT_LE(at.now(), late + 1ms) << "seed " << seed;
                    EXPECT_FALSE(!changes && error == errc::unknown_outcome) << "seed " << seed;
                    to->error = error;
                });
            renewals.push_back(std::make_shared<outcome<std::chrono::seconds>>());
            renewals.back()->interest = rpc->keep_alive(1 + i % 3, late, into(renewals.back()));
            if (w.random() % 8 == 0) {
                calls.back()->interest.cancel();
                calls.back()->error = std::error_code();
            }
            w.run_for(std::chrono::milliseconds(w.random() % 100));
        }
        w.run_for(4s);
        for (const auto& c : calls) EXPECT_TRUE(c->error) << "seed " << seed;
        for (const auto& r : renewals) EXPECT_TRUE(r->error) << "seed " << seed;
        if (HasFailure()) return;
    }
}

}  // namespace
}  // namespace trinco::detail::test
