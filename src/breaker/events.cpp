#include "breaker/events.hpp"

#include <algorithm>
#include <utility>

namespace trinco::detail {

std::uint64_t event_hub::add(callback f) {
    const std::lock_guard hold(m_);
    list_.push_back({++last_id_, std::make_shared<const callback>(std::move(f))});
    subscribers_.store(list_.size(), std::memory_order_release);
    return last_id_;
}

void event_hub::remove(std::uint64_t id) noexcept {
    std::shared_ptr<const callback> last;  // destroyed outside the lock
    std::unique_lock hold(m_);
    const auto mine =
        std::find_if(list_.begin(), list_.end(), [id](const subscriber& s) { return s.id == id; });
    if (mine == list_.end()) return;
    last = std::move(mine->f);
    list_.erase(mine);
    subscribers_.store(list_.size(), std::memory_order_release);
    if (runner_ != std::this_thread::get_id()) {
        idle_.wait(hold, [this, id] { return running_ != id; });
    }
    hold.unlock();
}

void event_hub::push(event e) {
    const std::lock_guard hold(m_);
    if (queue_.size() >= most_waiting) {
        const auto missed = queue_.front().missed + 1;
        queue_.pop_front();
        (queue_.empty() ? e : queue_.front()).missed += missed;
    }
    queue_.push_back(std::move(e));
    queued_.store(queue_.size(), std::memory_order_release);
}

// The first subscriber with an id above `at`, up to `newest`: those who came later do not get an
// event from before.
std::shared_ptr<const event_hub::callback> event_hub::next_for(std::uint64_t& at,
                                                               std::uint64_t newest) {
    for (const auto& s : list_) {
        if (s.id <= at || s.id > newest) continue;
        at = s.id;
        return s.f;
    }
    return nullptr;
}

void event_hub::deliver() noexcept {
    if (queued_.load(std::memory_order_acquire) == 0) [[likely]]
        return;
    std::unique_lock hold(m_);
    if (delivering_) return;
    delivering_ = true;
    runner_ = std::this_thread::get_id();
    while (!queue_.empty()) {
        const event e = std::move(queue_.front());
        queue_.pop_front();
        queued_.store(queue_.size(), std::memory_order_release);
        const auto newest = last_id_;
        std::uint64_t at = 0;
        while (auto f = next_for(at, newest)) {
            running_ = at;
            hold.unlock();
            (*f)(e);
            f.reset();
            hold.lock();
            running_ = 0;
            idle_.notify_all();
        }
    }
    delivering_ = false;
    runner_ = {};
}

}  // namespace trinco::detail
