// What a store of locks remembers of leases and claims: what it entered, and no more.
#include "store/etcd/etcd_claims.hpp"

#include "etcd_locks_world.hpp"
#include "store/etcd/etcd_calls.hpp"

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

TEST_F(EtcdClaims, LeasesOfRecordsAreForgottenWhenTheyAreGivenToNobodyAnyMore) {
    for (int i = 0; i < 50; ++i) ASSERT_FALSE(keep(1h + std::chrono::seconds(i)));
    EXPECT_EQ(known_->record_leases().size(), 50U);
    world_.run_for(10min);
    ASSERT_FALSE(keep(1h));
    EXPECT_EQ(known_->record_leases().size(), 1U);
}

}  // namespace
}  // namespace trinco::test
