// The token of a file, over addresses that say what a test lets them say.
#include "store/consul/consul_token.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "consul_client_scene.hpp"

namespace trinco::detail::test {
namespace {

constexpr const char* txn = "/v1/txn";

class ConsulToken : public ConsulClient {
protected:
    void write(const std::string& text) const { std::ofstream(file_) << text; }
    ~ConsulToken() override { std::filesystem::remove(file_); }

    const std::string file_ = testing::TempDir() + "consul_token_" + std::to_string(::getpid());
};

TEST_F(ConsulToken, a_file_is_read_again_when_its_token_is_refused) {
    write("old\n");
    make(1, {.token_file = file_});
    const auto change = set();
    const auto looking = watch();
    run();
    write("new\r\n");
    const auto begun = one(txn);
    EXPECT_EQ(field_of(begun->request.fields, "X-Consul-Token"), "old");
    answer(txn, 403, "ACL not found");
    answer("/v1/kv/k", 403, "ACL not found");
    run(100ms);
    EXPECT_EQ(field_of(one(txn)->request.fields, "X-Consul-Token"), "new");
    EXPECT_EQ(field_of(one("/v1/kv/k")->request.fields, "X-Consul-Token"), "new");
    answer(txn, 403, "ACL not found");
    EXPECT_EQ(change->error.value(), errc::denied) << "once is enough";
    EXPECT_NE(rpc_->why(*change->error).find("does not know the token"), std::string::npos);
    answer("/v1/kv/k", 403, "Permission denied");
    EXPECT_EQ(looking->over, errc::denied);
}

TEST_F(ConsulToken, a_file_that_cannot_be_read_for_a_while_takes_no_token_away) {
    write("old");
    make(1, {.token_file = file_});
    const auto first = set();
    run();
    write("");
    answer(txn, 403, "ACL not found");
    EXPECT_EQ(first->error.value(), errc::denied);
    const auto second = set();
    run();
    EXPECT_EQ(field_of(one(txn)->request.fields, "X-Consul-Token"), "old");
    write("new");
    answer(txn, 403, "ACL not found");
    run(100ms);
    EXPECT_EQ(field_of(one(txn)->request.fields, "X-Consul-Token"), "new");
    answer(txn, 200, a_txn);
    EXPECT_FALSE(second->error.value());
}

TEST_F(ConsulToken, a_pipe_is_not_waited_for) {
    ASSERT_EQ(::mkfifo(file_.c_str(), 0600), 0);
    make(1, {.token_file = file_});
    const auto change = set();
    run();
    EXPECT_EQ(change->error.value(), errc::denied);
    EXPECT_NE(rpc_->why(*change->error).find("no regular file"), std::string::npos);
}

TEST_F(ConsulToken, a_file_that_cannot_be_read_denies_and_is_not_shown) {
    make(1, {.token_file = file_});
    const auto change = set();
    const auto looking = watch();
    run();
    EXPECT_EQ(change->error.value(), errc::denied);
    EXPECT_EQ(looking->over, errc::denied);
    EXPECT_NE(rpc_->why(*change->error).find("No such file"), std::string::npos);
    write("geheim mit leerzeichen");
    const auto second = set();
    run();
    EXPECT_EQ(second->error.value(), errc::denied);
    EXPECT_NE(rpc_->trouble().find("one line with a token"), std::string::npos);
    EXPECT_EQ(rpc_->trouble().find("geheim"), std::string::npos);
    write("good");
    const auto third = set();
    run();
    answer(txn, 200, a_txn);
    EXPECT_FALSE(third->error.value());
    EXPECT_EQ(rpc_->trouble(), "");
}

}  // namespace
}  // namespace trinco::detail::test
