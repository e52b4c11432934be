// Keys, values, flags and handles, there and back.
#include "store/consul/consul_layout.hpp"

#include <gtest/gtest.h>

namespace trinco::test {
namespace {

using namespace detail;
using namespace detail::consul;

TEST(ConsulLayout, ALockLiesWhereConsulLockHasIt) {
    EXPECT_EQ(lock_key("", "a/b", false), "a/b/.lock");
    EXPECT_EQ(lock_key("team/", "a", false), "team/a/.lock");
    EXPECT_EQ(lock_key("", "a", true), "a");
    EXPECT_EQ(name_of_key("", "a/b/.lock", false), "a/b");
    EXPECT_EQ(name_of_key("team/", "team/a/.lock", false), "a");
    EXPECT_EQ(name_of_key("", "a", true), "a");
    for (const auto* key : {"a", ".lock", "/.lock", "a.lock", "/a/.lock", "a//.lock"}) {
        EXPECT_FALSE(name_of_key("", key, false)) << key;
    }
    EXPECT_FALSE(name_of_key("team/", "a/.lock", false));
}

TEST(ConsulLayout, NamesThatConsulCannotHaveAreRefusedWithASentence) {
    EXPECT_FALSE(check_consul_name("a/b.c-d_e"));
    for (const auto* name :
         {"/a", ".lock", "a/.lock", "", "a//b", "a b", ".", "./a", "a/./b", "a/."}) {
        const auto bad = check_consul_name(name);
        ASSERT_TRUE(bad) << name;
        EXPECT_GT(bad->size(), 10U);
    }
}

TEST(ConsulLayout, KeysThatNoPathNamesAreToldInASentence) {
    for (const auto* key :
         {"a", "a/b", "acc:7/.x", "a/..b", "..a", "...", "trinco:records/once/x"}) {
        EXPECT_FALSE(check_segments(key)) << key;
    }
    for (const auto* key : {"", ".", "..", "a/", "/a", "a//b", "a:1/./b", "a:1/..", "../a:1"}) {
        const auto bad = check_segments(key);
        ASSERT_TRUE(bad) << key;
        EXPECT_TRUE(bad->starts_with('"' + std::string(key) + "\" has a segment")) << *bad;
    }
    EXPECT_FALSE(name_of_key("", "a/./b/.lock", false));
}

TEST(ConsulLayout, ANoteIsReadAsItWasWritten) {
    owner_note note;
    note.id = {7};
    note.since = 1'700'000'000'000;
    note.held = note.since + 1;
    note.token = (std::uint64_t{255} << 45U) + 9;
    note.info = "two\nlines";
    auto back = note_of(text_of(note));
    ASSERT_TRUE(back);
    EXPECT_EQ(back->id, note.id);
    EXPECT_EQ(back->since, note.since);
    EXPECT_EQ(back->held, note.held);
    EXPECT_EQ(back->token, note.token);
    EXPECT_EQ(back->info, note.info);
    EXPECT_FALSE(back->evicted);
    note.evicted = eviction{"who", "why"};
    back = note_of(text_of(note));
    ASSERT_TRUE(back && back->evicted);
    EXPECT_EQ(back->evicted->who, "who");
    EXPECT_EQ(back->evicted->why, "why");
    EXPECT_EQ(back->info, note.info);
    EXPECT_EQ(back->lease, "");
    note.lease = "00000000-0000-0000-0000-00000000000a";
    for (const bool evicted : {true, false}) {
        if (!evicted) note.evicted.reset();
        back = note_of(text_of(note));
        ASSERT_TRUE(back);
        EXPECT_EQ(back->lease, note.lease);
        EXPECT_EQ(back->evicted.has_value(), evicted);
        EXPECT_EQ(back->info, note.info);
    }
    for (const auto* text : {"", "leader 1", "trinco/1 x", "trinco/1 1 2 3 4 0", "trinco/2 1 2 3",
                             "trinco/1 1 2 3 4 0 \n\n\n", "trinco/1 1 2 3 4 0 lease\n\n\n",
                             "trinco/1 1 2 3 4 x\n\n\n"}) {
        EXPECT_FALSE(note_of(text)) << text;
    }
}

TEST(ConsulLayout, AHandleNamesOneEntry) {
    key_value kv;
    kv.key = "a/.lock";
    kv.session = "00000000-0000-0000-0000-000000000001";
    kv.create_index = 12;
    kv.lock_index = 3;
    const auto parts = parts_of_handle(handle_of(kv));
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->id, id_of(kv));
    EXPECT_EQ(parts->key, kv.key);
    owner_note note;
    note.lease = "00000000-0000-0000-0000-00000000000a";
    kv.value = text_of(note);
    EXPECT_TRUE(handle_of(kv).starts_with(kv.session + "/")) << "of a lock the lease holds it";
    kv.flags = semaphore_flags;
    kv.key = "a/" + kv.session;
    const auto permit = handle_of(kv);
    EXPECT_TRUE(permit.starts_with(note.lease + "/" + kv.session + "/")) << permit;
    ASSERT_TRUE(parts_of_handle(permit));
    EXPECT_EQ(parts_of_handle(permit)->id, id_of(kv));
    EXPECT_EQ(parts_of_handle(permit)->key, kv.key);
    for (const auto* text : {"", "x", "s/1 k", "s/1.2", "s/1.2 ", "/1.2 k", "s/x.2 k", "s//1.2 k",
                             "1.2 k", "s 1/1.2 k"}) {
        EXPECT_FALSE(parts_of_handle(text)) << text;
    }
}

TEST(ConsulLayout, FlagsTellWhenSomethingExpires) {
    key_value kv;
    EXPECT_FALSE(has_expired(kv, 5'000'000'000));
    kv.flags = flags_until(100);
    EXPECT_FALSE(has_expired(kv, 99));
    EXPECT_TRUE(has_expired(kv, 100));
    EXPECT_EQ(flags_until(0), 0U);
    kv.flags = lock_flags;
    EXPECT_FALSE(has_expired(kv, 5'000'000'000)) << "of others";
    kv.flags = ~std::uint64_t{0};
    EXPECT_FALSE(has_expired(kv, 5'000'000'000));
}

}  // namespace
}  // namespace trinco::test
