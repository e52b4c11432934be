#include "store/redis/server_life.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <vector>

namespace trinco::detail::test {
namespace {

const std::string id_a(40, 'a');
const std::string id_b(40, 'b');

TEST(ServerLife, the_run_id_is_found_among_the_other_fields) {
    EXPECT_EQ(
        run_id_in("# Server\r\nredis_version:7.0.15\r\nrun_id:" + id_a + "\r\ntcp_port:1\r\n"),
        id_a);
    EXPECT_EQ(run_id_in("run_id:" + id_a), id_a);
    EXPECT_EQ(run_id_in("x:1\nrun_id:" + id_a + "\n"), id_a);
}

TEST(ServerLife, what_is_no_run_id_is_not_believed) {
    for (const std::string info :
         {"", "\r\n", "# Server\r\n", "run_id:\r\n", "run_id:not hexadecimal\r\n",
          "a_run_id:12\r\n", "executable:/run_id:12\r\n", "run_id", "\nrun_id: 12"}) {
        EXPECT_EQ(run_id_in(info), "") << info;
    }
    EXPECT_EQ(run_id_in("run_id:" + std::string(64, '0')), std::string(64, '0'));
    EXPECT_EQ(run_id_in("run_id:" + std::string(65, '0')), "");
    EXPECT_EQ(run_id_in(std::string("run_id:12\0", 10)), "");
}

TEST(ServerLife, any_bytes_are_survived) {
    std::mt19937_64 random(1);
    const std::string alphabet = "run_id:0a\r\n\0";
    for (int i = 0; i < 20'000; ++i) {
        std::string info(random() % 40, ' ');
        for (char& c : info) c = alphabet[random() % alphabet.size()];
        const auto id = run_id_in(info);
        EXPECT_EQ(id.find_first_not_of("0a"), std::string::npos) << info;
        EXPECT_LE(id.size(), 40U);
    }
}

TEST(ServerLife, only_two_known_and_different_lives_are_another_server) {
    server_life life;
    EXPECT_FALSE(life.is_another(""));
    EXPECT_FALSE(life.is_another(id_a));  // the first one
    EXPECT_FALSE(life.is_another(id_a));
    EXPECT_FALSE(life.is_another(""));  // the right to ask was taken away meanwhile
    EXPECT_EQ(life.run_id(), id_a);
    EXPECT_TRUE(life.is_another(id_b));
    EXPECT_FALSE(life.is_another(id_b));
    EXPECT_TRUE(life.is_another(id_a));
}

TEST(ServerLife, the_step_tells_and_refuses_nobody) {
    std::vector<std::string> told;
    const auto step = life_step([&](std::string id) { told.push_back(std::move(id)); });
    EXPECT_EQ(step.words, (std::vector<std::string>{"INFO", "server"}));
    EXPECT_FALSE(step.check(resp_reply::of("run_id:" + id_a + "\r\n")));
    EXPECT_FALSE(step.check(resp_reply::error_of("NOPERM no right")));
    EXPECT_FALSE(step.check(resp_reply::error_of("ERR run_id:" + id_a)));
    EXPECT_FALSE(step.check(resp_reply::of(std::int64_t{3})));
    EXPECT_EQ(told, (std::vector<std::string>{id_a, "", "", ""}));
}

}  // namespace
}  // namespace trinco::detail::test
