#include "apps/trinco/locks/lock_use.hpp"

#include <algorithm>
#include <utility>

namespace trinco::program {
namespace {

using std::chrono::milliseconds;

// The part of it that is held.
double share_of(const lock_row& row) {
    if (row.holders.empty()) return 0;
    const auto n = row.holders.front().n;
    if (n == 0) return 1;
    return std::min(1.0, static_cast<double>(row.holders.size()) / n);
}

}  // namespace

void lock_use::look(const std::vector<lock_row>& rows, milliseconds now) {
    for (const auto& row : rows) {
        if (row.holders.empty() && row.waiters.empty()) continue;
        auto& of = known_[row.name];
        of.all.name = row.name;
        of.all.kind = (row.holders.empty() ? row.waiters : row.holders).front().kind;
        of.all.held += share_of(row);
        of.all.lists_waiters = row.lists_waiters;
        of.all.waited += row.waiters.empty() ? 0 : 1;
        for (const auto& e : row.holders) note(of, e, row.lists_waiters, now);
        for (const auto& e : row.waiters) note(of, e, row.lists_waiters, now);
    }
    for (auto& [name, of] : known_) forget_who_is_gone(of);
    ++looks_;
}

void lock_use::forget_who_is_gone(history& of) const {
    std::erase_if(of.stays, [&](const auto& one) {
        const stay& its = one.second;
        if (its.seen == looks_) return false;
        if (its.known) of.all.waits.add(its.wait);
        return true;
    });
}

void lock_use::note(history& of, const detail::entry& e, bool lists_waiters,
                    milliseconds now) const {
    const auto [at, is_new] = of.stays.try_emplace(e.handle);
    stay& its = at->second;
    if (is_new) its.first = now;
    const milliseconds so_far = std::max(e.since, now - its.first);
    const bool just_granted = e.holds && !its.holds;
    const bool seen_before = !is_new || looks_ > 0;
    if (just_granted && seen_before) ++of.all.grants;
    if (!e.holds || (just_granted && seen_before && lists_waiters)) {
        its.wait = so_far;
        its.known = true;
    }
    if (e.holds && e.held && lists_waiters) {
        its.wait = std::max(e.since - *e.held, milliseconds(0));
        its.known = true;
    }
    its.holds = e.holds;
    its.seen = looks_;
}

std::vector<used_lock> lock_use::locks() const {
    std::vector<used_lock> out;
    out.reserve(known_.size());
    for (const auto& [name, of] : known_) {
        out.push_back(of.all);
        for (const auto& [handle, its] : of.stays) {
            if (its.known) out.back().waits.add(its.wait);
        }
    }
    return out;
}

milliseconds longest_wait(const lock_row& row) {
    milliseconds longest{0};
    for (const auto& e : row.waiters) longest = std::max(longest, e.since);
    return longest;
}

}  // namespace trinco::program
