// Far more breakers in one process than fit into an exchange.
#include <gtest/gtest.h>

#include <algorithm>

#include "fleet_sync_fixture.hpp"

namespace {

using namespace trinco::detail;

struct crowd {
    crowd(sync_world& in, int size) : w(in) {
        for (int i = 0; i < size; ++i) {
            ports.push_back(std::make_unique<remembering_port>());
            members.push_back(w.join(name_of(i), *ports.back()));
        }
        w.run(1s);
        w.store.exchanges.clear();
    }
    [[nodiscard]] static std::string name_of(int i) {
        std::string name = "b";
        name += std::to_string(10000 + i);
        return name;
    }
    void add_to_all() {
        for (const auto& p : ports) p->add(1, 0);
    }
    void fail_urgently() {
        for (const auto& p : ports) p->add(0, 1);
        for (const auto& m : members) m->wake(true);
    }
    [[nodiscard]] std::size_t asked() const {
        std::size_t n = 0;
        for (const auto& p : ports) n += p->asked;
        return n;
    }
    [[nodiscard]] std::size_t collected() const {
        std::size_t n = 0;
        for (const auto& p : ports) n += p->pending.empty() ? 1U : 0U;
        return n;
    }

    sync_world& w;
    std::vector<std::unique_ptr<remembering_port>> ports;
    std::vector<std::unique_ptr<fleet_sync::membership>> members;
};

// The exchange that decides a window which has gone cold.
TEST(FleetSyncCrowd, AFollowUpWaitsBehindNobodyWhoIsDueAfterIt) {
    sync_world w;
    crowd others(w, 100);
    remembering_port port;
    auto options = w.options;
    options.sync_interval = 50ms;
    const auto m = w.sync->join("last", options, port);
    w.run(500ms);
    // Just after the tick of all.
    others.add_to_all();
    while (w.store.exchanges.empty()) w.run(1ms);
    w.run(10ms);
    w.store.delay = 250ms;
    w.store.exchanges.clear();
    others.ports[0]->add(0, 1);
    others.members[0]->wake(true);
    w.run(1ms);
    ASSERT_EQ(w.store.exchanges.size(), 1U);
    w.store.notify({notice::kind_t::flush, "last", {}});  // follow-up in 20 to 70 ms
    others.add_to_all();                                  // due in 89 ms
    w.run(300ms);
    ASSERT_GE(w.store.exchanges.size(), 2U);
    EXPECT_EQ(w.store.exchanges[1].request.size(), max_news);
    EXPECT_EQ(w.store.exchanges[1].request[0].breaker, "last");
}

TEST(FleetSyncCrowd, UrgentOnesStarveNeitherEachOtherNorTheRest) {
    sync_world w;
    crowd urgent(w, 200);
    remembering_port port;
    const auto m = w.join("quiet", port);
    w.run(500ms);
    w.store.delay = 5ms;
    w.store.exchanges.clear();
    port.add(1, 0);
    for (int i = 0; i < 500; ++i) {
        urgent.fail_urgently();
        w.run(1ms);
    }
    EXPECT_EQ(w.store.sent_of("quiet").size(), 1U);
    for (int i = 0; i < 200; ++i) {
        EXPECT_GE(w.store.sent_of(crowd::name_of(i)).size(), 10U) << i;
    }
}

// Asking takes a lock of the breaker, and looks at memory of each core.
TEST(FleetSyncCrowd, StoppingAsksEachBreakerAFewTimesHoweverManyThereAre) {
    constexpr int size = 1000;
    sync_world w;
    crowd all(w, size);
    all.add_to_all();
    const auto before = all.asked();
    std::error_code result = trinco::errc::busy;
    const auto stopping =
        w.sync->stop(w.now() + 10s, [&](std::error_code ec, int) { result = ec; });
    while (result == trinco::errc::busy) w.run(1ms);
    EXPECT_FALSE(result);
    EXPECT_EQ(all.collected(), std::size_t{size}) << "all of the last news is sent";
    all.members.clear();
    w.sync.reset();
    EXPECT_LE(all.asked() - before, std::size_t{4 * size});
}

TEST(FleetSyncCrowd, LeavingAStoreThatIsSilentAsksThemNoMoreOften) {
    constexpr int size = 1000;
    sync_world w;
    crowd all(w, size);
    w.store.silent = true;
    for (int i = size / 2; i < size; ++i) all.ports[static_cast<std::size_t>(i)]->add(1, 0);
    const auto before = all.asked();
    auto stopping = w.sync->stop(w.now() + 50ms, [](std::error_code, int) {});
    w.run(20ms);
    stopping.cancel();
    all.members.clear();
    w.sync.reset();
    EXPECT_LE(all.asked() - before, std::size_t{4 * size});
}

}  // namespace
