#include "core/breaker/slice_window.hpp"

namespace trinco::detail {

const counts& slice_window::advance(std::int64_t current) noexcept {
    if (current <= newest) return sum;
    const auto size = static_cast<std::int64_t>(cells.size());
    for (cell& c : cells) {
        if (c.number >= 0 && c.number <= current - size) {
            sum -= c.n;
            c = cell{};
        }
    }
    newest = current;
    return sum;
}

bool slice_window::add(std::int64_t number, std::int64_t current, std::size_t size,
                       const counts& n) {
    if (number < 0 || number <= current - static_cast<std::int64_t>(size)) return false;
    if (cells.size() != size) {
        clear();
        cells.resize(size);
    }
    advance(current);
    // Numbers in one window differ by less than its size, so a cell that holds another number held
    // one that has left, and is empty.
    cell& c = cells[static_cast<std::size_t>(number) % size];
    c.number = number;
    c.n += n;
    sum += n;
    return true;
}

counts slice_window::sum_at(std::int64_t current) const noexcept {
    if (current <= newest) return sum;
    counts total;
    const auto size = static_cast<std::int64_t>(cells.size());
    for (const cell& c : cells) {
        if (c.number >= 0 && c.number > current - size) total += c.n;
    }
    return total;
}

void slice_window::clear() noexcept {
    for (cell& c : cells) c = cell{};
    sum = counts{};
    newest = -1;
}

}  // namespace trinco::detail
