// What the server of locks keeps beside its queues: records, the run of time, and its own account.
#include <algorithm>
#include <charconv>

#include "store/memory/memory_lock_server.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t max_rows = 1'000;
constexpr std::size_t max_changes = 64;
constexpr std::size_t max_key = 512;
constexpr std::size_t max_value = 128 * 1'024;
constexpr auto for_ever = boot_clock::time_point::max();

}  // namespace

boot_clock::time_point memory_lock_server::sweep_locked() {
    const auto now = now_();
    while (!leases_by_end_.empty() && leases_by_end_.begin()->first <= now) {
        end_lease(leases_.find(leases_by_end_.begin()->second));
    }
    while (!keys_by_end_.empty() && keys_by_end_.begin()->first <= now) {
        erase_key(keys_.find(keys_by_end_.begin()->second));
    }
    return now;
}

void memory_lock_server::sweep() {
    const std::lock_guard hold(mutex_);
    sweep_locked();
}

boot_clock::time_point memory_lock_server::next_expiry() const {
    const std::lock_guard hold(mutex_);
    auto next = for_ever;
    if (!leases_by_end_.empty()) next = leases_by_end_.begin()->first;
    if (!keys_by_end_.empty()) next = std::min(next, keys_by_end_.begin()->first);
    return next;
}

void memory_lock_server::erase_key(std::map<std::string, stored, std::less<>>::iterator at) {
    if (at->second.ends != for_ever) keys_by_end_.erase({at->second.ends, at->first});
    keys_.erase(at);
}

std::error_code memory_lock_server::check(std::span<const change> changes) const {
    if (changes.empty() || changes.size() > max_changes) return errc::invalid;
    std::size_t added = 0;
    for (const auto& one : changes) {
        const bool sound = !one.key.empty() && one.key.size() <= max_key &&
                           (!one.value || one.value->size() <= max_value);
        if (!sound) return errc::invalid;
        if (one.value && !keys_.contains(one.key)) ++added;
    }
    if (keys_.size() + added > bounds_.keys) return errc::busy;
    for (const auto& one : changes) {
        const auto at = keys_.find(one.key);
        const auto revision = at == keys_.end() ? must_be_absent : at->second.what.revision;
        if (one.if_revision != any_revision && one.if_revision != revision) return errc::conflict;
    }
    return {};
}

lock_answer<std::uint64_t> memory_lock_server::write(std::string_view lease,
                                                     std::optional<claim_id> guard,
                                                     std::span<const change> changes,
                                                     std::chrono::seconds keep) {
    const std::lock_guard hold(mutex_);
    const auto now = sweep_locked();
    if (guard) {
        const auto* c = find(lease, *guard);
        if (c == nullptr || c->missing > 0) return {errc::lost};
    }
    if (keep < std::chrono::seconds(0) || keep > traits().ttl_max * 366) return {errc::invalid};
    if (const auto bad = check(changes)) return {bad};
    const auto at = ++revision_;
    for (const auto& one : changes) put(one, keep.count() == 0 ? for_ever : now + keep, at);
    return {{}, at};
}

void memory_lock_server::put(const change& one, boot_clock::time_point ends, std::uint64_t at) {
    if (const auto old = keys_.find(one.key); old != keys_.end()) erase_key(old);
    if (!one.value) return;
    keys_.emplace(one.key, stored{{*one.value, at}, ends});
    if (ends != for_ever) keys_by_end_.emplace(ends, one.key);
}

lock_answer<std::optional<record>> memory_lock_server::read(std::string_view key) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto at = keys_.find(key);
    if (at == keys_.end()) return {};
    return {{}, at->second.what};
}

// A page ends with its last key.
lock_answer<records> memory_lock_server::scan(std::string_view prefix, std::string_view from,
                                              std::size_t rows) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    rows = std::min(rows, max_rows);
    lock_answer<records> out;
    if (rows == 0) return out;
    for (auto at = keys_.lower_bound(std::max(prefix, from)); at != keys_.end(); ++at) {
        if (!at->first.starts_with(prefix)) break;
        if (at->first == from) continue;
        if (out.value.rows.size() == rows) return out;
        out.value.rows.push_back({at->second.what, at->first});
        out.value.next = at->first;
    }
    out.value.next.clear();
    return out;
}

// A page ends with the name and the revision of its last row, between which a name has no blank.
lock_answer<entries> memory_lock_server::list(std::string_view prefix, std::string_view from,
                                              std::size_t rows) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    rows = std::min(rows, max_rows);
    const auto blank = from.find(' ');
    std::uint64_t after = 0;
    if (!from.empty()) {
        if (blank == std::string_view::npos) return {errc::invalid};
        const auto* const end = from.data() + from.size();
        if (std::from_chars(from.data() + blank + 1, end, after).ptr != end) return {errc::invalid};
    }
    const auto last_name = from.substr(0, blank);
    lock_answer<entries> out;
    if (rows == 0) return out;
    for (auto q = queues_.lower_bound(std::max(prefix, last_name)); q != queues_.end(); ++q) {
        if (!q->first.starts_with(prefix)) break;
        auto s = q->second.slots.begin();
        if (q->first == last_name) s = q->second.slots.upper_bound(after);
        for (; s != q->second.slots.end(); ++s) {
            if (out.value.rows.size() == rows) return out;
            out.value.rows.push_back(entry_of(q->second, s->second));
            out.value.next = q->first + " " + std::to_string(s->first);
        }
    }
    out.value.next.clear();
    return out;
}

std::vector<memory_lock_server::row> memory_lock_server::rows() const {
    const std::lock_guard hold(mutex_);
    std::vector<row> out;
    const auto now = now_();
    for (const auto& [name, q] : queues_) {
        for (const auto& [revision, s] : q.slots) {
            out.push_back({name, s.who->who.first, s.who->who.second, s.who->missing == 0,
                           s.who->parts[s.part].token,
                           leases_.find(s.who->who.first)->second.ends - now});
        }
    }
    return out;
}

std::vector<std::string> memory_lock_server::leases() const {
    const std::lock_guard hold(mutex_);
    std::vector<std::string> out;
    for (const auto& one : leases_) out.push_back(one.first);
    return out;
}

std::uint64_t memory_lock_server::wakeups() const {
    const std::lock_guard hold(mutex_);
    return wakeups_;
}

}  // namespace trinco::detail
