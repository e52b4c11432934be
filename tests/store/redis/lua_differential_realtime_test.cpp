// The scripts on a real server against the C++ record, over random histories of exchanges, looks,
// probes, controls, steps of the clock, lost replies, lost data and roll-backs. TRINCO_HISTORIES
// sets how many of each of the three kinds; RC_PARAMS replays one as usual.
#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <cstdlib>
#include <iterator>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/core/property.hpp"
#include "tests/store/redis/lua_history.hpp"
#include "tests/store/redis/test_server.hpp"

namespace trinco::detail::test {
namespace {

using trinco::test::holds;

int histories() {
    const char* const wanted = std::getenv("TRINCO_HISTORIES");
    const int n = wanted != nullptr ? std::atoi(wanted) : 0;
    return n > 0 ? n : 500;
}

class LuaDifferential : public testing::Test {
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

// In a history of recovery little happens but failures and probes.
void make_it_recover(std::vector<lua_step>& steps) {
    constexpr std::uint8_t often[] = {0, 0, 2, 3, 7, 8, 7, 9, 10, 11, 9, 10, 12, 17};
    for (lua_step& s : steps) {
        if (s.what % 7 != 0) s.what = often[s.what % std::size(often)];
    }
    steps.insert(steps.begin(), {{3, 0, 0, 1}, {3, 1, 0, 1}, {13, 0, 0, 1}});
}

// In a flapping one the breaker is tripped again and again, while probes from before are out.
void make_it_flap(std::vector<lua_step>& steps) {
    constexpr std::uint8_t often[] = {0, 1, 1, 7, 7, 8, 9, 10, 11, 12, 13};
    for (lua_step& s : steps) {
        if (s.what % 7 != 0) s.what = often[s.what % std::size(often)];
        if (s.what == 13) s = {13, 0, 0, 1};  // trip, for 101 ms
    }
    steps.insert(steps.begin(), {{3, 0, 0, 1}, {3, 1, 0, 1}, {13, 0, 0, 1}});
}

std::vector<lua_step> some_history() {
    const auto one =
        rc::gen::build<lua_step>(rc::gen::set(&lua_step::what), rc::gen::set(&lua_step::who),
                                 rc::gen::set(&lua_step::a), rc::gen::set(&lua_step::b));
    const auto length = *rc::gen::inRange<std::size_t>(1, 160);
    return *rc::gen::container<std::vector<lua_step>>(length, one);
}

void expect_no_difference(loaded_scripts& scripts, std::vector<lua_step> steps) {
    lua_history h(scripts, *rc::gen::arbitrary<std::uint32_t>());
    if (const auto difference = h.take_steps(steps)) RC_FAIL(*difference);
}

TEST_F(LuaDifferential, ScriptsAnswerAsTheRecordDoes) {
    loaded_scripts scripts(connection());
    EXPECT_TRUE(holds("the scripts are the record", histories(),
                      [&] { expect_no_difference(scripts, some_history()); }));
}

TEST_F(LuaDifferential, ScriptsAnswerAsTheRecordDoesWhileItRecovers) {
    loaded_scripts scripts(connection());
    EXPECT_TRUE(holds("the scripts are the record in half-open", histories(), [&] {
        auto steps = some_history();
        make_it_recover(steps);
        expect_no_difference(scripts, steps);
    }));
}

TEST_F(LuaDifferential, ScriptsAnswerAsTheRecordDoesWhileItFlaps) {
    loaded_scripts scripts(connection());
    EXPECT_TRUE(holds("the scripts are the record in a flapping one", histories(), [&] {
        auto steps = some_history();
        make_it_flap(steps);
        expect_no_difference(scripts, steps);
    }));
}

// ---- planted bugs -------------------------------------------------------------------------------

bool is_found(test_connection& on, const loaded_scripts::bug& planted) {
    loaded_scripts scripts(on, planted);
    std::mt19937 random(4711);
    for (int n = 0; n < 2'000; ++n) {
        std::vector<lua_step> steps(random() % 160);
        for (lua_step& s : steps) {
            s.what = static_cast<std::uint8_t>(random());
            s.who = static_cast<std::uint8_t>(random());
            s.a = static_cast<std::uint16_t>(random());
            s.b = static_cast<std::uint16_t>(random());
        }
        if (n % 3 == 0) make_it_recover(steps);
        if (n % 3 == 1) make_it_flap(steps);
        lua_history h(scripts, static_cast<std::uint32_t>(random()));
        if (h.take_steps(steps)) return true;
    }
    return false;
}

TEST_F(LuaDifferential, FindsPlantedBugs) {
    using s = redis_script;
    const loaded_scripts::bug bugs[] = {
        *lua_mutant("redis_lease_without_era"),
        *lua_mutant("redis_refusal_prolongs_life"),
        {s::probe, "if r.taken_over_at ~= 0 and t < quarantined", "if false"},
        {s::exchange, "local counted = seq ~= 0 and not repeated", "local counted = seq ~= 0"},
        {s::exchange, "elseif crossed and is_cold(t)", "elseif false"},
        {s::exchange, "why and failing >= quorum_of(live, t)", "why"},
        {s::control, "return not at", "return true"},
        {s::probe, "if gen >= r.results_gen then", "if true then"},
        {s::exchange, "if gen == r.window_gen then", "if true then"},
        {s::exchange, "set_aside == 1 and gen >= r.forgiven_gen", "set_aside == 1"},
        {s::look, "or tonumber(ARGV[3]) ~= options_stamp", ""},
        {s::look, "or (suspect_since ~= 0 and t - suspect_since >= flush_wait)", ""},
    };
    for (const auto& b : bugs) {
        EXPECT_TRUE(is_found(connection(), b)) << "instead of: " << b.from;
    }
}

}  // namespace
}  // namespace trinco::detail::test
