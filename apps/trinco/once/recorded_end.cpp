#include "apps/trinco/once/recorded_end.hpp"

#include <charconv>
#include <string_view>

namespace trinco::program {
namespace {

constexpr std::string_view before_code = "exit ";

}  // namespace

std::string payload_of(const recorded_end& end) {
    if (end.code == 0) return end.output;
    return std::string(before_code) + std::to_string(end.code) + "\n" + end.output;
}

recorded_end end_of(const detail::once_record& record) {
    if (record.state != detail::once_record::state_t::failed) return {0, record.payload};
    const std::string_view text = record.payload;
    const auto line = text.find('\n');
    int code = 0;
    if (text.starts_with(before_code) && line != std::string_view::npos) {
        const auto* const end = text.data() + line;
        const auto read = std::from_chars(text.data() + before_code.size(), end, code);
        if (read.ptr == end && code > 0 && code < 256) {
            return {code, std::string(text.substr(line + 1))};
        }
    }
    return {1, record.payload};
}

}  // namespace trinco::program
