// What URLs of clusters of servers have in common: their hosts and options. Pure.
//
// Each function that fails leaves a sentence in `wrong`, which never shows what may be a part of a
// password.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "net/stream_address.hpp"
#include "net/tls_settings.hpp"

namespace trinco::detail {

// "h1,h2:80,[::1]": at most 64, none twice.
[[nodiscard]] std::optional<std::vector<stream_address>> host_list(std::string_view text,
                                                                   std::uint16_t port_else,
                                                                   std::string& wrong);

// Calls take(key, value) with each option of "a=1&b=2", in which percent signs are undone, for as
// long as it is content. Options given twice are wrong.
[[nodiscard]] bool each_option(
    std::string_view text, std::string& wrong,
    const std::function<bool(std::string_view key, const std::string& value)>& take);

// ca, cert, key, server_name and verify.
class tls_options {
public:
    [[nodiscard]] static bool is_one(std::string_view key) noexcept;
    [[nodiscard]] bool take(std::string_view key, const std::string& value, std::string& wrong);
    // When all is known: nothing without TLS, else the settings. `secure` is the scheme with TLS.
    [[nodiscard]] bool agree(bool with_tls, std::string_view secure,
                             std::optional<tls_settings>& to, std::string& wrong) const;

private:
    tls_settings settings_;
    std::string last_;  // the last option that makes sense with TLS only
};

// prefix=NAME: the name of a lock, here with a slash at its end.
[[nodiscard]] std::optional<std::string> prefix_option(std::string_view value, std::string& wrong);
// token_epoch=N: 0 to 255.
[[nodiscard]] std::optional<std::uint8_t> epoch_option(std::string_view value, std::string& wrong);

}  // namespace trinco::detail
