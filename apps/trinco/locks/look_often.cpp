#include "apps/trinco/locks/look_often.hpp"

#include <poll.h>

#include <algorithm>
#include <random>
#include <utility>

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

// Random, so that what happens at equal distances is not always seen at the same point of it.
constexpr milliseconds least_distance = 25ms;
constexpr milliseconds most_distance = 75ms;

milliseconds since(steady::time_point began) {
    return std::chrono::duration_cast<milliseconds>(steady::now() - began);
}

}  // namespace

std::variant<looked_often, problem> look_often(const store& at, const lock_scope& scope,
                                               milliseconds span,
                                               std::optional<milliseconds> give_up_after) {
    std::mt19937 random(std::random_device{}());
    std::uniform_int_distribution<milliseconds::rep> distance(least_distance.count(),
                                                              most_distance.count());
    looked_often all;
    all.lists_waiters = lists_waiters(at);
    const auto began = steady::now();
    for (;;) {
        const auto before = steady::now();
        auto listed = list_locks(at, scope);
        if (auto* const bad = std::get_if<problem>(&listed)) return std::move(*bad);
        all.last = std::move(std::get<std::vector<lock_row>>(listed));
        all.took = since(began);
        all.use.look(all.last, all.took);
        const bool in_vain = give_up_after && all.took >= *give_up_after && all.use.locks().empty();
        if (all.use.looks() >= 2 && (all.took >= span || in_vain)) return all;
        const milliseconds pause = std::max(milliseconds(distance(random)), since(before));
        const milliseconds left = std::max(span - all.took, least_distance);
        ::poll(nullptr, 0, static_cast<int>(std::min(pause, left).count()));
    }
}

}  // namespace trinco::program
