// Queues that no one message holds: they are read page by page, and judged as if at once.
#include "etcd_locks_world.hpp"

namespace trinco::test {
namespace {

class EtcdQueue : public EtcdLocks {
protected:
    // Entries as we write them, with the longest information, straight into the queue.
    void crowd(const std::string& name, std::size_t many, seat asks) {
        const auto lease = strange_lease();
        etcd::owner_note note;
        note.asks = asks;
        note.info = std::string(4'096, 'x');
        for (std::size_t i = 0; i < many; ++i) {
            const auto key = etcd::entry_key(name, lease, {++crowded_});
            put(key, etcd::text_of(note), lease);
            keys_.push_back(key);
        }
    }
    // Keys that are in the way of those alone who take every key under the name for an entry.
    void strays(const std::string& name, std::size_t many) {
        for (std::size_t i = 0; i < many; ++i) put(name + "/child" + std::to_string(i), "", 0);
    }
    bool is_granted(const detail::lease& on, std::uint64_t id) {
        const auto waits = await(*a_, on, id);
        world_.run_for(1s);
        return waits->granted();
    }

    std::vector<std::string> keys_;  // of the crowd
    std::uint64_t crowded_ = 0;
};

TEST_F(EtcdQueue, AReaderFindsTheWriterBehindThousandsOfReaders) {
    const auto on = open(*a_, 3'600s);
    ASSERT_FALSE(enter(*b_, make(on, 1, {"n"})));
    crowd("n", 3'000, {claim_kind::shared, 0});
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"}, claim_kind::shared)));
    EXPECT_EQ(enter(*a_, make(on, 3, {"n"}, claim_kind::shared, 0, true)), errc::conflict);
    const auto waits = await(*a_, on, 2);
    world_.run_for(1s);
    EXPECT_FALSE(waits->answer.has_value());
    ASSERT_FALSE(leave(*b_, on, 1));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
    EXPECT_FALSE(enter(*a_, make(on, 4, {"n"}, claim_kind::shared, 0, true))) << "it is free now";
    EXPECT_TRUE(is_granted(on, 4));
}

// What it read far back says nothing about who came since.
TEST_F(EtcdQueue, WhoTriesFarBackFindsTheWriterThatCameMeanwhile) {
    const auto c = hooked_store();
    const auto on = open(*c, 3'600s);
    crowd("n", 3'000, {claim_kind::shared, 0});
    // Before the second page is read, which shows none that came after the first.
    int tries = 0, pages = 0;
    hook_->before_txn = [&](const etcd::txn_request& what) {
        if (puts(what, key_of("n", on))) {
            ++tries;
        } else if (++pages == 1) {
            const auto lease = strange_lease();
            put(etcd::entry_key("n", lease, {1}), "", lease);
        }
        return std::error_code();
    };
    EXPECT_EQ(enter(*c, make(on, 1, {"n"}, claim_kind::shared, 0, true)), errc::conflict);
    EXPECT_EQ(tries, 2) << "it saw readers alone, and found the writer when it was to be granted";
    EXPECT_GE(pages, 2);
    EXPECT_FALSE(etcd_.keys().contains(key_of("n", on)));
}

TEST_F(EtcdQueue, HundredsOfPermitsWithLongNotes) {
    const auto on = open(*a_, 3'600s);
    crowd("n", 400, {claim_kind::permit, 401});
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"}, claim_kind::permit, 401)));
    EXPECT_TRUE(is_granted(on, 1));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"}, claim_kind::permit, 401)));
    const auto waits = await(*a_, on, 2);
    world_.run_for(1s);
    EXPECT_FALSE(waits->answer.has_value());
    erase(keys_.at(200));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted()) << "whichever holder leaves";
    EXPECT_EQ(enter(*a_, make(on, 3, {"n"}, claim_kind::permit, 400)), errc::limit_mismatch);
}

TEST_F(EtcdQueue, SeveralNamesShareOneMessage) {
    const auto on = open(*a_, 3'600s);
    std::vector<std::string> names;
    for (int i = 0; i < 32; ++i) {
        names.push_back("n" + std::to_string(10 + i));
        crowd(names.back(), 60, {claim_kind::shared, 0});
    }
    ASSERT_FALSE(enter(*a_, make(on, 1, names, claim_kind::shared)));
    EXPECT_TRUE(is_granted(on, 1));
    ASSERT_FALSE(enter(*a_, make(on, 2, names, claim_kind::shared, 0, true)));
    EXPECT_TRUE(is_granted(on, 2));
}

TEST_F(EtcdQueue, TensOfThousandsOfKeysThatAreNoEntriesHideNobody) {
    const auto on = open(*a_, 3'600s);
    ASSERT_FALSE(enter(*b_, make(on, 1, {"n"})));
    strays("n", 20'000);
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    const auto waits = await(*a_, on, 2);
    std::vector<std::string> seen;
    const auto observer =
        a_->observe("n", [&](std::optional<entry> e) { seen.push_back(e ? e->handle : "nobody"); });
    world_.run_for(1s);
    EXPECT_FALSE(waits->answer.has_value());
    ASSERT_FALSE(leave(*b_, on, 1));
    world_.run_for(1s);
    EXPECT_TRUE(waits->granted());
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_NE(seen[0].find(key_of("n", on, 1)), std::string::npos);
    EXPECT_NE(seen[1].find(key_of("n", on, 2)), std::string::npos);
    ASSERT_FALSE(leave(*a_, on, 2));
    world_.run_for(1s);
    EXPECT_EQ(seen.back(), "nobody");
}

// A claim of several names, some inside of others, makes keys of one revision in one queue.
TEST_F(EtcdQueue, KeysOfOneRevisionOnTwoPagesAreAllSeen) {
    const auto on = open(*a_, 3'600s);
    std::vector<std::string> names{"n"};
    for (int i = 0; i < 31; ++i) names.push_back("n/" + std::to_string(100 + i));
    ASSERT_FALSE(enter(*b_, make(on, 1, names)));
    ASSERT_FALSE(enter(*a_, make(on, 2, {"n"})));
    EXPECT_FALSE(is_granted(on, 2));
    ASSERT_FALSE(leave(*b_, on, 1));
    EXPECT_TRUE(is_granted(on, 2));
}

}  // namespace
}  // namespace trinco::test
