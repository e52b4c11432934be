#include "store/redis/redis_url.hpp"

#include <algorithm>
#include <utility>

#include "core/quoted.hpp"
#include "store/shown_url.hpp"
#include "store/url_text.hpp"

namespace trinco::detail {
namespace {

constexpr std::uint16_t server_port = 6379;
constexpr std::uint16_t sentinel_port = 26379;
constexpr unsigned most_databases = 1'000'000;
constexpr std::size_t most_nodes = 64;
constexpr std::size_t longest_path = 107;  // of a Unix socket

class parser {
public:
    explicit parser(std::string_view url) : url_(url) {}
    std::variant<redis_target, std::string> parse();

private:
    // Each says whether it went well; otherwise wrong_ holds the sentence.
    bool scheme();
    bool split();
    bool user_info(std::string_view text);
    bool path_of_socket();
    bool hosts(std::string_view text);
    bool host(std::string_view text);
    bool path(std::string_view text);
    bool database(std::string_view text);
    bool options();
    bool option(std::string_view key, std::string value);
    bool tls_option(std::string_view key, const std::string& value);
    bool agree();
    bool wrong(std::string sentence) {
        wrong_ = std::move(sentence);
        return false;
    }

    std::string_view url_;
    std::string scheme_;
    bool by_socket_ = false;
    std::string_view rest_;  // after the user, before the options
    std::string_view options_;
    redis_target out_;
    tls_settings tls_;
    std::string tls_key_;  // the last option that makes sense with TLS only
    bool with_tls_ = false;
    std::string wrong_;
};

std::variant<redis_target, std::string> parser::parse() {
    if (!scheme() || !split()) return wrong_;
    if (by_socket_) {
        if (!path_of_socket()) return wrong_;
    } else {
        const auto slash = rest_.find('/');
        if (!hosts(rest_.substr(0, slash))) return wrong_;
        if (!path(slash == std::string_view::npos ? "" : rest_.substr(slash + 1))) return wrong_;
    }
    if (!options() || !agree()) return wrong_;
    return out_;
}

bool parser::scheme() {
    scheme_ = scheme_of(url_);
    if (scheme_ == "redis+sentinel") {
        out_.kind = redis_target::kind_t::sentinel;
    } else if (scheme_ == "redis+cluster") {
        out_.kind = redis_target::kind_t::cluster;
    } else if (scheme_ == "rediss") {
        with_tls_ = true;
    } else if (scheme_ == "redis+unix") {
        by_socket_ = true;
    } else if (scheme_ != "redis") {
        return wrong(
            "a URL of Redis begins with redis://, rediss://, redis+unix:, "
            "redis+sentinel:// or redis+cluster://");
    }
    return true;
}

bool parser::split() {
    auto rest = url_.substr(scheme_.size() + 1);
    const bool slashes = rest.starts_with("//");
    if (slashes) rest.remove_prefix(2);
    if (!slashes && !by_socket_) return wrong("after " + scheme_ + ": come two slashes and a host");
    const auto at = rest.rfind('@');
    const bool has_user = slashes && at != std::string_view::npos;
    const auto mark = rest.find('?');
    if (has_user && mark < at) {
        return wrong("an @ after a ? is written %40, and a ? in a password %3F");
    }
    if (has_user && !user_info(rest.substr(0, at))) return false;
    if (mark != std::string_view::npos) {
        options_ = rest.substr(mark + 1);
        rest = rest.substr(0, mark);
    }
    rest_ = has_user ? rest.substr(at + 1) : rest;
    if (rest_.find('#') != std::string_view::npos) {
        return wrong("a URL of Redis has no #; in a user or a password it is written %23");
    }
    return true;
}

bool parser::user_info(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) {
        return wrong("before the @ come user:password or :password, with the colon");
    }
    auto user = without_percents(text.substr(0, colon));
    auto password = without_percents(text.substr(colon + 1));
    if (!user || !password) {
        return wrong(
            "in a user or a password a % is followed by two hexadecimal digits; a % "
            "itself is written %25");
    }
    if (password->empty()) return wrong("the password before the @ is empty");
    out_.login = {std::move(*user), std::move(*password)};
    return true;
}

bool parser::path_of_socket() {
    const auto path = without_percents(rest_);
    if (!path || path->empty() || path->front() != '/' || path->size() > longest_path ||
        path->find('\0') != std::string::npos) {
        return wrong(
            "after redis+unix: comes the path of a socket, which begins with a slash and "
            "has at most 107 bytes");
    }
    out_.nodes.push_back(stream_address::local(*path));
    return true;
}

bool parser::hosts(std::string_view text) {
    const bool one = out_.kind == redis_target::kind_t::single;
    if (one && text.find(',') != std::string_view::npos) {
        return wrong(
            "redis:// names one host; several belong to redis+sentinel:// or "
            "redis+cluster://");
    }
    for (;;) {
        const auto comma = text.find(',');
        if (!host(text.substr(0, comma))) return false;
        if (comma == std::string_view::npos) break;
        text.remove_prefix(comma + 1);
    }
    if (out_.nodes.size() > most_nodes) return wrong("more than 64 hosts are named");
    return true;
}

bool parser::host(std::string_view text) {
    const bool sentinel = out_.kind == redis_target::kind_t::sentinel;
    auto one = host_and_port(text, sentinel ? sentinel_port : server_port, wrong_);
    if (!one) return false;
    out_.nodes.push_back(std::move(*one));
    return true;
}

bool parser::path(std::string_view text) {
    if (out_.kind == redis_target::kind_t::sentinel) {
        const auto slash = text.find('/');
        auto name = without_percents(text.substr(0, slash));
        if (!name || name->empty()) {
            return wrong(
                "after the Sentinels come a slash and the name by which they know the "
                "primary, like /mymaster");
        }
        out_.primary = std::move(*name);
        text = slash == std::string_view::npos ? std::string_view() : text.substr(slash + 1);
    }
    return text.empty() || database(text);
}

bool parser::database(std::string_view text) {
    const auto number = whole_number<unsigned>(text, most_databases);
    if (!number) return wrong("the database must be a number of at most 1000000, like /0");
    if (*number != 0 && out_.kind == redis_target::kind_t::cluster) {
        return wrong("a cluster has no databases but 0, and " + std::to_string(*number) +
                     " was asked for");
    }
    out_.database = *number;
    return true;
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
        auto value =
            without_percents(equals == std::string_view::npos ? "" : one.substr(equals + 1));
        if (std::find(seen.begin(), seen.end(), key) != seen.end()) {
            return wrong("an option is given twice");
        }
        seen.push_back(key);
        if (!value) {
            return wrong(
                "in an option a % is followed by two hexadecimal digits; a % itself is "
                "written %25");
        }
        if (!option(key, std::move(*value))) return false;
    }
    return true;
}

