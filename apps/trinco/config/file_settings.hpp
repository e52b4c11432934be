// What trinco.toml says, checked against the keys that there are.
#pragma once

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program {

struct file_settings {
    struct value {
        std::string text;
        std::string source;  // file:line
    };
    std::map<std::string, value> values;  // by key: "breakers.store"
    std::map<std::string, std::vector<policy_entry>> policies;
    std::vector<policy_problem> policy_problems;
};

// Adds what a file says, above what is there; of a policy each key alone. A file that is missing is
// a problem when `missing` makes a sentence of it.
[[nodiscard]] std::optional<problem> add_file(const std::filesystem::path& file, file_settings& to,
                                              const std::function<std::string()>& missing);

}  // namespace trinco::program
