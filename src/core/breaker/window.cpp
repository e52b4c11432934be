#include "core/breaker/window.hpp"

#include <algorithm>

namespace trinco::detail {
namespace {

// Numbers that no slice has: time is kept within +-2^62 ns (146 years), slices are 10 ms or longer.
constexpr std::int64_t unused = std::int64_t{-1} << 60;
constexpr std::int64_t being_entered = unused + 1;
constexpr std::int64_t time_limit = std::int64_t{1} << 62;

std::int64_t floor_divide(std::int64_t a, std::int64_t b) noexcept {
    return a / b - (a % b < 0 ? 1 : 0);
}

counts counts_from(const std::array<std::uint64_t, 6>& n) noexcept {
    const auto of = [&n](counter c) { return n[static_cast<std::size_t>(c)]; };
    counts out;
    out.slow_success = of(counter::slow_success);
    out.slow_failure = of(counter::slow_failure);
    out.success = of(counter::success) + out.slow_success;
    out.failure = of(counter::failure) + out.slow_failure;
    out.ignored = of(counter::ignored);
    out.rejected = of(counter::rejected);
    return out;
}

}  // namespace

std::size_t shard_detail::assign() noexcept {
    static std::atomic<std::size_t> assigned{0};
    number_plus_one = assigned.fetch_add(1, std::memory_order_relaxed) + 1;
    return number_plus_one - 1;
}

time_window::time_window(std::chrono::nanoseconds length, std::uint32_t slices, std::size_t shards)
    : newest_(0),
      length_(length.count() / slices),
      slices_(slices),
      shard_mask_(shards - 1),
      cells_(std::make_unique<cell[]>(slices * 2 * shards)),
      notes_(std::make_unique<notes[]>(slices * 2 * shards)) {
    newest_ = (-time_limit / length_) * (place_mask + 1);
    for (std::size_t i = 0; i < slices_ * 2 * shards; ++i) cells_[i].number = unused;
}

std::int64_t time_window::number_of(coarse_time now) const noexcept {
    return floor_divide(std::clamp<std::int64_t>(now.count(), -time_limit, time_limit), length_);
}

std::int64_t time_window::current(coarse_time now) const noexcept {
    return std::max(number_of(now), newest_.load(std::memory_order_relaxed) >> place_bits);
}

// Outside the newest slice: either a later one begins, or the clock went back.
std::int64_t time_window::advance(coarse_time now) noexcept {
    const auto number = number_of(now);
    const auto ring = static_cast<std::int64_t>(slices_);
    const auto place = number - floor_divide(number, ring) * ring;
    const auto mine = number * (place_mask + 1) + place;
    auto newest = newest_.load(std::memory_order_relaxed);
    while (newest < mine) {
        if (newest_.compare_exchange_weak(newest, mine, std::memory_order_relaxed)) return mine;
    }
    return newest;
}

// Makes the cell that of slice `number`. True for the one caller who did. Who does it needs a few
// dozen nanoseconds, for which the others wait, but not for ever: should it be interrupted in
// between, they count into the cell as it is, and their counts may fall into the slice that has
// just left.
bool time_window::enter(std::size_t at, std::int64_t number) noexcept {
    cell& c = cells_[at];
    for (int patience = 0; patience < 256; ++patience) {
        auto held = c.number.load(std::memory_order_acquire);
        if (held == being_entered) continue;
        if (held >= number) return false;
        if (c.number.compare_exchange_strong(held, being_entered, std::memory_order_acq_rel)) {
            for (std::size_t i = 0; i < counters; ++i) {
                notes_[at].base[i].store(c.grown[i].load(std::memory_order_relaxed),
                                         std::memory_order_release);
            }
            c.number.store(number, std::memory_order_release);
            return true;
        }
    }
    return false;
}

// A consistent picture of a cell; false while it is changing slices, when its last slice has left
// the window and its next has hardly begun. Acquire at every load keeps the second look at the
// number last; release at every store of a base makes a new base show a new number.
bool time_window::read(std::size_t at, snapshot& out) const noexcept {
    const cell& c = cells_[at];
    for (int tries = 0; tries < 4; ++tries) {
        out.number = c.number.load(std::memory_order_acquire);
        if (out.number == being_entered) return false;
        for (std::size_t i = 0; i < counters; ++i) {
            out.base[i] = notes_[at].base[i].load(std::memory_order_acquire);
            out.grown[i] = c.grown[i].load(std::memory_order_acquire);
        }
        if (c.number.load(std::memory_order_relaxed) == out.number) return true;
    }
    return false;
}

bool time_window::has_grown(std::size_t at) const noexcept {
    for (std::size_t i = 0; i < counters; ++i) {
        if (cells_[at].grown[i].load(std::memory_order_relaxed) != notes_[at].taken[i]) return true;
    }
    return false;
}

counts time_window::sum(unsigned bank, coarse_time now) const noexcept {
    const auto last = current(now);
    const auto first = last - static_cast<std::int64_t>(slices_) + 1;
    values n{};
    snapshot s;
    for (std::size_t shard = 0; shard <= shard_mask_; ++shard) {
        for (std::size_t place = 0; place < slices_; ++place) {
            const auto at = index(shard, bank, place);
            const auto held = cells_[at].number.load(std::memory_order_relaxed);
            if (held < first || held > last) continue;
            if (!read(at, s) || s.number < first || s.number > last) continue;
            for (std::size_t i = 0; i < counters; ++i) n[i] += s.grown[i] - s.base[i];
        }
    }
    return counts_from(n);
}

time_window::harvested time_window::harvest(unsigned bank, coarse_time now) {
    const auto last = current(now);
    const auto first = last - static_cast<std::int64_t>(slices_) + 1;
    std::vector<counts> by_age;  // empty: there is nothing
    harvested out;
    snapshot s;
    for (std::size_t shard = 0; shard <= shard_mask_; ++shard) {
        for (std::size_t place = 0; place < slices_; ++place) {
            const auto at = index(shard, bank, place);
            if (!has_grown(at)) continue;
            if (!read(at, s)) continue;  // next time: nothing is taken, so nothing is lost
            by_age.resize(slices_);
            values older{};
            values fresh{};
            for (std::size_t i = 0; i < counters; ++i) {
                auto& taken = notes_[at].taken[i];
                older[i] = std::max(s.base[i], taken) - taken;
                fresh[i] = s.grown[i] - std::max(s.base[i], taken);
                taken = s.grown[i];
            }
            out.expired += counts_from(older);
            const bool inside = s.number >= first && s.number <= last;
            (inside ? by_age[static_cast<std::size_t>(last - s.number)] : out.expired) +=
                counts_from(fresh);
        }
    }
    const auto end_of_last = (last + 1) * length_;
    for (std::size_t back = by_age.size(); back-- > 0;) {
        if (by_age[back].empty()) continue;
        const auto end = end_of_last - static_cast<std::int64_t>(back) * length_;
        out.slices.push_back(
            {by_age[back], coarse_time(std::max<std::int64_t>(0, now.count() - end))});
    }
    return out;
}

counts time_window::clear(unsigned bank) noexcept {
    values left{};
    for (std::size_t shard = 0; shard <= shard_mask_; ++shard) {
        for (std::size_t place = 0; place < slices_; ++place) {
            const auto at = index(shard, bank, place);
            cells_[at].number.store(unused, std::memory_order_release);
            for (std::size_t i = 0; i < counters; ++i) {
                const auto grown = cells_[at].grown[i].load(std::memory_order_acquire);
                notes_[at].base[i].store(grown, std::memory_order_release);
                left[i] += grown - notes_[at].taken[i];
                notes_[at].taken[i] = grown;
            }
        }
    }
    return counts_from(left);
}

counts time_window::totals() const noexcept {
    values n{};
    for (std::size_t at = 0; at < slices_ * 2 * (shard_mask_ + 1); ++at) {
        for (std::size_t i = 0; i < counters; ++i) {
            n[i] += cells_[at].grown[i].load(std::memory_order_relaxed);
        }
    }
    return counts_from(n);
}

}  // namespace trinco::detail
