#include "store/etcd/etcd_url.hpp"

#include <algorithm>
#include <utility>

#include "core/names.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"
#include "store/url_text.hpp"

namespace trinco::detail {
namespace {

constexpr std::uint16_t client_port = 2379;
constexpr std::size_t most_members = 64;
constexpr std::size_t longest_prefix = 100;

class parser {
public:
    explicit parser(std::string_view url) : url_(url) {}
    std::variant<etcd_target, std::string> parse();

private:
    // Each says whether it went well; otherwise wrong_ holds the sentence.
    bool scheme();
    bool split();
    bool login(std::string_view text);
    bool hosts();
    bool options();
    bool option(std::string_view key, const std::string& value);
    bool tls_option(std::string_view key, const std::string& value);
    bool prefix(const std::string& value);
    bool agree();
    bool wrong(std::string sentence) {
        wrong_ = std::move(sentence);
        return false;
    }

    std::string_view url_;
    std::string scheme_;
    std::string_view hosts_;
    std::string_view options_;
    etcd_target out_;
    tls_settings tls_;
    std::string tls_key_;  // the last option that makes sense with TLS only
    std::string wrong_;
};

std::variant<etcd_target, std::string> parser::parse() {
    if (!scheme() || !split() || !hosts() || !options() || !agree()) return wrong_;
    return out_;
}

bool parser::scheme() {
    scheme_ = scheme_of(url_);
    if (scheme_ == "etcd" || scheme_ == "etcds") return true;
    return wrong("a URL of etcd begins with etcd:// or etcds://");
}

bool parser::split() {
    auto rest = url_.substr(scheme_.size() + 1);
    if (!rest.starts_with("//")) {
        return wrong("after " + scheme_ + ": come two slashes and a host");
    }
    rest.remove_prefix(2);
    const auto at = rest.rfind('@');
    const auto mark = rest.find('?');
    const bool has_user = at != std::string_view::npos;
    if (has_user && mark < at) {
        return wrong("an @ after a ? is written %40, and a ? in a password %3F");
    }
    if (has_user && !login(rest.substr(0, at))) return false;
    if (mark != std::string_view::npos) {
        options_ = rest.substr(mark + 1);
        rest = rest.substr(0, mark);
    }
    hosts_ = has_user ? rest.substr(at + 1) : rest;
    if (hosts_.find('#') != std::string_view::npos) {
        return wrong("a URL of etcd has no #; in a user or a password it is written %23");
    }
    return true;
}

bool parser::login(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) {
        return wrong("before the @ come user:password, with the colon");
    }
    auto user = without_percents(text.substr(0, colon));
    auto password = without_percents(text.substr(colon + 1));
    if (!user || !password) {
        return wrong(
            "in a user or a password a % is followed by two hexadecimal digits; a % itself is "
            "written %25");
    }
    if (user->empty() || password->empty()) {
        return wrong("before the @ the user or the password is empty; etcd wants both");
    }
    out_.user = std::move(*user);
    out_.password = std::move(*password);
    return true;
}

bool parser::hosts() {
    auto text = hosts_;
    if (text.ends_with('/')) text.remove_suffix(1);
    if (text.find('/') != std::string_view::npos) {
        return wrong("after the hosts of etcd comes no path; keys of one's own take prefix=NAME");
    }
    for (;;) {
        const auto comma = text.find(',');
        auto one = host_and_port(text.substr(0, comma), client_port, wrong_);
        if (!one) return false;
        if (std::find(out_.members.begin(), out_.members.end(), *one) != out_.members.end()) {
            return wrong("a host is named twice");
        }
        out_.members.push_back(std::move(*one));
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    return out_.members.size() <= most_members || wrong("more than 64 hosts are named");
}

bool parser::options() {
    std::vector<std::string_view> seen;
    while (!options_.empty()) {
        const auto end = options_.find('&');
        const auto one = options_.substr(0, end);
        options_ = end == std::string_view::npos ? std::string_view() : options_.substr(end + 1);
        if (one.empty()) continue;
        const auto equals = one.find('=');
        const auto key = one.substr(0, equals);
        const auto value =
            without_percents(equals == std::string_view::npos ? "" : one.substr(equals + 1));
        if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
            return wrong("an option is given twice");
        }
        seen.push_back(key);
        if (!value) {
            return wrong(
                "in an option a % is followed by two hexadecimal digits; a % itself is written "
                "%25");
        }
        if (!option(key, *value)) return false;
    }
    return true;
}

bool parser::option(std::string_view key, const std::string& value) {
    if (key == "prefix") return prefix(value);
    if (key == "token_epoch") {
        const auto epoch = whole_number<unsigned>(value, 255);
        if (!epoch) return wrong("token_epoch is a number from 0 to 255, not " + quoted(value));
        out_.token_epoch = static_cast<std::uint8_t>(*epoch);
        return true;
    }
    return tls_option(key, value);
}

bool parser::tls_option(std::string_view key, const std::string& value) {
    if (key == "verify") {
        if (value != "yes" && value != "no") {
            return wrong("verify is yes or no, not " + quoted(value));
        }
        tls_.verify = value == "yes";
        tls_key_ = key;
        return true;
    }
    std::string* to = nullptr;
    if (key == "ca") to = &tls_.ca_file;
    if (key == "cert") to = &tls_.certificate_file;
    if (key == "key") to = &tls_.key_file;
    if (key == "server_name") to = &tls_.server_name;
    // A key that nobody knows may be the rest of a password: it is not shown.
    if (to == nullptr) {
        return wrong(
            "after the ? come ca, cert, key, server_name, verify, prefix or token_epoch, each with "
            "its value, and nothing else");
    }
    if (value.empty()) return wrong("the option " + std::string(key) + " has no value");
    tls_key_ = key;
    *to = value;
    return true;
}

bool parser::prefix(const std::string& value) {
    const auto name = value.ends_with('/') ? value.substr(0, value.size() - 1) : value;
    if (name.size() > longest_prefix) {
        return wrong("prefix has " + std::to_string(name.size()) + " bytes; at most " +
                     std::to_string(longest_prefix) + " are allowed");
    }
    if (const auto complaint = check_lock_name(name)) {
        return wrong("prefix is not the name of a lock: " + *complaint);
    }
    out_.prefix = name + '/';
    return true;
}

// What only shows when all is known.
bool parser::agree() {
    const bool with_tls = scheme_ == "etcds";
    if (!with_tls && !tls_key_.empty()) {
        return wrong("the option " + tls_key_ + " is for TLS: begin the URL with etcds://");
    }
    if (tls_.certificate_file.empty() != tls_.key_file.empty()) {
        return wrong("cert and key come together: a certificate is of no use without its key");
    }
    if (with_tls) out_.tls = tls_;
    return true;
}

}  // namespace

std::variant<etcd_target, std::string> parse_etcd_url(std::string_view url) {
    return parser(url).parse();
}

}  // namespace trinco::detail
