// The rpc and real servers to ask.
#pragma once

#include <gtest/gtest.h>
#include <poll.h>

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "consul_rpc_client.hpp"
#include "test_consul.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {

using consul::operation;
using consul::refusal_t;
using verb_t = operation::verb_t;

inline boot_clock::duration took(const std::function<void()>& f) {
    const auto begin = boot_clock::now();
    f();
    return boot_clock::now() - begin;
}

inline bool comes_true(const std::function<bool()>& is_so, std::chrono::milliseconds within = 20s) {
    for (const auto end = boot_clock::now() + within; boot_clock::now() < end;) {
        if (is_so()) return true;
        ::poll(nullptr, 0, 5);
    }
    return false;
}

inline operation doing(verb_t verb, const std::string& key, const std::string& session = {}) {
    operation one;
    one.verb = verb;
    one.key = key;
    one.session = session;
    return one;
}

class ConsulRpc : public testing::Test {
protected:
    void start(consul_settings with = {}) {
        const auto program = find_consul();
        if (!program) GTEST_SKIP() << "there is no consul; try `make servers`";
        with.program = *program;
        servers_.emplace(std::move(with));
        connect();
    }
    void connect(consul::consul_settings with = {}) {
        client_.reset();
        std::vector<std::uint16_t> ports;
        for (std::size_t i = 0; i < servers_->size(); ++i) {
            ports.push_back(with.tls ? servers_->https_port(i) : servers_->port(i));
        }
        client_.emplace(ports, std::move(with));
    }
    // What it says must go well; the reply.
    consul::txn_reply done(const std::vector<operation>& what) {
        const auto answer = client_->txn(what);
        EXPECT_FALSE(answer.error) << client_->trouble();
        EXPECT_TRUE(answer.value.applied);
        return answer.value;
    }
    std::optional<refusal_t> refused(const std::vector<operation>& what) {
        const auto answer = client_->txn(what);
        EXPECT_FALSE(answer.error) << client_->trouble();
        EXPECT_FALSE(answer.value.applied);
        if (answer.value.refusals.empty()) return {};
        return answer.value.refusals[0].why;
    }

    std::optional<test_consul> servers_;
    std::optional<consul_rpc_client> client_;
};

#define START_OR_SKIP(...) \
    start(__VA_ARGS__);    \
    if (IsSkipped()) return

}  // namespace trinco::detail::test
