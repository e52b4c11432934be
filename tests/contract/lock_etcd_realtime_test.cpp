// The contract of lock_store on real servers, etcd 3.4 to 3.6: two stores with connections of
// their own, as two processes have them. A version that is not there is skipped; `make servers`
// fetches them. The servers last for the whole run, so each test begins by deleting all keys.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>

#include "lock_store_suite.hpp"
#include "store/etcd/etcd_client.hpp"
#include "store/etcd/etcd_locks.hpp"
#include "store/etcd/http2_transport.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/net/threaded_streams.hpp"
#include "tests/store/etcd/test_etcd.hpp"

namespace trinco::test {
namespace {

using detail::test::test_etcd;

std::map<std::string, std::unique_ptr<test_etcd>> servers;

class end_servers final : public ::testing::Environment {
public:
    void TearDown() override { servers.clear(); }
};
const auto* const at_the_end = ::testing::AddGlobalTestEnvironment(new end_servers);

class etcd_world final : public lock_store_world {
public:
    explicit etcd_world(test_etcd& server) : server_(server) {
        server_.must({"del", "", "--prefix"});
    }
    detail::loop& on() override { return on_; }
    lock_store& store() override { return a_; }
    lock_store& other() override { return b_; }
    void run_for(boot_clock::duration d) override { on_.run_for(d); }
    boot_clock::duration settle_time() const override { return 200ms; }
    std::chrono::seconds short_ttl() const override { return 3s; }
    boot_clock::duration expiry_slack() const override { return 2s; }
    bool tells_held_at_once() const override { return false; }

private:
    std::unique_ptr<detail::etcd::rpc> link() {
        std::vector<detail::stream_address> members{
            detail::stream_address::tcp("127.0.0.1", server_.port())};
        return detail::etcd::make_etcd_client(
            on_,
            detail::etcd::make_http2_transport(
                on_, std::make_unique<detail::test::threaded_streams>(on_), members, {}),
            {});
    }

    test_etcd& server_;
    detail::test::driven_loop on_;
    detail::etcd_locks a_{on_, link()};
    detail::etcd_locks b_{on_, link()};
};

lock_store_case of_version(const std::string& name, const std::string& kind) {
    return {name, [kind]() -> std::unique_ptr<lock_store_world> {
                auto& server = servers[kind];
                if (!server) {
                    const auto program = detail::test::find_etcd(kind);
                    if (!program) return nullptr;
                    server = std::make_unique<test_etcd>(
                        detail::test::etcd_settings{.program = *program});
                }
                return std::make_unique<etcd_world>(*server);
            }};
}

INSTANTIATE_TEST_SUITE_P(Etcd, LockStore,
                         ::testing::Values(of_version("V3_5", "etcd"),
                                           of_version("V3_4", "etcd-3.4"),
                                           of_version("V3_6", "etcd-3.6")),
                         lock_case_name);

}  // namespace
}  // namespace trinco::test
