// What is said of failures, and what they mean.
#include "etcd_client_scene.hpp"

namespace trinco::detail::test {
namespace {

TEST_F(EtcdClient, what_is_said_of_a_failure_is_of_that_one) {
    make(1);
    const auto first = put();
    come_up();
    by_->answer(by_->waiting(method::txn).at(0),
                {wire_code::permission_denied, "etcdserver: permission denied"});
    EXPECT_EQ(first->error.value(), errc::denied);
    EXPECT_NE(rpc_->why(errc::denied).find("permission denied"), std::string::npos);
    for (const auto other : {errc::invalid, errc::unavailable, errc::unknown_outcome, errc::busy}) {
        EXPECT_EQ(rpc_->why(other), "") << make_error_code(other).message();
    }
    const auto second = put(1s);
    run(1s);
    EXPECT_EQ(second->error.value(), errc::unknown_outcome);
    EXPECT_NE(rpc_->why(errc::unknown_outcome).find("did not answer"), std::string::npos);
    EXPECT_NE(rpc_->why(errc::unavailable), "") << "out of reach is out of reach";
    EXPECT_EQ(rpc_->why(errc::denied), "") << "another failure came since";
    const auto third = put();
    by_->answer(by_->waiting(method::txn).back(), {}, a_txn);
    EXPECT_FALSE(third->error.value());
    EXPECT_EQ(rpc_->why(errc::unknown_outcome), "") << "it is over";
}

TEST_F(EtcdClient, what_all_say_and_will_say_again_is_the_reason_of_what_was_told_so) {
    make(1);
    const auto answer = put(10s);
    run();
    by_->answer(by_->waiting(method::status).at(0),
                {wire_code::unavailable,
                 "its certificate is not from an authority of ca=", wire_cause::distrusted});
    EXPECT_EQ(answer->error.value(), errc::denied);
    EXPECT_NE(rpc_->why(errc::denied).find("ca="), std::string::npos);
    EXPECT_NE(rpc_->why(errc::unavailable).find("ca="), std::string::npos);
    EXPECT_EQ(rpc_->why(errc::invalid), "");
    const auto again = put();
    run(2s);
    come_up();
    by_->answer(by_->waiting(method::txn).at(0), {}, a_txn);
    EXPECT_FALSE(again->error.value());
    EXPECT_EQ(rpc_->why(errc::denied), "");
    EXPECT_EQ(rpc_->why(errc::unavailable), "");
}

TEST_F(EtcdClient, that_nobody_listens_is_known_once_all_were_tried) {
    make(2);
    const wire_status refused{wire_code::unavailable, "connection refused", wire_cause::not_sent,
                              true};
    const auto change = put(10s);
    run();
    by_->answer(by_->waiting(method::status).at(0), refused);
    run();
    EXPECT_FALSE(rpc_->is_refused()) << "the other was not asked yet";
    by_->answer(by_->waiting(method::status).at(0), refused);
    EXPECT_TRUE(rpc_->is_refused());
    EXPECT_FALSE(change->error) << "it goes on trying";
    run(2s);
    by_->answer(by_->waiting(method::status).at(0), refused);
    run();
    by_->answer(by_->waiting(method::status).at(0),
                {wire_code::unavailable, "etcdserver: no leader", wire_cause::server});
    EXPECT_FALSE(rpc_->is_refused()) << "one answers";
    run(2s);
    come_up();
    EXPECT_FALSE(rpc_->is_refused());
}

TEST_F(EtcdClient, what_a_full_server_may_have_carried_out_is_not_called_refused) {
    make(1);
    const wire_status full{wire_code::resource_exhausted,
                           "etcdserver: mvcc: database space exceeded"};
    const auto change = put();
    const auto read = get();
    const auto granted = std::make_shared<outcome<lease_reply>>();
    granted->interest = rpc_->grant(10s, at_.now() + 4s, into(granted));
    come_up();
    for (const auto& one : by_->waiting(method::txn)) by_->answer(one, full);
    by_->answer(by_->waiting(method::grant).at(0), full);
    EXPECT_EQ(change->error.value(), errc::unknown_outcome);
    EXPECT_TRUE(change->value.settled);
    EXPECT_EQ(read->error.value(), errc::busy);
    EXPECT_EQ(granted->error.value(), errc::busy) << "its lease ends by itself";
    EXPECT_NE(rpc_->why(errc::busy).find("raise its quota"), std::string::npos);
    const auto more = put();
    by_->answer(by_->waiting(method::txn).at(0), full);
    const auto again = get();
    by_->answer(by_->waiting(method::txn).at(0), {}, a_txn);
    EXPECT_FALSE(again->error.value());
    for (const auto said : {errc::busy, errc::unknown_outcome}) {
        EXPECT_NE(rpc_->why(said).find("raise its quota"), std::string::npos)
            << "that it can be read does not make room";
    }
    const auto lost = put();
    by_->answer(by_->waiting(method::txn).at(0),
                {wire_code::unavailable, "the connection broke", wire_cause::broken});
    EXPECT_EQ(lost->error.value(), errc::unknown_outcome);
    EXPECT_FALSE(lost->value.settled);
    const auto many = put();
    run(50ms);
    come_up();
    by_->answer(by_->waiting(method::txn).at(0),
                {wire_code::resource_exhausted, "etcdserver: too many requests"});
    EXPECT_EQ(many->error.value(), errc::busy);
}

}  // namespace
}  // namespace trinco::detail::test
