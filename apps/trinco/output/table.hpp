// Tables on standard output: a row a thing, columns aligned.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace trinco::program {

class table {
public:
    explicit table(std::vector<std::string> head);
    // One cell a column. An empty cell is shown as "-", so that no column is lost to awk.
    void row(std::vector<std::string> cells);
    // Takes away those of these columns that are empty in all rows.
    void drop_if_empty(std::span<const std::string_view> columns);
    // Cuts the cells of the last column, so that lines are no longer than this, but never to less
    // than 10 characters.
    void cut_last(std::size_t longest_line);
    // Head and rows, two spaces between columns, no trailing spaces. Cells are made harmless to a
    // terminal. Empty when there is no row.
    [[nodiscard]] std::string text() const;

private:
    [[nodiscard]] std::vector<std::size_t> widths() const;

    std::vector<std::vector<std::string>> rows_;
};

}  // namespace trinco::program
