#include "breaker/overdue.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <new>

namespace trinco::detail {
namespace {

constexpr std::uint64_t in_use = 1;
constexpr std::uint64_t is_overdue = 2;
constexpr std::uint64_t is_timed_out = 3;
constexpr std::uint64_t state_mask = 3;
constexpr unsigned start_bits = 46;
constexpr std::uint64_t start_mask = (std::uint64_t{1} << start_bits) - 1;
constexpr std::uint32_t near = 8;  // slots tried from the hint on before searching all

// For each slot that a scan looked at, nobody scans again so long; see Bounds in the header.
constexpr std::chrono::nanoseconds rest_per_slot{100};
constexpr unsigned tick_bits = 8;

std::uint64_t ticks_of(std::chrono::nanoseconds t) noexcept {
    return (static_cast<std::uint64_t>(t.count()) >> tick_bits) & start_mask;
}

}  // namespace

overdue_table::overdue_table(std::chrono::milliseconds overdue_after,
                             std::chrono::milliseconds call_timeout, std::size_t shards)
    : overdue_(ticks_of(overdue_after)),
      timeout_(ticks_of(call_timeout)),
      first_limit_(overdue_ == 0   ? timeout_
                   : timeout_ == 0 ? overdue_
                                   : std::min(overdue_, timeout_)),
      shard_mask_(shards - 1),
      shards_(std::make_unique<shard_slots[]>(shards)),
      next_due_(std::numeric_limits<std::int64_t>::min()) {}

overdue_table::~overdue_table() {
    for (std::size_t i = 0; i <= shard_mask_; ++i) {
        for (auto& chunk : shards_[i].chunks) delete[] chunk.load(std::memory_order_relaxed);
    }
}

// Chunk k holds first_chunk << k slots, and begins at index first_chunk * (2^k - 1).
overdue_table::slot* overdue_table::later_chunk(shard_slots& s, std::uint32_t index) noexcept {
    const auto scaled = index / first_chunk + 1;
    const auto k = static_cast<std::size_t>(std::bit_width(scaled) - 1);
    if (k >= max_chunks) return nullptr;
    slot* const chunk = s.chunks[k].load(std::memory_order_acquire);
    if (chunk == nullptr) return nullptr;
    return chunk + (index - first_chunk * ((std::size_t{1} << k) - 1));
}

std::uint32_t overdue_table::capacity(const shard_slots& s) noexcept {
    std::size_t k = 0;
    while (k < max_chunks && s.chunks[k].load(std::memory_order_acquire) != nullptr) ++k;
    return static_cast<std::uint32_t>(first_chunk * ((std::size_t{1} << k) - 1));
}

std::uint64_t overdue_table::enter(std::size_t shard, time started,
                                   std::uint64_t generation) noexcept {
    shard_slots& s = shards_[shard & shard_mask_];
    const std::uint64_t word =
        ((generation & 0xffff) << (start_bits + 2)) | (ticks_of(started) << 2) | in_use;
    const auto hint = s.hint.load(std::memory_order_relaxed);
    for (std::uint32_t i = hint; i < hint + near; ++i) {
        slot* const place = at(s, i);
        if (place == nullptr) break;
        std::uint64_t free = 0;
        if (place->load(std::memory_order_relaxed) == 0 &&
            place->compare_exchange_strong(free, word, std::memory_order_acq_rel)) {
            if (i != hint) s.hint.store(i, std::memory_order_relaxed);
            return reinterpret_cast<std::uintptr_t>(place);
        }
    }
    return reinterpret_cast<std::uintptr_t>(search(s, word));
}

// The next free slot from the hint on, all round; null when there is none and no memory for more.
// Who has to pass more than half of all slots makes as many again, so that the way to a free one
// stays short, on average over a round, however many calls hang and wherever.
overdue_table::slot* overdue_table::search(shard_slots& s, std::uint64_t word) noexcept {
    const std::lock_guard hold(s.growing);
    const auto all = capacity(s);
    const auto hint = s.hint.load(std::memory_order_relaxed);
    slot* taken = nullptr;
    std::uint32_t passed = 0;
    for (; passed < all && taken == nullptr; ++passed) {
        const auto i = (hint + passed) % all;
        std::uint64_t free = 0;
        slot* const place = at(s, i);
        if (place->load(std::memory_order_relaxed) == 0 &&
            place->compare_exchange_strong(free, word, std::memory_order_acq_rel)) {
            taken = place;
            s.hint.store(i, std::memory_order_relaxed);
        }
    }
    if (taken != nullptr && passed <= all / 2) return taken;
    const auto k = static_cast<std::size_t>(std::bit_width(all / first_chunk + 1) - 1);
    if (k >= max_chunks) return taken;
    slot* const chunk = new (std::nothrow) slot[first_chunk << k]{};
    if (chunk == nullptr) return taken;
    if (taken == nullptr) {
        chunk[0].store(word, std::memory_order_relaxed);
        taken = chunk;
    }
    s.chunks[k].store(chunk, std::memory_order_release);
    s.hint.store(all, std::memory_order_relaxed);
    return taken;
}

overdue_table::mark overdue_table::leave(std::uint64_t handle) noexcept {
    if (handle == 0) return mark::in_time;
    const auto word =
        reinterpret_cast<slot*>(handle)->exchange(0, std::memory_order_acq_rel) & state_mask;
    if (word == in_use) [[likely]]
        return mark::in_time;
    return word == is_overdue ? mark::overdue : mark::timed_out;
}

void overdue_table::scan(time now, std::vector<late_call>& out) {
    std::uint64_t soonest = first_limit_;
    std::uint64_t looked_at = 0;
    std::size_t timed_out = 0;
    for (std::size_t i = 0; i <= shard_mask_; ++i) {
        shard_slots& s = shards_[i];
        const auto all = capacity(s);
        looked_at += all;
        for (std::uint32_t k = 0; k < all; ++k) {
            if (timed_out == most_timed_out) return;  // still due
            slot* const place = at(s, k);
            auto word = place->load(std::memory_order_acquire);
            const auto state = word & state_mask;
            if (state == 0 || state == is_timed_out) continue;
            // Started after `now` was read: the difference wraps round and is taken as zero.
            auto age = (ticks_of(now) - ((word >> 2) & start_mask)) & start_mask;
            if (age > start_mask / 2) age = 0;
            auto next = state;
            if (overdue_ != 0 && age >= overdue_) next = is_overdue;
            if (timeout_ != 0 && age >= timeout_) next = is_timed_out;
            const auto limit = next == in_use && overdue_ != 0 ? overdue_ : timeout_;
            if (next != is_timed_out && limit != 0) soonest = std::min(soonest, limit - age);
            if (next == state) continue;
            if (!place->compare_exchange_strong(word, (word & ~state_mask) | next,
                                                std::memory_order_acq_rel)) {
                continue;  // it has just ended
            }
            timed_out += next == is_timed_out ? 1 : 0;
            out.push_back({static_cast<std::uint16_t>(word >> (start_bits + 2)),
                           next == is_overdue ? mark::overdue : mark::timed_out,
                           state == is_overdue});
        }
    }
    const auto wait = std::max(static_cast<std::int64_t>(soonest << tick_bits),
                               static_cast<std::int64_t>(looked_at) * rest_per_slot.count());
    next_due_.store(now.count() + wait, std::memory_order_relaxed);
}

}  // namespace trinco::detail
