#include "apps/trinco/output/table.hpp"

#include <algorithm>
#include <cstddef>
#include <utility>

#include "apps/trinco/output/visible.hpp"

namespace trinco::program {

table::table(std::vector<std::string> head) {
    rows_.push_back(std::move(head));
}

void table::row(std::vector<std::string> cells) {
    cells.resize(rows_.front().size());
    for (std::string& cell : cells) cell = cell.empty() ? "-" : visible(cell);
    rows_.push_back(std::move(cells));
}

void table::drop_if_empty(std::span<const std::string_view> columns) {
    for (std::size_t i = rows_.front().size(); i-- > 0;) {
        const bool may_go =
            std::find(columns.begin(), columns.end(), rows_.front()[i]) != columns.end();
        const bool is_empty = std::all_of(rows_.begin() + 1, rows_.end(),
                                          [&](const auto& row) { return row[i] == "-"; });
        if (!may_go || !is_empty) continue;
        for (auto& row : rows_) row.erase(row.begin() + static_cast<std::ptrdiff_t>(i));
    }
}

void table::cut_last(std::size_t longest_line) {
    constexpr std::size_t shortest = 10;
    constexpr std::string_view cut = "...";
    std::size_t before = 0;
    const auto all = widths();
    for (std::size_t i = 0; i + 1 < all.size(); ++i) before += all[i] + 2;
    const std::size_t room = std::max(shortest, longest_line - std::min(longest_line, before));
    for (auto& row : rows_) {
        std::string& cell = row.back();
        if (width_of(cell) <= room) continue;
        while (width_of(cell) > room - cut.size()) {
            const auto is_inside = [&] {  // a character of several bytes
                return (static_cast<unsigned char>(cell.back()) & 0xc0U) == 0x80U;
            };
            while (is_inside()) cell.pop_back();
            cell.pop_back();
        }
        cell += cut;
    }
}

std::vector<std::size_t> table::widths() const {
    std::vector<std::size_t> all(rows_.front().size());
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) all[i] = std::max(all[i], width_of(row[i]));
    }
    return all;
}

std::string table::text() const {
    if (rows_.size() == 1) return {};
    const auto widths = this->widths();
    std::string text;
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i) {
            text += row[i];
            if (i + 1 < row.size()) text.append(widths[i] - width_of(row[i]) + 2, ' ');
        }
        text += '\n';
    }
    return text;
}

}  // namespace trinco::program
