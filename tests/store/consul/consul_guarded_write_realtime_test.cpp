// Guarded writes on a real Consul, by processes that are stopped while they hold a lock and go on
// too late. This process opens no store, and looks by HTTP.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/store/consul/test_consul.hpp"
#include "tests/store/late_writer.hpp"
#include "trinco/consul.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* key = "accounts:7";

class ConsulGuardedWrite : public testing::Test {
protected:
    void SetUp() override {
        const auto program = find_consul();
        if (!program) GTEST_SKIP() << "there is no Consul; try `make servers`";
        server_.emplace(consul_settings{.program = *program});
    }
    [[nodiscard]] late_writer holder(std::chrono::seconds ttl) const {
        return {"consul://" + server_->address(), drivers::consul(), key, ttl};
    }
    // As any other program reads it.
    [[nodiscard]] std::string value() const {
        return server_->must("GET", std::string("/v1/kv/") + key + "?raw");
    }
    // Somebody else has the lock and has written; now it goes on.
    void goes_on_too_late(const late_writer& late) const {
        const auto heir = holder(60s);
        heir.ask("lock");
        heir.ask("make heir");
        EXPECT_EQ(heir.ask("commit"), "written");
        late.go_on();
        EXPECT_EQ(late.hear(), "refused");
        EXPECT_EQ(value(), "heir");
        EXPECT_EQ(late.ask("commit"), "refused") << "however often";
        EXPECT_EQ(value(), "heir");
    }

    std::optional<test_consul> server_;
};

TEST_F(ConsulGuardedWrite, IsRefusedToWhoWasPausedWhileItsSessionWasEnded) {
    const auto late = holder(600s);
    const auto session = late.ask("lock");
    late.ask("make early");
    EXPECT_EQ(late.ask("commit"), "written");
    EXPECT_EQ(value(), "early");
    late.look_and_stop();
    // Its own deadline is minutes away: only the server knows.
    server_->must("PUT", "/v1/session/destroy/" + session);
    goes_on_too_late(late);
}

// Its session lives on, and the key is there again: of another session, and at another index.
TEST_F(ConsulGuardedWrite, IsRefusedToWhoWasPausedWhileItsKeyWasDeletedAndTaken) {
    const auto late = holder(600s);
    late.ask("lock");
    late.look_and_stop();
    server_->must("DELETE", "/v1/kv/account-7/.lock");
    goes_on_too_late(late);
}

TEST_F(ConsulGuardedWrite, IsRefusedToWhoWasPausedPastItsDeadline) {
    if (environment_variable("TRINCO_CONSUL_LONG").empty()) {
        GTEST_SKIP() << "takes half a minute: TRINCO_CONSUL_LONG=1";
    }
    const auto late = holder(10s);
    late.ask("lock");
    late.look_and_stop();
    goes_on_too_late(late);
}

TEST_F(ConsulGuardedWrite, LiesWhereOthersReadItAndInNobodysWay) {
    const auto one = holder(60s);
    one.ask("lock");
    one.ask("make 90");
    EXPECT_EQ(one.ask("commit"), "written");
    EXPECT_EQ(value(), "90");
    for (const char* name : {"accounts", "accounts:7"}) {
        EXPECT_EQ(server_->cli({"lock", name, "true"}).code, 0) << name;
    }
}

}  // namespace
}  // namespace trinco::detail::test
