// Sessions that have run out, in the file.
#include "store/local/local_queues.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>
#include <string>

#include "tests/store/local/scratch_folder.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

// Who watches has seen one that has run out; who opened it has not said when to sweep.
TEST(LocalQueues, ReapingRemovesWhoHasRunOutThoughItIsNotTimeToSweep) {
    scratch_folder folder;
    local_file in(local_settings_for(folder.file()), "local:x");
    const auto lives = std::make_shared<local_lives>(folder.file().string() + "-live");
    const local_process self{"socket", ::getpid(), "pid:[1]"};
    const auto within = [&](auto f) {
        local_round after;
        in.begin(false);
        local_queues q(in, after, lives, self);
        f(q);
        in.commit();
        for (auto& done : after.committed) done();
    };
    within([](local_queues& q) {
        ASSERT_FALSE(q.open(10s, "over").error);
        ASSERT_FALSE(q.open(10s, "goes on").error);
        ASSERT_FALSE(q.open(10s, "goes on").error);
    });
    query(in.db().prepared("UPDATE sessions SET ends = 1 WHERE label = 'over'")).run();
    query(in.db().prepared("UPDATE machine SET sweep_at = ?"), in.now().count() + 3'600'000'000)
        .run();
    within([](local_queues& q) { q.reap({}); });
    EXPECT_EQ(in.db().number("SELECT count(*) FROM sessions WHERE label = 'over'"), 0);
    EXPECT_EQ(in.db().number("SELECT count(*) FROM sessions"), 2);
    EXPECT_EQ(in.db().number("SELECT sweep_at = min(ends) FROM machine, sessions"), 1);
}

}  // namespace
}  // namespace trinco::detail::test
