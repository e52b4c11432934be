#include "store/server_url.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/names.hpp"
#include "core/quoted.hpp"
#include "store/url_text.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t most_members = 64;
constexpr std::size_t longest_prefix = 100;

bool fail(std::string& wrong, std::string sentence) {
    wrong = std::move(sentence);
    return false;
}

}  // namespace

std::optional<std::vector<stream_address>> host_list(std::string_view text, std::uint16_t port_else,
                                                     std::string& wrong) {
    std::vector<stream_address> all;
    for (;;) {
        const auto comma = text.find(',');
        auto one = host_and_port(text.substr(0, comma), port_else, wrong);
        if (!one) return {};
        if (std::find(all.begin(), all.end(), *one) != all.end()) {
            wrong = "a host is named twice";
            return {};
        }
        all.push_back(std::move(*one));
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    if (all.size() > most_members) {
        wrong = "more than 64 hosts are named";
        return {};
    }
    return all;
}

bool each_option(std::string_view text, std::string& wrong,
                 const std::function<bool(std::string_view, const std::string&)>& take) {
    std::vector<std::string_view> seen;
    while (!text.empty()) {
        const auto end = text.find('&');
        const auto one = text.substr(0, end);
        text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
        if (one.empty()) continue;
        const auto equals = one.find('=');
        const auto key = one.substr(0, equals);
        const auto value =
            without_percents(equals == std::string_view::npos ? "" : one.substr(equals + 1));
        if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
            return fail(wrong, "an option is given twice");
        }
        seen.push_back(key);
        if (!value) {
            return fail(wrong,
                        "in an option a % is followed by two hexadecimal digits; a % itself is "
                        "written %25");
        }
        if (!take(key, *value)) return false;
    }
    return true;
}

bool tls_options::is_one(std::string_view key) noexcept {
    constexpr std::array<std::string_view, 5> all{"ca", "cert", "key", "server_name", "verify"};
    return std::find(all.begin(), all.end(), key) != all.end();
}

bool tls_options::take(std::string_view key, const std::string& value, std::string& wrong) {
    last_ = key;
    if (key == "verify") {
        if (value != "yes" && value != "no") {
            return fail(wrong, "verify is yes or no, not " + detail::quoted(value));
        }
        settings_.verify = value == "yes";
        return true;
    }
    if (value.empty()) return fail(wrong, "the option " + last_ + " has no value");
    if (key == "ca") settings_.ca_file = value;
    if (key == "cert") settings_.certificate_file = value;
    if (key == "key") settings_.key_file = value;
    if (key == "server_name") settings_.server_name = value;
    return true;
}

bool tls_options::agree(bool with_tls, std::string_view secure, std::optional<tls_settings>& to,
                        std::string& wrong) const {
    if (!with_tls && !last_.empty()) {
        return fail(wrong, "the option " + last_ + " is for TLS: begin the URL with " +
                               std::string(secure) + "://");
    }
    if (settings_.certificate_file.empty() != settings_.key_file.empty()) {
        return fail(wrong,
                    "cert and key come together: a certificate is of no use without its key");
    }
    if (with_tls) to = settings_;
    return true;
}

std::optional<std::string> prefix_option(std::string_view value, std::string& wrong) {
    const auto name = value.ends_with('/') ? value.substr(0, value.size() - 1) : value;
    if (name.size() > longest_prefix) {
        wrong = "prefix has " + std::to_string(name.size()) + " bytes; at most " +
                std::to_string(longest_prefix) + " are allowed";
        return {};
    }
    if (const auto complaint = check_lock_name(name)) {
        wrong = "prefix is not the name of a lock: " + *complaint;
        return {};
    }
    return std::string(name) + '/';
}

std::optional<std::uint8_t> epoch_option(std::string_view value, std::string& wrong) {
    const auto epoch = whole_number<unsigned>(value, 255);
    if (epoch) return static_cast<std::uint8_t>(*epoch);
    wrong = "token_epoch is a number from 0 to 255, not " + detail::quoted(value);
    return {};
}

}  // namespace trinco::detail
