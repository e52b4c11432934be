// JSON as the program writes it: one object or array at a time, in the order of adding.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

namespace trinco::program {

class json_object {
public:
    json_object& add(std::string_view key, std::string_view text);
    json_object& add(std::string_view key, const char* text) {
        return add(key, std::string_view(text));
    }
    json_object& add(std::string_view key, std::same_as<bool> auto value) {
        return add_raw(key, value ? "true" : "false");
    }
    json_object& add(std::string_view key,
                     std::integral auto value) requires(!std::same_as<decltype(value), bool>) {
        return add_raw(key, std::to_string(value));
    }
    json_object& add(std::string_view key, double value);  // null unless finite
    // JSON as it is.
    json_object& add_raw(std::string_view key, std::string_view json);
    json_object& add_null(std::string_view key) { return add_raw(key, "null"); }
    [[nodiscard]] std::string text() const;  // one line

private:
    std::string text_;
};

class json_array {
public:
    json_array& add_raw(std::string_view json);
    json_array& add(std::string_view text);
    [[nodiscard]] std::string text() const;

private:
    std::string text_;
};

// A string with its quotes. What is not UTF-8 becomes U+FFFD.
[[nodiscard]] std::string json_string(std::string_view text);

}  // namespace trinco::program
