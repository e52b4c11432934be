// A configuration file as a list of its values. The only place that knows the TOML library.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

struct toml_value {
    enum class kind_t : std::uint8_t {
        text,
        number,
        boolean,
        list,   // of texts, numbers and booleans
        table,  // an empty line of the list: that the table is there
        other   // dates, and lists of lists or tables
    };
    std::vector<std::string> path;  // {"breakers", "policies", "payments", "open_for"}
    kind_t kind = kind_t::text;
    std::string text;  // the value; numbers and booleans as TOML writes them, lists with commas
    std::uint32_t line = 0;
};

// In the order of their lines. Nothing when there is no such file. The problem names file, line and
// what is wrong there; or why the file cannot be read.
[[nodiscard]] std::variant<std::optional<std::vector<toml_value>>, problem> read_toml(
    const std::filesystem::path& file);
// The same of a text, which is or will be that file's.
[[nodiscard]] std::variant<std::vector<toml_value>, problem> parse_toml(
    std::string_view text, const std::filesystem::path& file);
// What such a file holds; nothing when there is none. At most 1 MiB.
[[nodiscard]] std::variant<std::optional<std::string>, problem> read_configuration(
    const std::filesystem::path& file);

}  // namespace trinco::program
