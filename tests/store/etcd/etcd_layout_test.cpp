#include "store/etcd/etcd_layout.hpp"

#include <gtest/gtest.h>

#include "core/names.hpp"

namespace trinco::detail::etcd {
namespace {

TEST(EtcdLayout, KeysAreThoseOfGo) {
    EXPECT_EQ(entry_key("foo", 0x2040a227926bf00b, {1}), "foo/2040a227926bf00b");
    EXPECT_EQ(entry_key("a/b", 0x1f, {12}), "a/b/1f.12");
    EXPECT_EQ(place_of_key("a/b/1f.12"), (entry_place{"a/b", 0x1f, {12}}));
    EXPECT_EQ(place_of_key("/lead/1f"), (entry_place{"/lead", 0x1f, {1}}));
}

TEST(EtcdLayout, WhatIsNotAnEntryIsNone) {
    for (const auto* key : {"", "foo", "/1f", "a/", "a/1F", "a/01f", "a/xyz", "a/1f.", "a/1f.x",
                            "a/1f.1", "a/1f.01", "a/1f.2.3", "a/0x1f", "a/1f "}) {
        EXPECT_FALSE(place_of_key(key).has_value()) << key;
    }
    key_value kv;
    kv.key = "a/1f";
    EXPECT_FALSE(entry_of(kv).has_value()) << "a key without a lease";
    kv.lease = 0x20;
    EXPECT_FALSE(entry_of(kv).has_value()) << "the key of another lease";
    kv.lease = 0x1f;
    EXPECT_TRUE(entry_of(kv).has_value());
}

TEST(EtcdLayout, NotesComeBackAsTheyWere) {
    owner_note note;
    note.asks = {claim_kind::permit, 3};
    note.since = 1'700'000'000'000;
    note.info = "host 4711\nwith lines\n";
    auto back = note_of(text_of(note)).value();
    EXPECT_EQ(back.asks, note.asks);
    EXPECT_EQ(back.since, note.since);
    EXPECT_EQ(back.info, note.info);
    EXPECT_FALSE(back.evicted.has_value());
    note.held = 5;
    note.token = (std::uint64_t{1} << 53) - 1;
    note.evicted = eviction{"", "maintenance at noon"};
    note.info.clear();
    back = note_of(text_of(note)).value();
    EXPECT_EQ(back.held, 5);
    EXPECT_EQ(back.token, note.token);
    ASSERT_TRUE(back.evicted.has_value());
    EXPECT_EQ(back.evicted->who, "");
    EXPECT_EQ(back.evicted->why, "maintenance at noon");
    EXPECT_EQ(back.info, "");
}

TEST(EtcdLayout, WhatOthersWroteIsExclusive) {
    for (const auto* value :
         {"", "a proposal", "trinco/2 shared 0 0 0 0 0\n\n\n", "trinco/1 shared 0 0 0 0\n\n\n",
          "trinco/1 shared 7 0 0 0 0\n\n\n", "trinco/1 permit 0 0 0 0 0\n\n\n",
          "trinco/1 many 0 0 0 0 0\n\n\n", "trinco/1 shared 0 0 0 0 0\n"}) {
        EXPECT_EQ(seat_of(value), (seat{claim_kind::exclusive, 0})) << value;
    }
    EXPECT_EQ(seat_of("trinco/1 shared 0 0 0 0 0\n\n\n"), (seat{claim_kind::shared, 0}));
}

TEST(EtcdLayout, RecordsAreInNobodysQueue) {
    const auto records = std::string(records_prefix) + "x/1f";
    // A name that has them in its queue would have to be "trinco:records", which is none.
    EXPECT_TRUE(check_lock_name("trinco:records").has_value());
    EXPECT_TRUE(check_lock_name("trinco:records/x").has_value());
    EXPECT_EQ(place_of_key(records)->name, "trinco:records/x");
}

}  // namespace
}  // namespace trinco::detail::etcd
