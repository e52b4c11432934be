#include "store/consul/consul_url.hpp"

#include <algorithm>
#include <utility>

#include "core/quoted.hpp"
#include "store/consul/consul_layout.hpp"
#include "store/consul/consul_token.hpp"
#include "store/server_url.hpp"
#include "store/shown_url.hpp"

namespace trinco::detail {
namespace {

constexpr std::uint16_t plain_port = 8500;
constexpr std::uint16_t tls_port = 8501;
constexpr std::size_t longest_name = 64;

class parser {
public:
    explicit parser(std::string_view url) : url_(url) {}
    std::variant<consul_target, std::string> parse();

private:
    // Each says whether it went well; otherwise wrong_ holds the sentence.
    bool scheme();
    bool hosts(std::string_view text);
    bool option(std::string_view key, const std::string& value);
    bool token_option(std::string_view key, const std::string& value);
    bool name_option(std::string_view key, const std::string& value);
    bool prefix(const std::string& value);
    bool wrong(std::string sentence) {
        wrong_ = std::move(sentence);
        return false;
    }

    std::string_view url_;
    std::string scheme_;
    bool with_tls_ = false;
    consul_target out_;
    tls_options tls_;
    std::string wrong_;
};

std::variant<consul_target, std::string> parser::parse() {
    if (!scheme()) return wrong_;
    auto rest = url_.substr(scheme_.size() + 1);
    if (!rest.starts_with("//")) return "after " + scheme_ + ": come two slashes and a host";
    rest.remove_prefix(2);
    if (rest.find('@') != std::string_view::npos) {
        return "a URL of Consul has no user and no @; its token is named by token_file=, and an @ "
               "in an option is written %40";
    }
    if (rest.find('#') != std::string_view::npos) {
        return "a URL of Consul has no #; in an option it is written %23";
    }
    const auto mark = rest.find('?');
    const auto options =
        mark == std::string_view::npos ? std::string_view() : rest.substr(mark + 1);
    const auto take = [this](std::string_view key, const std::string& value) {
        return option(key, value);
    };
    if (!hosts(rest.substr(0, mark)) || !each_option(options, wrong_, take) ||
        !tls_.agree(with_tls_, "consuls", out_.way.tls, wrong_)) {
        return wrong_;
    }
    if (!out_.way.token.empty() && !out_.way.token_file.empty()) {
        return "token and token_file are given; one of them is enough";
    }
    return out_;
}

bool parser::scheme() {
    scheme_ = scheme_of(url_);
    with_tls_ = scheme_ == "consuls";
    if (with_tls_ || scheme_ == "consul") return true;
    return wrong("a URL of Consul begins with consul:// or consuls://");
}

bool parser::hosts(std::string_view text) {
    if (text.ends_with('/')) text.remove_suffix(1);
    if (text.find('/') != std::string_view::npos) {
        return wrong("after the hosts of Consul comes no path; keys of one's own take prefix=NAME");
    }
    auto all = host_list(text, with_tls_ ? tls_port : plain_port, wrong_);
    if (all) out_.way.addresses = std::move(*all);
    return all.has_value();
}

bool parser::option(std::string_view key, const std::string& value) {
    if (tls_options::is_one(key)) return tls_.take(key, value, wrong_);
    if (key == "token" || key == "token_file") return token_option(key, value);
    if (key == "dc" || key == "ns") return name_option(key, value);
    if (key == "prefix") return prefix(value);
    if (key == "keys") {
        out_.plain_keys = value == "plain";
        return out_.plain_keys ||
               wrong("keys is plain, or left out, and not " + detail::quoted(value));
    }
    if (key == "token_epoch") {
        const auto epoch = epoch_option(value, wrong_);
        if (epoch) out_.token_epoch = *epoch;
        return epoch.has_value();
    }
    // A key that nobody knows may be the rest of a token: it is not shown.
    return wrong(
        "after the ? come token_file, token, dc, ns, ca, cert, key, server_name, verify, prefix, "
        "keys or token_epoch, each with its value, and nothing else");
}

bool parser::token_option(std::string_view key, const std::string& value) {
    if (key == "token_file") {
        out_.way.token_file = value;
        return !value.empty() || wrong("the option token_file has no value");
    }
    out_.way.token = value;
    return consul::is_token(value) ||
           wrong("token is 1 to 1,024 printable letters without blanks, as Consul made it");
}

bool parser::name_option(std::string_view key, const std::string& value) {
    const bool sound = !value.empty() && value.size() <= longest_name &&
                       std::all_of(value.begin(), value.end(), [](char c) {
                           return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                                  (c >= '0' && c <= '9') || c == '-' || c == '_';
                       });
    if (!sound) {
        return wrong(std::string(key) + " is 1 to 64 letters, digits, - or _");
    }
    (key == "dc" ? out_.way.datacenter : out_.way.name_space) = value;
    return true;
}

bool parser::prefix(const std::string& value) {
    if (value.starts_with('/')) return wrong("prefix begins with a slash; keys of Consul do not");
    auto made = prefix_option(value, wrong_);
    if (!made) return false;
    made->pop_back();
    if (const auto bad = consul::check_segments(*made)) return wrong("the prefix " + *bad);
    made->push_back('/');
    out_.prefix = std::move(*made);
    return true;
}

}  // namespace

std::variant<consul_target, std::string> parse_consul_url(std::string_view url) {
    return parser(url).parse();
}

}  // namespace trinco::detail
