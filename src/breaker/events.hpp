// The queue of a breaker's events and those who want them.
//
// Events are queued under the breaker's lock, in the order of the changes, and delivered outside
// every lock by one thread at a time: the first that comes by, until the queue is empty. A callback
// may use the breaker; what it causes is queued behind. While a callback does not return, at most
// 1,000 events wait; the oldest ones go, and the next says how many (event::missed).
//
// Thread-safe. Shared by the breaker and its subscriptions.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "trinco/breaker_events.hpp"

namespace trinco::detail {

class event_hub {
public:
    using callback = std::function<void(const event&)>;
    static constexpr std::size_t most_waiting = 1'000;

    std::uint64_t add(callback f);
    // Does not return before a run of this callback on another thread has ended.
    void remove(std::uint64_t id) noexcept;

    // Whether a change is worth an event; any thread, one load.
    [[nodiscard]] bool wanted() const noexcept {
        return subscribers_.load(std::memory_order_acquire) != 0;
    }
    // Under the breaker's lock.
    void push(event e);
    // Outside the breaker's lock, after every push. Cheap when there is nothing.
    void deliver() noexcept;

private:
    struct subscriber {
        std::uint64_t id;
        std::shared_ptr<const callback> f;
    };
    [[nodiscard]] std::shared_ptr<const callback> next_for(std::uint64_t& at, std::uint64_t newest);

    std::atomic<std::size_t> subscribers_{0};
    std::atomic<std::size_t> queued_{0};
    std::mutex m_;
    std::condition_variable idle_;
    std::deque<event> queue_;
    std::vector<subscriber> list_;
    std::uint64_t last_id_ = 0;
    bool delivering_ = false;
    std::uint64_t running_ = 0;  // whose callback runs now; 0: nobody's
    std::thread::id runner_;
};

}  // namespace trinco::detail
