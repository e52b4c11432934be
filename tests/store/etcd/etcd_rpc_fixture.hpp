// The rpc and real servers to ask, for tests with the name of a server as their parameter.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "etcd_rpc_client.hpp"
#include "test_etcd.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

class EtcdRpc : public testing::TestWithParam<const char*> {
protected:
    void start(etcd_settings with = {}) {
        const auto program = find_etcd(GetParam());
        if (!program) GTEST_SKIP() << "there is no " << GetParam() << "; try `make servers`";
        with.program = *program;
        servers_.emplace(std::move(with));
        connect();
    }
    // What takes seconds runs on 3.5 alone, unless TRINCO_ETCD_LONG is set.
    void start_long(etcd_settings with = {}) {
        if (std::string(GetParam()) != "etcd" && std::getenv("TRINCO_ETCD_LONG") == nullptr) {
            GTEST_SKIP() << "takes seconds; with TRINCO_ETCD_LONG=1 it runs on all versions";
        }
        start(std::move(with));
    }
    void connect(std::optional<tls_settings> tls = {}, etcd::credentials who = {}) {
        client_.emplace(ports(), std::move(tls), std::move(who));
    }
    [[nodiscard]] std::vector<std::uint16_t> ports() const {
        std::vector<std::uint16_t> all;
        for (std::size_t i = 0; i < servers_->size(); ++i) all.push_back(servers_->port(i));
        return all;
    }
    static bool comes_true(const std::function<bool()>& is_so,
                           std::chrono::milliseconds within = 20s) {
        for (const auto end = boot_clock::now() + within; boot_clock::now() < end;) {
            if (is_so()) return true;
            ::poll(nullptr, 0, 5);
        }
        return false;
    }

    std::optional<test_etcd> servers_;
    std::optional<etcd_rpc_client> client_;
};

#define START_OR_SKIP(...) \
    start(__VA_ARGS__);    \
    if (IsSkipped()) return
#define START_LONG_OR_SKIP(...) \
    start_long(__VA_ARGS__);    \
    if (IsSkipped()) return

}  // namespace trinco::detail::test
