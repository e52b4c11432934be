// Several processes ask the scripts of a real server for probes, their steps in a random order:
// what one has read is old when it acts. Whatever the order, no more probes are out than allowed.
// Each asker reads what is left before it asks, and hands it on; the script does not look at it.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "tests/core/property.hpp"
#include "tests/core/record_lab.hpp"
#include "tests/store/redis/loaded_scripts.hpp"
#include "tests/store/redis/test_server.hpp"

namespace trinco::detail::test {
namespace {

using trinco::test::holds;

constexpr const char* breaker = "payments";
constexpr std::uint32_t processes = 5;
constexpr std::uint32_t allowed = 2;

breaker_identity identity(std::uint32_t n) {
    return {"i" + std::to_string(n), "v" + std::to_string(n)};
}

class askers {
public:
    explicit askers(loaded_scripts& scripts) : scripts_(scripts) {
        const auto keys = breaker_keys("test", breaker);
        scripts_.server().call({"DEL", keys[0], keys[1], keys[2]});
        news n;
        n.breaker = breaker;
        policy p = plain_policy();
        p.half_open_probes = allowed;
        p.quorum = 1;
        n.options = to_text(p);
        known_ = verdict_from(ask(*call_of("test", identity(0), n))).value.fleet;
        control_request c;
        c.breaker = breaker;
        c.id = 1;
        c.verb = control_verb::trip;
        c.expires = 10ms;
        known_ = view_from(ask(*call_of("test", c))).value;
        now_ += 10ms;
    }

    // This process's next step: it reads, or it asks with what it has read, or it gives back what
    // it got. The probes that are out afterwards.
    [[nodiscard]] std::size_t step(std::uint32_t n) {
        auto& mine = askers_[n];
        if (mine.token) {
            (void)probe(n, *mine.token, probe_step::give_back, 0);
            mine.token.reset();
            --out_;
        } else if (!mine.left_then) {
            const auto seen = report_from(ask(inspect_call("test", breaker)), breaker);
            mine.left_then = seen.value->now.probes_left;
        } else {
            const std::uint64_t token = ++tokens_;
            if (probe(n, token, probe_step::take, *mine.left_then).granted) {
                mine.token = token;
                ++out_;
            }
            mine.left_then.reset();
        }
        return out_;
    }

private:
    struct asker {
        std::optional<std::uint16_t> left_then;
        std::optional<std::uint64_t> token;
    };

    [[nodiscard]] resp_reply ask(const script_call& call) {
        scripts_.send(call, now_);
        return scripts_.server().receive();
    }
    [[nodiscard]] probe_reply probe(std::uint32_t n, std::uint64_t token, probe_step s,
                                    std::uint16_t left_then) {
        probe_request p;
        p.breaker = breaker;
        p.mine = known_;
        p.token = token;
        p.step = s;
        auto call = *call_of("test", identity(n), p);
        call.arguments.push_back(std::to_string(left_then));
        return probe_reply_from(ask(call)).value;
    }

    loaded_scripts& scripts_;
    store_time now_{std::chrono::seconds(1'700'000'000)};
    view known_;
    asker askers_[processes];
    std::uint64_t tokens_ = 0;
    std::size_t out_ = 0;
};

// The most probes that were out at once.
std::size_t most_out(loaded_scripts& scripts, const std::vector<std::uint8_t>& order) {
    askers all(scripts);
    std::size_t most = 0;
    for (const std::uint8_t n : order) most = std::max(most, all.step(n % processes));
    return most;
}

class LuaInterleaving : public testing::Test {
protected:
    void SetUp() override {
        const auto program = find_redis_server();
        if (!program) {
            GTEST_SKIP() << "there is no redis-server and no valkey-server in PATH; `make servers` "
                            "gets one";
        }
        server_.emplace(*program);
        connection_.emplace(server_->socket());
    }
    [[nodiscard]] test_connection& connection() { return *connection_; }

private:
    std::optional<test_server> server_;
    std::optional<test_connection> connection_;
};

TEST_F(LuaInterleaving, NoMoreProbesAreOutThanAllowedWhateverTheOrder) {
    loaded_scripts scripts(connection());
    EXPECT_TRUE(holds("probes that are out", 300, [&] {
        const auto most = most_out(scripts, *rc::gen::arbitrary<std::vector<std::uint8_t>>());
        RC_ASSERT(most <= allowed);
        RC_TAG(most);
    }));
}

TEST_F(LuaInterleaving, FindsAReadOutsideTheScript) {
    loaded_scripts bad(connection(), lua_mutant("redis_reads_outside_the_script"));
    std::mt19937 random(4711);
    std::size_t most = 0;
    for (int n = 0; n < 200 && most <= allowed; ++n) {
        std::vector<std::uint8_t> order(random() % 40);
        for (auto& who : order) who = static_cast<std::uint8_t>(random());
        most = most_out(bad, order);
    }
    EXPECT_GT(most, allowed);
}

}  // namespace
}  // namespace trinco::detail::test
