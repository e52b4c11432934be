#include "store/consul/consul_holders.hpp"

#include <charconv>

namespace trinco::detail::consul {
namespace {

class reader {
public:
    explicit reader(std::string_view text) : rest_(text) {}

    std::optional<semaphore_holders> read() {
        semaphore_holders out;
        bool has_limit = false;
        bool has_holders = false;
        if (!take('{')) return std::nullopt;
        do {
            std::string member;
            if (!take_string(member) || !take(':')) return std::nullopt;
            if (member == "Limit" && !has_limit) {
                has_limit = take_number(out.limit);
                if (!has_limit) return std::nullopt;
            } else if (member == "Holders" && !has_holders) {
                has_holders = take_word("null") || take_holders(out.sessions);
                if (!has_holders) return std::nullopt;
            } else {
                return std::nullopt;
            }
        } while (take(','));
        if (!take('}') || !has_limit || !has_holders) return std::nullopt;
        skip();
        if (!rest_.empty()) return std::nullopt;
        return out;
    }

private:
    void skip() {
        const auto at = rest_.find_first_not_of(" \t\r\n");
        rest_.remove_prefix(at == std::string_view::npos ? rest_.size() : at);
    }
    bool take(char c) {
        skip();
        if (!rest_.starts_with(c)) return false;
        rest_.remove_prefix(1);
        return true;
    }
    bool take_word(std::string_view word) {
        skip();
        if (!rest_.starts_with(word)) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    bool take_string(std::string& out) {
        if (!take('"')) return false;
        const auto end = rest_.find('"');
        if (end == std::string_view::npos) return false;
        for (const char c : rest_.substr(0, end)) {
            if (c == '\\' || static_cast<unsigned char>(c) < ' ') return false;
        }
        out = rest_.substr(0, end);
        rest_.remove_prefix(end + 1);
        return true;
    }
    bool take_number(std::int64_t& out) {
        skip();
        const auto end = rest_.find_first_not_of("-0123456789");
        const auto word = rest_.substr(0, end);
        const auto digits = word.starts_with('-') ? word.substr(1) : word;
        if (digits.size() > 1 && digits.starts_with('0')) return false;
        const auto [at, error] = std::from_chars(word.data(), word.data() + word.size(), out);
        if (error != std::errc() || at != word.data() + word.size()) return false;
        rest_.remove_prefix(word.size());
        return true;
    }
    bool take_holders(std::set<std::string>& out) {
        if (!take('{')) return false;
        if (take('}')) return true;
        do {
            std::string session;
            if (!take_string(session) || session.empty() || !take(':') || !take_word("true")) {
                return false;
            }
            if (!out.insert(std::move(session)).second) return false;
        } while (take(','));
        return take('}');
    }

    std::string_view rest_;
};

}  // namespace

std::string text_of(const semaphore_holders& what) {
    auto out = "{\"Limit\":" + std::to_string(what.limit) + ",\"Holders\":{";
    for (const auto& session : what.sessions) {
        if (out.back() != '{') out += ',';
        out += '"' + session + "\":true";
    }
    return out + "}}";
}

std::optional<semaphore_holders> holders_of(std::string_view value) {
    return reader(value).read();
}

}  // namespace trinco::detail::consul
