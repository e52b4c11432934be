#include "sim/lock_judge.hpp"

#include <algorithm>

namespace trinco::sim {

void lock_judge::violated(const std::string& what) {
    world_.note("VIOLATION " + what);
    if (violations_.size() < 10) {
        const auto at = std::chrono::duration<double>(world_.now().time_since_epoch()).count();
        violations_.push_back(std::to_string(at - 86'400.0) + " s: " + what);
    }
}

lock_judge::attempt_id lock_judge::invoked(const std::string& who, const std::string& name) {
    ++seen_.attempts;
    attempt a;
    a.who = who;
    a.name = name;
    a.invoked_at = tick();
    a.known_token = highest_[name];
    a.since = world_.now();
    attempts_.push_back(std::move(a));
    waiting_.insert(attempts_.size() - 1);
    return attempts_.size() - 1;
}

void lock_judge::queued(attempt_id a) {
    if (attempts_[a].queued_at == 0) attempts_[a].queued_at = tick();
}

void lock_judge::granted(attempt_id id, std::uint64_t token, bool lease_held) {
    auto& a = attempts_[id];
    waiting_.erase(id);
    a.token = token;
    ++seen_.grants;
    if (world_.now() - a.since > std::chrono::milliseconds(500)) ++seen_.contended;
    last_grant_[a.name] = world_.now();
    const auto text = a.who + " on " + a.name + " with token " + std::to_string(token);
    world_.note("granted " + text);
    if (!lease_held) violated("L5 granted under a lease that is not held: " + text);
    if (permits_.contains(a.name)) {
        if (token != 0) violated("L2 a permit has a token: " + text);
        return;
    }
    if (!tokens_[a.name].insert(token).second) violated("L2 a token was given twice: " + text);
    if (token <= a.known_token) {
        violated("L2 not above " + std::to_string(a.known_token) + ", known when asked: " + text);
    }
    highest_[a.name] = std::max(highest_[a.name], token);
}

void lock_judge::ended(attempt_id a) {
    waiting_.erase(a);
}

bool lock_judge::wrote(attempt_id id, std::uint64_t token) {
    ++seen_.writes;
    const auto& a = attempts_[id];
    auto& r = resources_[a.name];
    const auto owner = r.owners.try_emplace(token, id).first->second;
    if (owner != id) violated("L1 two grants of " + a.name + " wrote with one token");
    if (token < r.highest) {
        ++seen_.stale_writes;
        return false;
    }
    r.highest = token;
    r.writer = id;
    return true;
}

void lock_judge::check_believers(const std::vector<belief>& all,
                                 const std::vector<detail::memory_lock_server::row>& rows) {
    std::map<std::string, std::vector<std::string>> by_name;
    for (const auto& b : all) {
        ++seen_.beliefs;
        auto& believers = by_name[b.name];
        const auto permits = permits_.find(b.name);
        const std::size_t most = permits == permits_.end() ? 1 : permits->second;
        if (believers.size() >= most) {
            violated("L5 " + b.who + " and " + believers.front() + " both believe in " + b.name);
        }
        believers.push_back(b.who);
        const auto entry = std::find_if(rows.begin(), rows.end(), [&](const auto& r) {
            return r.lease == b.lease && r.id == b.id && r.name == b.name;
        });
        if (entry == rows.end() || !entry->holds) {
            violated("L10 " + b.who + " believes in " + b.name + " without holding it");
        } else if (entry->left <= boot_clock::duration::zero()) {
            violated("L5 " + b.who + " believes in " + b.name + " after its lease ran out");
        }
    }
}

void lock_judge::told_lost(const belief& of,
                           const std::vector<detail::memory_lock_server::row>& rows) {
    ++seen_.losses;
    const bool stands = std::any_of(rows.begin(), rows.end(), [&](const auto& r) {
        return r.lease == of.lease && r.id == of.id && r.name == of.name;
    });
    if (stands) violated("L5 " + of.who + " was told that it lost " + of.name + ", which it holds");
}

void lock_judge::begin_liveness(boot_clock::duration bound) {
    live_from_ = world_.now();
    bound_ = bound;
}

void lock_judge::check_liveness() {
    if (!live_from_) return;
    std::map<std::string, boot_clock::time_point> waiting;  // the longest wait of each name
    for (const auto id : waiting_) {
        const auto& a = attempts_[id];
        const auto at = waiting.try_emplace(a.name, a.since).first;
        at->second = std::min(at->second, a.since);
    }
    for (const auto& [name, since] : waiting) {
        const auto from = std::max({*live_from_, since, last_grant_[name]});
        if (world_.now() - from > bound_) {
            violated("L11 somebody waits for " + name + " and nobody is granted");
            last_grant_[name] = world_.now();  // said once
        }
    }
}

void lock_judge::check_order() {
    std::map<std::string, std::vector<const attempt*>> granted;
    for (const auto& a : attempts_) {
        if (a.token != 0) granted[a.name].push_back(&a);
    }
    for (auto& [name, list] : granted) {
        std::sort(list.begin(), list.end(),
                  [](const auto* a, const auto* b) { return a->token < b->token; });
        const attempt* latest = nullptr;  // the latest asker among those granted so far
        for (const auto* a : list) {
            if (latest != nullptr && a->queued_at != 0 && a->queued_at < latest->invoked_at) {
                violated("L7 " + a->who + " was queued for " + name + " before " + latest->who +
                         " asked, and was granted after it");
            }
            if (latest == nullptr || a->invoked_at > latest->invoked_at) latest = a;
        }
    }
}

}  // namespace trinco::sim
