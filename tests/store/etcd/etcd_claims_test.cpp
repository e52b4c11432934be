// What a store of locks remembers of leases and claims: what it entered, and no more.
#include "store/etcd/etcd_claims.hpp"

#include "etcd_locks_world.hpp"
#include "store/etcd/etcd_calls.hpp"
#include "store/etcd/etcd_hopes.hpp"

namespace trinco::test {
namespace {

class EtcdClaims : public EtcdLocks {
protected:
    std::vector<claim_id> on_lease(const std::string& lease) {
        return ask<std::vector<claim_id>>([&](deadline by, completion<std::vector<claim_id>> f) {
                   return etcd::claims_on(known_, lease, by, std::move(f));
               })
            .value;
    }
    std::error_code keep(std::chrono::seconds how_long) {
        const std::vector<change> one{{"once/k", "x"}};
        return ask<std::uint64_t>([&](deadline by, completion<std::uint64_t> f) {
                   return etcd::write_records(known_, {}, {}, one, how_long, by, std::move(f));
               })
            .error;
    }

    const std::shared_ptr<etcd::claims> known_ = std::make_shared<etcd::claims>(
        node_, std::make_unique<sim::simulated_etcd_client>(node_, etcd_), settings());
};

TEST_F(EtcdClaims, ALeaseThatIsOnlyAskedForIsNotRemembered) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    EXPECT_EQ(on_lease(on.id), (std::vector<claim_id>{{1}}));
    EXPECT_EQ(known_->leases(), 0U);
    on_lease("1234");
    EXPECT_EQ(known_->leases(), 0U);
}

TEST_F(EtcdClaims, AClaimThatWasForgottenDuringALookStaysForgotten) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    known_->lease(on.id).claims[{1}].parts = {{"n", claim_kind::exclusive, 0}};
    std::optional<std::error_code> seen;
    const auto looks =
        etcd::look_at(known_, on.id, {1}, world_.now() + 5s,
                      [&](std::error_code error, const etcd::claim_view&) { seen = error; });
    known_->forget(on.id);
    world_.run_for(1s);
    ASSERT_TRUE(seen.has_value());
    EXPECT_FALSE(*seen);
    EXPECT_EQ(known_->leases(), 0U);
}

TEST_F(EtcdClaims, ALookSaysNothingOfTheClaimThatHasTheNumberMeanwhile) {
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"n"})));
    auto& claims = known_->lease(on.id).claims;
    claims[{1}].parts = {{"n", claim_kind::exclusive, 0}};
    bool seen = false;
    const auto looks =
        etcd::look_at(known_, on.id, {1}, world_.now() + 5s,
                      [&](std::error_code error, const etcd::claim_view&) { seen = !error; });
    claims[{1}].parts = {{"m", claim_kind::exclusive, 0}, {"n", claim_kind::exclusive, 0}};
    world_.run_for(1s);
    ASSERT_TRUE(seen);
    EXPECT_EQ(claims[{1}].created, 0) << "it is still entering";
    EXPECT_TRUE(claims[{1}].tokens.empty());
}

TEST_F(EtcdClaims, LeasesOfRecordsAreForgottenWhenTheyAreGivenToNobodyAnyMore) {
    for (int i = 0; i < 50; ++i) ASSERT_FALSE(keep(1h + std::chrono::seconds(i)));
    EXPECT_EQ(known_->record_leases().size(), 50U);
    world_.run_for(10min);
    ASSERT_FALSE(keep(1h));
    EXPECT_EQ(known_->record_leases().size(), 1U);
}

// A queue that is likely to be empty is not read, but compared with that.
TEST_F(EtcdClaims, WhoIsAloneReadsNothingAndWhoIsNotWaitsAllTheSame) {
    const auto c = hooked_store();
    const auto on = open(*c);
    int hoping = 0;
    int reading = 0;
    hook_->before_txn = [&](const etcd::txn_request& what) {
        if (puts(what, key_of("n", on))) ++(what.success.size() == 1 ? hoping : reading);
        return std::error_code();
    };
    const auto enters = [&](std::uint64_t id, int hopes, int reads) {
        hoping = reading = 0;
        const auto before = ahead(*c, make(on, id, {"n"}));
        EXPECT_EQ(hoping, hopes) << id;
        EXPECT_EQ(reading, reads) << id;
        const auto waits = await(*c, on, id);
        world_.run_for(50ms);
        EXPECT_EQ(waits->granted(), before == 0U) << id;
        EXPECT_FALSE(leave(*c, on, id));
        return before;
    };
    std::uint64_t id = 1;
    for (; id < 4; ++id) EXPECT_EQ(enters(id, 1, 0), 0U);
    ASSERT_FALSE(enter(*c, make(on, id, {"n"}, claim_kind::exclusive, 0, true)));
    EXPECT_EQ(enter(*c, make(on, id, {"n"}, claim_kind::exclusive, 0, true)), std::error_code());
    ASSERT_FALSE(leave(*c, on, id++));
    const auto other = open(*b_);
    ASSERT_FALSE(enter(*b_, make(other, 1, {"n"})));
    EXPECT_EQ(enters(id++, 1, 1), 1U);
    EXPECT_EQ(enters(id++, 0, 1), 1U) << "known not to be empty";
    hoping = reading = 0;
    EXPECT_EQ(enter(*c, make(on, id++, {"n"}, claim_kind::exclusive, 0, true)), errc::conflict);
    EXPECT_EQ(hoping + reading, 1);
    ASSERT_FALSE(leave(*b_, other, 1));
    for (int i = 0; i < etcd::etcd_hopes::patience; ++i) EXPECT_EQ(enters(id++, 0, 1), 0U);
    EXPECT_EQ(enters(id++, 1, 0), 0U);
    const auto strange = strange_lease();
    put("n/stray", "", strange);
    EXPECT_EQ(enters(id++, 1, 1), 0U) << "in nobody's way, and yet there";
    EXPECT_EQ(enters(id++, 0, 1), 0U);
}

TEST_F(EtcdClaims, ANameThatIsFreeIsEnteredTogetherWithOneThatIsNot) {
    const auto other = open(*b_);
    ASSERT_FALSE(enter(*b_, make(other, 1, {"n"})));
    const auto on = open(*a_);
    ASSERT_FALSE(enter(*a_, make(on, 1, {"m", "n"})));
    const auto waits = await(*a_, on, 1);
    world_.run_for(100ms);
    EXPECT_FALSE(waits->granted());
    EXPECT_EQ(etcd_.keys().size(), 3U);
    ASSERT_FALSE(leave(*b_, other, 1));
    world_.run_for(100ms);
    EXPECT_TRUE(waits->granted());
    EXPECT_GT(waits->token(), 0U);
}

}  // namespace
}  // namespace trinco::test