bool parser::option(std::string_view key, std::string value) {
    const bool sentinel = out_.kind == redis_target::kind_t::sentinel;
    if (key == "db" && by_socket_) return database(value);
    if (key == "sentinel_user" && sentinel) {
        out_.sentinel_login.user = std::move(value);
        return true;
    }
    if (key == "sentinel_password" && sentinel) {
        out_.sentinel_login.password = std::move(value);
        return true;
    }
    if (!by_socket_) return tls_option(key, value);
    return wrong("after the ? of redis+unix: comes db only");
}

bool parser::tls_option(std::string_view key, const std::string& value) {
    if (key == "tls" || key == "verify") {
        if (value != "yes" && value != "no") {
            return wrong(std::string(key) + " is yes or no, not " + detail::quoted(value));
        }
        if (key == "tls" && value == "no" && with_tls_) {
            return wrong("rediss:// is with TLS; without it the URL begins with redis://");
        }
        (key == "tls" ? with_tls_ : tls_.verify) = value == "yes";
        if (key == "verify") tls_key_ = key;
        return true;
    }
    std::string* to = nullptr;
    if (key == "ca") to = &tls_.ca_file;
    if (key == "cert") to = &tls_.certificate_file;
    if (key == "key") to = &tls_.key_file;
    if (key == "server_name") to = &tls_.server_name;
    // A key that nobody knows may be the rest of a password: it is not shown.
    if (to == nullptr) {
        const bool sentinel = out_.kind == redis_target::kind_t::sentinel;
        return wrong("after the ? come tls, ca, cert, key, server_name or verify" +
                     std::string(sentinel ? ", sentinel_user or sentinel_password" : "") +
                     ", each with its value, and nothing else");
    }
    if (value.empty()) return wrong("the option " + std::string(key) + " has no value");
    tls_key_ = key;
    *to = value;
    return true;
}

// What only shows when all is known.
bool parser::agree() {
    if (!with_tls_ && !tls_key_.empty()) {
        return wrong("the option " + tls_key_ +
                     " is for TLS: begin with rediss://, or add tls=yes");
    }
    if (tls_.certificate_file.empty() != tls_.key_file.empty()) {
        return wrong("cert and key come together: a certificate is of no use without its key");
    }
    if (!out_.sentinel_login.user.empty() && out_.sentinel_login.password.empty()) {
        return wrong("sentinel_user needs sentinel_password");
    }
    if (with_tls_) out_.tls = tls_;
    return true;
}

}  // namespace

std::variant<redis_target, std::string> parse_redis_url(std::string_view url) {
    return parser(url).parse();
}

}  // namespace trinco::detail
