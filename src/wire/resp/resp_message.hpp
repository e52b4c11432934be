// Replies of Redis (RESP2) as values, and what is wrong with bytes that are none.
//
// A plain value. A status (+OK) is a string: nobody acts upon the difference. An empty array and a
// nil are different things, so are an empty string and a nil.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trinco::detail {

struct resp_reply {
    enum class kind_t : std::uint8_t { nil, integer, string, array, error };
    kind_t kind = kind_t::nil;
    std::int64_t integer = 0;               // of integer
    std::string text = {};                  // of string; of error: "WRONGTYPE Operation against..."
    std::vector<resp_reply> elements = {};  // of array

    [[nodiscard]] bool is(kind_t k) const noexcept { return kind == k; }
    // The first word of an error, which says what kind it is; empty when this is no error.
    [[nodiscard]] std::string_view error_word() const noexcept;

    [[nodiscard]] static resp_reply of(std::int64_t number) {
        return {kind_t::integer, number, {}, {}};
    }
    [[nodiscard]] static resp_reply of(std::string text) {
        return {kind_t::string, 0, std::move(text), {}};
    }
    [[nodiscard]] static resp_reply of(std::vector<resp_reply> elements) {
        return {kind_t::array, 0, {}, std::move(elements)};
    }
    [[nodiscard]] static resp_reply error_of(std::string text) {
        return {kind_t::error, 0, std::move(text), {}};
    }
    bool operator==(const resp_reply&) const = default;
};

struct resp_limits {
    std::size_t bytes = 16 * 1024 * 1024;  // of one reply as it comes, with all it holds
    std::size_t text = 4 * 1024 * 1024;    // of one string or error
    std::size_t elements = 256 * 1024;     // of one reply, in all its arrays
    std::size_t depth = 7;                 // arrays within arrays; hiredis 0.14 knows no more
};

// Why bytes are no reply.
struct resp_fault {
    enum class kind_t : std::uint8_t {
        malformed,  // not RESP2
        too_big     // over one of the limits
    };
    kind_t kind = kind_t::malformed;
    std::string sentence;
};

}  // namespace trinco::detail
