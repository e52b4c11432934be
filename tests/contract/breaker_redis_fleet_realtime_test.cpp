// The contract of breaker_store on redis, through Sentinels and in a cluster. A fleet of servers is
// started once for all cases, which find it empty; so all of them are one test of ctest, which
// leaves out what takes long and does not depend on the way to a server (see CMakeLists.txt); run
// by hand, all are run. What a fleet may lose is not the suite's: see the tests of the routes.
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "store/redis/redis_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/net/threaded_streams.hpp"
#include "tests/store/redis/test_fleet_of_servers.hpp"

namespace trinco::detail::test {
namespace {

// Nobody is replaced because a busy machine let it wait.
constexpr auto never = 60s;

using server_list = std::vector<fleet_process*>;

class fleet_fixture : public breaker_store_fixture {
public:
    // `primaries` hold the data, all of `servers` pass messages on.
    fleet_fixture(const std::string& url, const server_list& primaries, server_list servers)
        : target_(std::get<redis_target>(parse_redis_url(url))), servers_(std::move(servers)) {
        for (const auto* one : primaries) (void)one->call({"FLUSHALL"});
    }

    std::unique_ptr<breaker_store> make_store(breaker_identity who) override {
        auto made = std::make_unique<redis_breakers>(
            on_,
            [this](redis_route::on_event changed) {
                return make_redis_route(on_, streams_, target_, std::move(changed));
            },
            "suite", std::move(who));
        // What happens before it has connected is not what the suite is about.
        const op warm = made->subscribe([](const notice&) {});
        EXPECT_TRUE(on_.run_until([&] { return made->hears() && answers(*made); }, 5s));
        return made;
    }
    loop& on() override { return on_; }
    void pass(milliseconds d) override { on_.run_for(d); }
    bool run_until(const std::function<bool()>& done, milliseconds limit) override {
        return on_.run_until(done, limit);
    }
    faults can() override {
        faults f;
        f.miss_messages = [this] {
            for (const auto* one : servers_) (void)one->call({"CLIENT", "KILL", "TYPE", "pubsub"});
        };
        f.drop_replies = [this](bool drop) { streams_.drop_replies(drop); };
        f.drop_requests = [this](bool drop) { streams_.drop_requests(drop); };
        return f;
    }
    [[nodiscard]] milliseconds slack() const override { return 100ms; }
    [[nodiscard]] bool is_exact() const override { return false; }

private:
    // Each node of a cluster is connected to when it is asked something.
    bool answers(redis_breakers& store) {
        for (const auto* key : {"{a}", "{b}", "{c}", "{d}"}) {
            const op ask = store.route().request(
                key, "*2\r\n$6\r\nEXISTS\r\n$3\r\n" + std::string(key) + "\r\n", on_.now() + 1s,
                [](std::error_code, const resp_reply&) {});
            on_.run_for(5ms);
            if (!store.route().up(key)) return false;
        }
        return true;
    }

    redis_target target_;
    server_list servers_;
    driven_loop on_;
    threaded_streams streams_{on_};
};

std::unique_ptr<breaker_store_fixture> with_sentinels(const std::string& kind) {
    const auto program = find_server_of(kind);
    if (!program) return nullptr;
    static sentinel_fleet fleet(*program, {}, never);
    return std::make_unique<fleet_fixture>(fleet.url(), server_list{&fleet.servers[0]},
                                           server_list{&fleet.servers[0]});
}

std::unique_ptr<breaker_store_fixture> in_a_cluster(const std::string& kind) {
    const auto program = find_server_of(kind);
    if (!program) return nullptr;
    static cluster_fleet fleet(*program, {}, never);
    server_list all;
    for (auto& one : fleet.nodes) all.push_back(&one);
    return std::make_unique<fleet_fixture>(fleet.url(), server_list(all.begin(), all.begin() + 3),
                                           all);
}

INSTANTIATE_BREAKER_STORE_SUITE(sentinel, [] { return with_sentinels("valkey"); });
INSTANTIATE_BREAKER_STORE_SUITE(cluster, [] { return in_a_cluster("redis"); });

}  // namespace
}  // namespace trinco::detail::test
