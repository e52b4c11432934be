#include "core/breaker/series.hpp"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace trinco::detail {
namespace {

constexpr auto closed = breaker_state::closed;
constexpr auto open = breaker_state::open;
constexpr auto half_open = breaker_state::half_open;

struct call {
    fleet_side fleet;
    local_side local;
};

std::vector<call> all_calls() {
    std::vector<call> all;
    for (int bits = 0; bits < 64; ++bits) {
        for (auto fs : {closed, open, half_open}) {
            for (auto ls : {closed, open, half_open}) {
                for (auto over : {override_kind::none, override_kind::forced_open,
                                  override_kind::disabled, override_kind::observing}) {
                    all.push_back({{(bits & 1) != 0, fs, (bits & 2) != 0, (bits & 4) != 0, over,
                                    (bits & 32) != 0},
                                   {ls, (bits & 8) != 0, (bits & 16) != 0}});
                }
            }
        }
    }
    return all;
}

std::string shown(const call& c) {
    return "fleet known " + std::to_string(c.fleet.known) + " state " +
           std::to_string(static_cast<int>(c.fleet.state)) + " due " +
           std::to_string(c.fleet.probing_due) + " outlived " + std::to_string(c.fleet.outlived) +
           " ramp " + std::to_string(c.fleet.ramping) + " over " +
           std::to_string(static_cast<int>(c.fleet.over)) + " local state " +
           std::to_string(static_cast<int>(c.local.state)) + " due " +
           std::to_string(c.local.probing_due) + " ramp " + std::to_string(c.local.ramping);
}

// One row of the table as an operator would draw it; what is not named matches all. The first row
// that matches is the answer.
struct row {
    std::optional<override_kind> over;
    std::optional<bool> known;
    std::optional<breaker_state> fleet;
    std::optional<bool> outlived;
    std::optional<bool> fleet_due;
    std::optional<bool> fleet_ramp;
    std::optional<breaker_state> local;
    std::optional<bool> local_due;
    std::optional<bool> local_ramp;
    decision is;

    [[nodiscard]] bool matches(const call& c) const {
        return over.value_or(c.fleet.over) == c.fleet.over &&
               known.value_or(c.fleet.known) == c.fleet.known &&
               fleet.value_or(c.fleet.state) == c.fleet.state &&
               outlived.value_or(c.fleet.outlived) == c.fleet.outlived &&
               fleet_due.value_or(c.fleet.probing_due) == c.fleet.probing_due &&
               fleet_ramp.value_or(c.fleet.ramping) == c.fleet.ramping &&
               local.value_or(c.local.state) == c.local.state &&
               local_due.value_or(c.local.probing_due) == c.local.probing_due &&
               local_ramp.value_or(c.local.ramping) == c.local.ramping;
    }
};

std::vector<row> rows_of(override_kind over, decision refused_fleet, decision refused_local,
                         decision ramped) {
    const auto any = std::nullopt;
    return {
        // over  known  fleet      outl.  due    ramp   local      due    ramp
        {over, true, half_open, false, any, any, any, any, any, decision::ask_fleet},
        {over, true, open, false, true, any, any, any, any, decision::ask_fleet},
        {over, true, open, false, false, any, any, any, any, refused_fleet},
        {over, any, any, any, any, any, half_open, any, any, decision::ask_local},
        {over, any, any, any, any, any, open, true, any, decision::ask_local},
        {over, any, any, any, any, any, open, false, any, refused_local},
        {over, true, any, any, any, true, closed, any, any, ramped},
        {over, any, any, any, any, any, closed, any, true, ramped},
        {over, true, half_open, true, any, any, closed, any, false, decision::offer_probe},
        {over, true, open, true, any, any, closed, any, false, decision::offer_probe},
        {over, any, any, any, any, any, closed, any, false, decision::admit},
    };
}

std::vector<row> whole_table() {
    const auto any = std::nullopt;
    std::vector<row> table{
        {override_kind::disabled, any, any, any, any, any, any, any, any, decision::admit},
        {override_kind::forced_open, any, any, any, any, any, any, any, any,
         decision::refuse_fleet},
    };
    for (const row& r : rows_of(override_kind::none, decision::refuse_fleet, decision::refuse_local,
                                decision::ramp)) {
        table.push_back(r);
    }
    for (const row& r : rows_of(override_kind::observing, decision::admit_uncounted,
                                decision::admit_uncounted, decision::admit)) {
        table.push_back(r);
    }
    return table;
}

TEST(SeriesTest, EveryCombinationIsDecidedAsTheTableSays) {
    const auto table = whole_table();
    std::size_t seen = 0;
    for (const call& c : all_calls()) {
        const row* found = nullptr;
        for (const row& r : table) {
            if (found == nullptr && r.matches(c)) found = &r;
        }
        ASSERT_NE(found, nullptr) << shown(c);
        EXPECT_EQ(decide(c.fleet, c.local), found->is) << shown(c);
        ++seen;
    }
    EXPECT_EQ(seen, 64U * 9 * 4);
}

TEST(SeriesTest, ObservingNeverRefusesAndDisabledAdmitsAll) {
    for (const call& c : all_calls()) {
        const decision d = decide(c.fleet, c.local);
        if (c.fleet.over == override_kind::observing) {
            EXPECT_TRUE(d != decision::refuse_fleet && d != decision::refuse_local) << shown(c);
        }
        if (c.fleet.over == override_kind::disabled) {
            EXPECT_EQ(d, decision::admit) << shown(c);
        }
    }
}

TEST(SeriesTest, ALocalBreakerNeverSpeaksWhileTheFleetsIsNotClosed) {
    for (const call& c : all_calls()) {
        if (!c.fleet.known || c.fleet.state == closed || c.fleet.outlived) continue;
        for (const call& other : all_calls()) {
            call mixed = c;
            mixed.local = other.local;
            ASSERT_EQ(decide(c.fleet, c.local), decide(mixed.fleet, mixed.local)) << shown(mixed);
        }
    }
}

}  // namespace
}  // namespace trinco::detail
