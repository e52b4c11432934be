// The contract of breaker_store on redis: on real servers, with connections of their own for each
// store object, as separate processes have them. A kind of server that is not there is skipped;
// `make servers` fetches both. With TRINCO_REDIS_LONG=1 in the environment the whole suite runs on
// Valkey, too, and cases that wait for half a minute run; otherwise Valkey is for who has no Redis.
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>

#include "store/redis/redis_breakers.hpp"
#include "tests/contract/breaker_store_suite.hpp"
#include "tests/contract/driven_loop.hpp"
#include "tests/net/threaded_streams.hpp"
#include "tests/store/redis/test_server.hpp"

namespace trinco::detail::test {
namespace {

bool is_long() {
    const char* const set = std::getenv("TRINCO_REDIS_LONG");
    return set != nullptr && *set != '\0';
}

class redis_fixture : public breaker_store_fixture {
public:
    explicit redis_fixture(const std::string& program) : server_(program) {}

    std::unique_ptr<breaker_store> make_store(breaker_identity who) override {
        auto made = std::make_unique<redis_breakers>(
            on_,
            [this](redis_route::on_event changed) {
                redis_target target;
                target.nodes.push_back(stream_address::local(server_.socket()));
                return make_redis_route(on_, streams_, target, std::move(changed));
            },
            "suite", std::move(who));
        // What happens before it has connected is not what the suite is about.
        const op warm = made->subscribe([](const notice&) {});
        const auto connected = [&] { return made->route().up("") && made->hears(); };
        EXPECT_TRUE(on_.run_until(connected, 5s));
        return made;
    }
    loop& on() override { return on_; }
    void pass(milliseconds d) override { on_.run_for(d); }
    bool run_until(const std::function<bool()>& done, milliseconds limit) override {
        return on_.run_until(done, limit);
    }
    faults can() override {
        faults f;
        f.lose_data = [this] { server_.restart(); };
        f.miss_messages = [this] {
            test_connection(server_.socket()).call({"CLIENT", "KILL", "TYPE", "pubsub"});
        };
        f.drop_replies = [this](bool drop) { streams_.drop_replies(drop); };
        f.drop_requests = [this](bool drop) { streams_.drop_requests(drop); };
        if (is_long()) {
            f.breakers_kept = [this] {
                const auto keys =
                    test_connection(server_.socket()).call({"KEYS", "trinco:1:suite:{*}"});
                return keys.elements.size();
            };
        }
        return f;
    }
    [[nodiscard]] milliseconds slack() const override { return 100ms; }
    [[nodiscard]] bool is_exact() const override { return false; }

private:
    test_server server_;
    driven_loop on_;
    threaded_streams streams_{on_};
};

std::unique_ptr<breaker_store_fixture> fixture_on(const std::string& kind) {
    const auto program = find_server_of(kind);
    const bool is_spare = kind == "valkey" && find_server_of("redis") && !is_long();
    if (!program || is_spare) return nullptr;
    return std::make_unique<redis_fixture>(*program);
}

INSTANTIATE_BREAKER_STORE_SUITE(redis, [] { return fixture_on("redis"); });
INSTANTIATE_BREAKER_STORE_SUITE(valkey, [] { return fixture_on("valkey"); });

}  // namespace
}  // namespace trinco::detail::test
