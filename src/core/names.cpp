#include "core/names.hpp"

#include <algorithm>

#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

bool is_alphanumeric(char c) noexcept {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

bool fits(std::string_view name, std::size_t most, std::string_view marks) noexcept {
    if (name.empty() || name.size() > most) return false;
    for (const char c : name) {
        if (!is_alphanumeric(c) && marks.find(c) == std::string_view::npos) return false;
    }
    return true;
}

std::string sentence(std::string_view what, std::string_view name, std::string_view allowed) {
    return std::string(what) + " is " + detail::quoted(name) + ", but must be " +
           std::string(allowed);
}

std::optional<std::string> check_word(std::string_view what, std::string_view name,
                                      std::size_t most) {
    if (fits(name, most, "._:-")) return std::nullopt;
    return sentence(what, name,
                    "1 to " + std::to_string(most) + " characters of A-Z a-z 0-9 . _ : -");
}

bool is_path(std::string_view name) noexcept {
    if (name.front() == '/') name.remove_prefix(1);
    while (true) {
        const auto end = name.find('/');
        const auto segment = name.substr(0, end);
        if (segment.empty() || segment == "..") return false;
        if (end == std::string_view::npos) return true;
        name.remove_prefix(end + 1);
    }
}

}  // namespace

std::optional<std::string> check_breaker_name(std::string_view name) {
    return check_word("the name of a breaker", name, max_breaker_name);
}

std::optional<std::string> check_namespace(std::string_view name) {
    return check_word("the namespace", name, max_party_name);
}

std::optional<std::string> check_instance(std::string_view name) {
    return check_word("the instance", name, max_party_name);
}

std::optional<std::string> check_voter(std::string_view name) {
    return check_word("the voter", name, max_party_name);
}

std::optional<std::string> check_lock_name(std::string_view name) {
    if (fits(name, max_lock_name, "._/-") && is_path(name)) return std::nullopt;
    return sentence(
        "the name of a lock", name,
        "1 to " + std::to_string(max_lock_name) +
            " characters of A-Z a-z 0-9 . _ / -, with no empty or \"..\" segment and no '/' at "
            "the end; one '/' may lead");
}

bool is_one_line(std::string_view text) noexcept {
    return std::none_of(text.begin(), text.end(), [](char c) {
        const auto byte = static_cast<unsigned char>(c);
        return byte < 0x20 || byte == 0x7f;
    });
}

}  // namespace trinco::detail
