// Whether nobody is likely to be in a queue, by how it was found before. Who hopes so and is wrong
// enters with two requests instead of one, so a queue in which somebody was is hoped for again only
// after it was found empty several times. Names that share a place share their luck: what is kept
// does not grow. Pure.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace trinco::detail::etcd {

class etcd_hopes {
public:
    static constexpr std::uint8_t patience = 8;

    [[nodiscard]] bool has(std::string_view name) const noexcept { return rest_[place(name)] == 0; }
    void found_empty(std::string_view name) noexcept {
        auto& rest = rest_[place(name)];
        if (rest > 0) --rest;
    }
    void found_somebody(std::string_view name) noexcept { rest_[place(name)] = patience; }

private:
    static constexpr std::size_t places = 1'024;
    [[nodiscard]] static std::size_t place(std::string_view name) noexcept {
        return std::hash<std::string_view>{}(name) % places;
    }

    std::array<std::uint8_t, places> rest_{};  // so often it must still be found empty
};

}  // namespace trinco::detail::etcd
