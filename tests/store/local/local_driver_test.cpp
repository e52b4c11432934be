// What a program that takes a lock finds prepared is what taking one needs.
#include "store/local/local_driver.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <memory>

#include "store/local/local_queues.hpp"
#include "tests/store/local/scratch_folder.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

TEST(LocalDriver, EveryStatementThatIsPreparedAheadIsUsedByALockThatIsFree) {
    scratch_folder folder;
    local_file in(local_settings_for(folder.file()), "local:x");
    for (const auto sql : statements_of_a_lock()) in.db().prepare_ahead(sql);
    ASSERT_EQ(in.db().left_ahead(), statements_of_a_lock().size()) << "one is there twice";

    const auto lives = std::make_shared<local_lives>(folder.file().string() + "-live");
    const local_process self{"socket", ::getpid(), "pid:[1]"};
    std::string lease_id;
    {
        local_round after;
        in.begin(false);
        local_queues q(in, after, lives, self);
        const auto opened = q.open(10s, "test");
        ASSERT_FALSE(opened.error);
        lease_id = opened.value.id;
        claim what;
        what.lease = lease_id;
        what.id = {7};
        what.parts = {{"job", claim_kind::exclusive}};
        ASSERT_FALSE(q.enter(what).error);
        ASSERT_TRUE(q.given());
        in.commit();
        for (auto& f : after.committed) f();
    }
    {
        local_round after;
        in.begin(false);
        local_queues(in, after, lives, self).revoke(lease_id);
        in.commit();
        for (auto& f : after.committed) f();
    }
    EXPECT_EQ(in.db().left_ahead(), 0U);
}

TEST(LocalDriver, AStatementIsTakenByItsTextAndOnce) {
    scratch_folder folder;
    local_file in(local_settings_for(folder.file()), "local:x");
    in.db().prepare_ahead("SELECT 7");
    in.db().prepare_ahead("SELECT 7");
    EXPECT_EQ(in.db().left_ahead(), 1U);
    static constexpr const char* text = "SELECT 7";
    auto& taken = in.db().prepared(text);
    EXPECT_EQ(in.db().left_ahead(), 0U);
    EXPECT_EQ(&taken, &in.db().prepared(text));
    query q(taken);
    ASSERT_TRUE(q.next());
    EXPECT_EQ(q.number(0), 7);
}

}  // namespace
}  // namespace trinco::detail::test
