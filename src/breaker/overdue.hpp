// Calls that are out, so that one that hangs is noticed before it returns.
//
// A call takes a slot when it begins and frees it when it ends; each costs one atomic operation. A
// scan, due no earlier than the oldest call can have become late, marks slots whose calls are
// overdue (they count as slow from now on) or have timed out (they have been counted as failures).
// Whoever frees a slot learns its mark.
//
// Bounds      A scan looks at every slot (1 to 2 ns each). It finds at most 1,024 calls that have
//             timed out, because each of them is judged; the others in the next one. Between two
//             scans lie at least 100 ns a slot, so that scans take about one percent of a core
//             however many calls become late one after the other: with 100,000 calls out a late one
//             is found up to about 30 ms late.
//
// enter and leave: any thread, no lock while there are free slots near the last one used; no
// allocation while fewer calls are out than ever before. scan: one caller at a time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

namespace trinco::detail {

class overdue_table {
public:
    using time = std::chrono::nanoseconds;
    enum class mark : std::uint8_t { in_time, overdue, timed_out };

    // Zero: that limit is off; one of them is on.
    overdue_table(std::chrono::milliseconds overdue_after, std::chrono::milliseconds call_timeout,
                  std::size_t shards);
    ~overdue_table();
    overdue_table(const overdue_table&) = delete;
    overdue_table& operator=(const overdue_table&) = delete;

    // A handle for leave; 0 when there is no memory for another slot (the call is then not
    // watched).
    [[nodiscard]] std::uint64_t enter(std::size_t shard, time started,
                                      std::uint64_t generation) noexcept;
    [[nodiscard]] mark leave(std::uint64_t handle) noexcept;

    // Whether a scan could find anything.
    [[nodiscard]] bool due(time now) const noexcept {
        return now.count() >= next_due_.load(std::memory_order_relaxed);
    }
    // A call that has just got later than a limit. `generation`: its lowest 16 bits.
    struct late_call {
        std::uint16_t generation;
        mark now;  // overdue or timed_out
        bool was_overdue;
    };
    // Appends what was found; each call is found at most once for each limit.
    static constexpr std::size_t most_timed_out = 1'024;
    void scan(time now, std::vector<late_call>& out);

private:
    // A slot: lowest 16 bits of the generation, 46 bits of the start in ticks of 256 ns, two bits
    // of state.
    using slot = std::atomic<std::uint64_t>;
    static constexpr std::size_t first_chunk = 64;
    static constexpr std::size_t max_chunks = 16;  // of doubling size: four million calls a shard
    struct alignas(64) shard_slots {
        std::atomic<std::uint32_t> hint{0};  // a slot that was freed lately
        std::array<std::atomic<slot*>, max_chunks> chunks{};
        std::mutex growing;
    };

    [[nodiscard]] static slot* at(shard_slots& s, std::uint32_t index) noexcept {
        if (index < first_chunk) [[likely]] {
            slot* const chunk = s.chunks[0].load(std::memory_order_acquire);
            return chunk != nullptr ? chunk + index : nullptr;
        }
        return later_chunk(s, index);
    }
    [[nodiscard]] static slot* later_chunk(shard_slots& s, std::uint32_t index) noexcept;
    [[nodiscard]] static std::uint32_t capacity(const shard_slots& s) noexcept;
    [[nodiscard]] slot* search(shard_slots& s, std::uint64_t word) noexcept;

    std::uint64_t overdue_;  // in ticks; 0: off
    std::uint64_t timeout_;
    std::uint64_t first_limit_;
    std::size_t shard_mask_;
    std::unique_ptr<shard_slots[]> shards_;
    std::atomic<std::int64_t> next_due_;
};

}  // namespace trinco::detail
