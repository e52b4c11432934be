// Examines how much the locks of a store are used, by looking at them for a moment.
#pragma once

#include <cstddef>
#include <string_view>
#include <vector>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/locks/lock_use.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program::doctor {

// Adds "use": a warning of locks that were held in more than 70 % of the looks, changed hands
// meanwhile and were waited for. A lock that stays with one holder is none: a leader, a long job.
// Takes two seconds when a lock is held at all, else a moment. Adds nothing when something was
// found to be bad before, or the store keeps no locks.
void examine_use(const settings& with, examination& to);

// The same of what was seen. Pure.
[[nodiscard]] finding judge_use(const std::vector<used_lock>& locks, std::size_t looks);
// And of why nothing could be seen: an etcd that works, but has more keys than a listing reads, is
// worth a warning. Pure.
[[nodiscard]] finding judge_unlooked(const problem& why, std::string_view url);

}  // namespace trinco::program::doctor
