// Many waiting locks in one process, on a real server: what they leave is nothing. With
// TRINCO_ETCD_WAITERS=10000 so many; `make bench` looks at what they take.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <string>

#include "tests/store/etcd/bare_etcd.hpp"
#include "tests/store/etcd/many_waiters.hpp"
#include "tests/store/etcd/test_etcd.hpp"

namespace trinco::detail::test {
namespace {

int how_many() {
    const char* const said = std::getenv("TRINCO_ETCD_WAITERS");
    return said != nullptr ? std::atoi(said) : 500;
}

TEST(EtcdMany, WaitingLocksLeaveNoKeyLeaseThreadOrDescriptor) {
    const auto program = find_etcd();
    if (!program) GTEST_SKIP() << "there is no etcd; try `make servers`";
    const int many = how_many();
    const test_etcd server({.program = *program});
    many_waiters others("etcd://" + server.address());
    others.warm_up();
    wait_for("the warm-up has left no thread", [&] { return others.threads_of_ours() == 1; });
    const int descriptors = others.descriptors();
    bare_etcd etcd(server.port());
    const auto held = etcd.hold("many/", many);
    ASSERT_EQ(etcd.count("many/"), many);
    others.begin("many/", many, 0);
    wait_for("all wait", [&] { return etcd.count("many/") == 2 * many; });
    EXPECT_LE(others.threads_of_ours(), 6);
    EXPECT_EQ(others.end(), 0) << "some are granted what is held";
    EXPECT_EQ(etcd.count("many/"), many);
    etcd.revoke(held);
    EXPECT_EQ(server.must({"get", "", "--prefix", "--keys-only"}), "");
    EXPECT_TRUE(server.must({"lease", "list"}).starts_with("found 0 leases"));
    wait_for("no thread is left", [&] { return others.threads_of_ours() == 1; });
    wait_for("no descriptor is left", [&] { return others.descriptors() <= descriptors; });
}

}  // namespace
}  // namespace trinco::detail::test
