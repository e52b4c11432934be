// A counter with one writer and any number of readers, without a lock: writing costs what a plain
// number costs.
#pragma once

#include <atomic>
#include <cstdint>

namespace trinco::detail {

class tally {
public:
    // One thread only.
    void add(std::uint64_t n) noexcept { set(get() + n); }
    void set(std::uint64_t n) noexcept { n_.store(n, std::memory_order_relaxed); }
    tally& operator++() noexcept {
        add(1);
        return *this;
    }
    // Any thread.
    [[nodiscard]] std::uint64_t get() const noexcept { return n_.load(std::memory_order_relaxed); }

private:
    std::atomic<std::uint64_t> n_{0};
};

}  // namespace trinco::detail
