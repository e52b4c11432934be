// The timers of a loop, by their time, those of one time in the order of setting.
//
// The earliest is kept apart: what a message sets is the next thing that happens as a rule, and
// asks for no place among the others then, which lie far from each other in memory.
// Not thread-safe. Functions are destroyed outside: what they destroy may set or end other timers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "core/loop.hpp"

namespace trinco::detail {

class timer_queue {
public:
    using function = unique_function<void()>;
    struct key {  // the order makes it unique
        boot_clock::time_point when;
        std::uint64_t order;
        auto operator<=>(const key&) const = default;
    };

    // A timer that is set for each message asks for no memory.
    timer_queue() { spare_.reserve(most_spare); }

    [[nodiscard]] bool empty() const noexcept { return !has_first_ && rest_.empty(); }
    // Of one that is not empty.
    [[nodiscard]] const key& earliest() const noexcept {
        return has_first_ ? first_ : rest_.begin()->first;
    }
    // The order of the next that is set: greater than that of all.
    [[nodiscard]] std::uint64_t next_order() const noexcept { return next_order_; }

    key put(boot_clock::time_point when, function&& f) {
        const key k{when, next_order_++};
        if (!empty() && earliest() < k) {
            insert(k, std::move(f));
            return k;
        }
        if (has_first_) insert(first_, std::move(first_function_));
        first_ = k;
        first_function_ = std::move(f);
        has_first_ = true;
        return k;
    }
    [[nodiscard]] function take_earliest() {
        if (std::exchange(has_first_, false)) return std::move(first_function_);
        return emptied(rest_.extract(rest_.begin()));
    }
    // Empty when there is none of this key any more.
    [[nodiscard]] function take(const key& k) {
        if (has_first_ && first_ == k) return take_earliest();
        return emptied(rest_.extract(k));
    }

private:
    using nodes = std::map<key, function>;
    static constexpr std::size_t most_spare = 16;

    void insert(const key& k, function&& f) {
        if (spare_.empty()) {
            rest_.emplace(k, std::move(f));
            return;
        }
        auto node = std::move(spare_.back());
        spare_.pop_back();
        node.key() = k;
        node.mapped() = std::move(f);
        rest_.insert(std::move(node));
    }
    function emptied(nodes::node_type node) {
        if (!node) return {};
        auto f = std::move(node.mapped());
        if (spare_.size() < most_spare) spare_.push_back(std::move(node));
        return f;
    }

    key first_{};
    bool has_first_ = false;
    std::uint64_t next_order_ = 0;
    function first_function_;
    nodes rest_;
    std::vector<nodes::node_type> spare_;  // of timers that are over
};

}  // namespace trinco::detail
