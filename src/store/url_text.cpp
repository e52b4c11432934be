#include "store/url_text.hpp"

#include <algorithm>
#include <utility>

#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

int value_of_hex(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

}  // namespace

std::optional<std::string> without_percents(std::string_view text) {
    std::string out;
    for (std::size_t i = 0; i < text.size(); ++i) {
        if (text[i] != '%') {
            out += text[i];
            continue;
        }
        if (i + 2 >= text.size()) return {};
        const int high = value_of_hex(text[i + 1]);
        const int low = value_of_hex(text[i + 2]);
        if (high < 0 || low < 0) return {};
        out += static_cast<char>(high * 16 + low);
        i += 2;
    }
    return out;
}

std::optional<stream_address> host_and_port(std::string_view text, std::uint16_t port_else,
                                            std::string& wrong) {
    const bool nothing = text.empty();
    std::string name;
    if (text.starts_with('[')) {
        const auto end = text.find(']');
        if (end == std::string_view::npos) {
            wrong = "a host that begins with [ lacks its ]";
            return {};
        }
        name = text.substr(1, end - 1);
        text.remove_prefix(end + 1);
    } else {
        name = text.substr(0, text.find(':'));
        text.remove_prefix(name.size());
    }
    if (name.empty() || name.size() > 255 ||
        !std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c != '%'; })) {
        wrong = nothing ? "a host is missing"
                        : "what stands before a colon, a slash or a comma names no host";
        return {};
    }
    if (text.empty()) return stream_address::tcp(std::move(name), port_else);
    const auto port =
        text.front() == ':' ? whole_number<std::uint16_t>(text.substr(1), 65'535) : std::nullopt;
    if (!port || *port == 0) {
        // Not shown: whoever left out the host has a password here.
        wrong = "the port of " + detail::quoted(name) +
                " must be a number from 1 to 65535; an address of IPv6 stands in brackets";
        return {};
    }
    return stream_address::tcp(std::move(name), *port);
}

}  // namespace trinco::detail
