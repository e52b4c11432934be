// A payment provider in a folder, which charges whatever it is asked to charge, however often. What
// it has done can be asked for by the id that came with it, as real ones allow.
//
//   ledger   a line a charge, appended: "ID INVOICE". An account of its own
//
// Threads and processes: any.
#pragma once

#include <cstddef>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace trinco::program::demo {

class provider {
public:
    explicit provider(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // The receipt; nothing when the ledger cannot be written. Neither has blanks.
    [[nodiscard]] std::optional<std::string> charge(std::string_view id,
                                                    std::string_view invoice) const;
    // The receipt of a charge under that id, if there was one.
    [[nodiscard]] std::optional<std::string> receipt(std::string_view id) const;
    // How often the invoice was charged.
    [[nodiscard]] std::size_t charges(std::string_view invoice) const;

private:
    std::filesystem::path folder_;
};

}  // namespace trinco::program::demo
