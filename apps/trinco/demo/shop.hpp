// A shop in a folder that sells numbered tickets, and the race in it.
//
//   stock       how many are left, as six digits. Whoever sells reads it, thinks, and writes one
//               less: a race when two do so at once.
//   receipts    a line for each ticket sold, appended: "TICKET SELLER". An account of its own, that
//               no race can falsify.
//   ledger      a line for each sale under a lock, appended: "TOKEN TICKET SELLER".
//   fence       the highest token that was seen.
//
// The shop does not trust the lock: whoever comes with a lower token than the fence has seen is
// refused. Reading shows the token, too; if only writing did, a late write could still come between
// the next holder's reading and writing. Looking at the fence and writing are one step, as a
// conditional update of a database is. (A flock for those microseconds; it does not cover what lies
// between reading and writing.) Without a token nobody asks.
//
// Threads and processes: any.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace trinco::program::demo {

class shop {
public:
    struct receipt {
        int ticket = 0;
        std::string seller;
    };

    explicit shop(std::filesystem::path folder) : folder_(std::move(folder)) {}

    // Makes the folder, with so many tickets.
    [[nodiscard]] std::error_code open(int tickets) const;

    // How many are left, as anybody may look it up; -1: cannot be read.
    [[nodiscard]] int left() const;

    enum class answer : std::uint8_t { done, refused, failed };
    // The same for somebody who means to sell.
    [[nodiscard]] answer read(int& left, std::optional<std::uint64_t> token) const;
    // Sells the ticket that was the last one when `left_before` were left.
    [[nodiscard]] answer sell(std::string_view seller, int left_before,
                              std::optional<std::uint64_t> token) const;

    [[nodiscard]] std::vector<receipt> receipts() const;
    // In the order of the ledger.
    [[nodiscard]] std::vector<std::uint64_t> tokens() const;

    // Takes a part in the play that exists once. True for one caller only.
    [[nodiscard]] bool take_part(std::string_view part) const;

private:
    [[nodiscard]] answer pass(int fence, std::uint64_t token) const;
    std::filesystem::path folder_;
};

}  // namespace trinco::program::demo
