// Guarded writes on real servers, 3.5 and 3.4, by processes that are stopped while they hold a lock
// and go on too late. Each holder is a process of its own, which is forked before a store is
// opened here: this process opens no store, and looks with etcdctl.
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "tests/store/etcd/test_etcd.hpp"
#include "tests/store/late_writer.hpp"
#include "trinco/etcd.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

constexpr const char* key = "accounts:7";

class EtcdGuardedWrite : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        const auto program = find_etcd(GetParam());
        if (!program) GTEST_SKIP() << "there is no " << GetParam() << "; try `make servers`";
        etcd_settings with;
        with.program = *program;
        server_.emplace(std::move(with));
    }
    [[nodiscard]] late_writer holder(std::chrono::seconds ttl) const {
        return {"etcd://" + server_->address(), drivers::etcd(), key, ttl};
    }
    // As any other program reads it.
    [[nodiscard]] std::string value() const {
        return server_->must({"get", key, "--print-value-only"});
    }
    // Somebody else has the lock and has written; now it goes on.
    void goes_on_too_late(const late_writer& late) const {
        const auto heir = holder(60s);
        heir.ask("lock");
        heir.ask("make heir");
        EXPECT_EQ(heir.ask("commit"), "written");
        late.go_on();
        EXPECT_EQ(late.hear(), "refused");
        EXPECT_EQ(value(), "heir\n");
        EXPECT_EQ(late.ask("commit"), "refused") << "however often";
        EXPECT_EQ(value(), "heir\n");
    }

    std::optional<test_etcd> server_;
};

TEST_P(EtcdGuardedWrite, IsRefusedToWhoWasPausedWhileItsLeaseWasRevoked) {
    const auto late = holder(600s);
    const auto lease = late.ask("lock");
    late.ask("make early");
    EXPECT_EQ(late.ask("commit"), "written");
    EXPECT_EQ(value(), "early\n");
    late.look_and_stop();
    // Its own deadline is minutes away: only the server knows.
    server_->must({"lease", "revoke", lease});
    goes_on_too_late(late);
}

TEST_P(EtcdGuardedWrite, IsRefusedToWhoWasPausedPastItsDeadline) {
    const auto late = holder(2s);
    late.ask("lock");
    late.look_and_stop();
    goes_on_too_late(late);
}

TEST_P(EtcdGuardedWrite, LiesWhereOthersReadItAndInNobodysWay) {
    const auto one = holder(60s);
    one.ask("lock");
    one.ask("make 90");
    EXPECT_EQ(one.ask("commit"), "written");
    EXPECT_EQ(value(), "90\n");
    one.ask("keep");
    const auto fields = [&](const char* of) { return server_->must({"get", of, "-w", "fields"}); };
    EXPECT_NE(fields(key).find("\"Lease\" : 0\n"), std::string::npos);
    EXPECT_EQ(fields("short:1").find("\"Lease\" : 0\n"), std::string::npos) << "it would stay";
    // A lock of etcdctl waits for whatever lies beneath its name: it must find nothing there.
    for (const char* name : {"accounts", "accounts:7", "short", "short:1"}) {
        EXPECT_EQ(server_->must({"get", std::string(name) + "/", "--prefix"}), "") << name;
        EXPECT_EQ(server_->ctl({"lock", name, "true"}).code, 0) << name;
    }
}

INSTANTIATE_TEST_SUITE_P(Versions, EtcdGuardedWrite, ::testing::Values("etcd", "etcd-3.4"),
                         [](const auto& version) {
                             return std::string(version.param) == "etcd" ? "V3_5" : "V3_4";
                         });

}  // namespace
}  // namespace trinco::detail::test
