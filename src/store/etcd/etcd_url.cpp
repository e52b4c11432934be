#include "store/etcd/etcd_url.hpp"

#include <utility>

#include "store/server_url.hpp"
#include "store/shown_url.hpp"
#include "store/url_text.hpp"

namespace trinco::detail {
namespace {

constexpr std::uint16_t client_port = 2379;

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
    bool option(std::string_view key, const std::string& value);
    bool wrong(std::string sentence) {
        wrong_ = std::move(sentence);
        return false;
    }

    std::string_view url_;
    std::string scheme_;
    std::string_view hosts_;
    std::string_view options_;
    etcd_target out_;
    tls_options tls_;
    std::string wrong_;
};

std::variant<etcd_target, std::string> parser::parse() {
    const auto take = [this](std::string_view key, const std::string& value) {
        return option(key, value);
    };
    if (!scheme() || !split() || !hosts() || !each_option(options_, wrong_, take) ||
        !tls_.agree(scheme_ == "etcds", "etcds", out_.tls, wrong_)) {
        return wrong_;
    }
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
    auto all = host_list(text, client_port, wrong_);
    if (all) out_.members = std::move(*all);
    return all.has_value();
}

bool parser::option(std::string_view key, const std::string& value) {
    if (tls_options::is_one(key)) return tls_.take(key, value, wrong_);
    if (key == "prefix") {
        auto prefix = prefix_option(value, wrong_);
        if (prefix) out_.prefix = std::move(*prefix);
        return prefix.has_value();
    }
    if (key == "token_epoch") {
        const auto epoch = epoch_option(value, wrong_);
        if (epoch) out_.token_epoch = *epoch;
        return epoch.has_value();
    }
    // A key that nobody knows may be the rest of a password: it is not shown.
    return wrong(
        "after the ? come ca, cert, key, server_name, verify, prefix or token_epoch, each with "
        "its value, and nothing else");
}

}  // namespace

std::variant<etcd_target, std::string> parse_etcd_url(std::string_view url) {
    return parser(url).parse();
}

}  // namespace trinco::detail
