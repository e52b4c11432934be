#include "wire/http1/http_message.hpp"

#include <algorithm>

namespace trinco::detail {
namespace {

char lower(char c) noexcept {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

bool same_name(std::string_view a, std::string_view b) noexcept {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                      [](char x, char y) { return lower(x) == lower(y); });
}

}  // namespace

std::string_view field_of(const std::vector<http_field>& fields, std::string_view name) noexcept {
    for (const auto& field : fields) {
        if (same_name(field.name, name)) return field.value;
    }
    return {};
}

unsigned status_for(const http_fault& fault) noexcept {
    switch (fault.kind) {
        case http_fault::kind_t::header_too_big: return 431;
        case http_fault::kind_t::body_too_big: return 413;
        default: return 400;
    }
}

}  // namespace trinco::detail
