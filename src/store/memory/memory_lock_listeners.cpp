// Those who wait at the server of locks: for their turn, for the end of a claim, for a change of
// holder.
#include "store/memory/memory_lock_server.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

memory_lock_server::listener_id memory_lock_server::await(std::string_view lease, claim_id id,
                                                          grant_listener granted,
                                                          place_listener moved) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto given = next_listener_++;
    auto* c = find(lease, id);
    if (c == nullptr) {
        granted(errc::lost, {});
    } else if (c->missing == 0) {
        granted({}, grant_of(*c));
    } else {
        listeners_.emplace(given, listening{listens::waiter, c->who, {}});
        if (moved) c->parts.front().in->movers.insert(c->revision);
        c->waiters.emplace(given,
                           waiter{std::move(granted), std::move(moved), *place_of(*c).ahead});
    }
    return given;
}

memory_lock_server::listener_id memory_lock_server::on_gone(std::string_view lease, claim_id id,
                                                            gone_listener gone) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto given = next_listener_++;
    auto* c = find(lease, id);
    if (c == nullptr || c->evicted) {
        gone(c == nullptr ? errc::lost : errc::evicted);
    } else {
        listeners_.emplace(given, listening{listens::watcher, c->who, {}});
        c->watchers.emplace(given, std::move(gone));
    }
    return given;
}

memory_lock_server::listener_id memory_lock_server::observe(std::string_view name,
                                                            holder_listener seen) {
    const std::lock_guard hold(mutex_);
    sweep_locked();
    const auto id = next_listener_++;
    auto& q = queues_[std::string(name)];
    q.name = name;
    listeners_.emplace(id, listening{listens::observer, {}, q.name});
    const auto& added = q.observers.emplace(id, std::move(seen)).first->second;
    const auto head = q.slots.begin();
    const bool held = head != q.slots.end() && head->second.who->missing == 0;
    added(held ? std::optional(entry_of(q, head->second)) : std::nullopt);
    return id;
}

void memory_lock_server::forget(listener_id id) {
    const std::lock_guard hold(mutex_);
    const auto at = listeners_.find(id);
    if (at == listeners_.end()) return;
    const auto was = std::move(at->second);
    listeners_.erase(at);
    if (was.what == listens::observer) {
        const auto q = queues_.find(was.name);
        q->second.observers.erase(id);
        if (q->second.slots.empty() && q->second.observers.empty()) queues_.erase(q);
    } else if (auto* c = find(was.who.first, was.who.second)) {
        c->waiters.erase(id);
        c->watchers.erase(id);
    }
}

}  // namespace trinco::detail
