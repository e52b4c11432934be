// The contract of lock_store on a real Consul: two stores with connections of their own, as two
// processes have them. The server lasts for the whole run, so each test begins by deleting all keys
// and ending all sessions.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "lock_store_suite.hpp"
#include "store/consul/consul_client.hpp"
#include "store/consul/consul_locks.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/net/threaded_streams.hpp"
#include "tests/store/consul/test_consul.hpp"

namespace trinco::test {
namespace {

using detail::test::test_consul;

std::unique_ptr<test_consul> server;

class end_server final : public ::testing::Environment {
public:
    void TearDown() override { server.reset(); }
};
const auto* const at_the_end = ::testing::AddGlobalTestEnvironment(new end_server);

class consul_world final : public lock_store_world {
public:
    explicit consul_world(const test_consul& at) : server_(at) {
        // Before the sessions: what they hold when they end is kept back for the lock-delay.
        server_.must("DELETE", "/v1/kv/?recurse");
        server_.clear();
    }
    detail::loop& on() override { return on_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { on_.run_for(d); }
    boot_clock::duration settle_time() const override { return 200ms; }
    bool lists_who_waits() const override { return false; }
    bool grants_with_the_place() const override { return false; }
    // A session ends up to a TTL late; then comes the lock-delay, and whoever waits tries again.
    boot_clock::duration expiry_slack() const override { return short_ttl() + hold_back() + 2s; }
    boot_clock::duration hold_back() const override { return 5s; }

private:
    std::unique_ptr<detail::consul::rpc> link() {
        detail::consul::consul_settings with;
        with.addresses.push_back(detail::stream_address::tcp("127.0.0.1", server_.port()));
        return detail::consul::make_consul_client(
            on_, std::make_unique<detail::test::threaded_streams>(on_), std::move(with));
    }

    const test_consul& server_;
    detail::test::driven_loop on_;
    detail::consul_locks a_{on_, link()};
    detail::consul_locks b_{on_, link()};
};

std::unique_ptr<lock_store_world> make_world() {
    if (!server) {
        const auto program = detail::test::find_consul();
        if (!program) return nullptr;
        detail::test::consul_settings with;
        with.program = *program;
        server = std::make_unique<test_consul>(std::move(with));
    }
    return std::make_unique<consul_world>(*server);
}

INSTANTIATE_TEST_SUITE_P(Consul, LockStore,
                         ::testing::Values(lock_store_case{"Server", &make_world}), lock_case_name);

}  // namespace
}  // namespace trinco::test
