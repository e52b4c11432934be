#include "core/lock/once.hpp"

#include <charconv>
#include <utility>

#include "core/mutant.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"

namespace trinco::detail {
namespace {

constexpr std::string_view first_line = "trinco-once 1";
constexpr std::string_view lock_prefix = ".trinco/once/";

template <class T>
bool read_number(std::string_view text, T& out) {
    const auto* const end = text.data() + text.size();
    const auto r = std::from_chars(text.data(), end, out);
    return r.ec == std::errc() && r.ptr == end;
}

std::optional<once_record::state_t> state_of(std::string_view text) {
    for (const auto s : {once_record::state_t::running, once_record::state_t::done,
                         once_record::state_t::failed, once_record::state_t::undone}) {
        if (text == name_of(s)) return s;
    }
    return std::nullopt;
}

bool take(once_record& r, std::string_view name, std::string_view value) {
    if (name == "state") {
        const auto s = state_of(value);
        if (s) r.state = *s;
        return s.has_value();
    }
    if (name == "attempt") return read_number(value, r.attempt);
    if (name == "since") {
        std::int64_t ms = 0;
        const bool good = read_number(value, ms);
        r.since = std::chrono::milliseconds(ms);
        return good;
    }
    if (name == "owner") r.owner = value;
    if (name == "run") r.run_id = value;
    if (name == "fingerprint") r.fingerprint = value;
    return true;
}

}  // namespace

std::string_view name_of(once_record::state_t s) noexcept {
    switch (s) {
        case once_record::state_t::running: return "running";
        case once_record::state_t::done: return "done";
        case once_record::state_t::failed: return "failed";
        case once_record::state_t::undone: return "undone";
    }
    return "running";
}

std::string encode(const once_record& r) {
    std::string out;
    out.append(first_line).append("\nstate ").append(name_of(r.state));
    out.append("\nowner ").append(r.owner).append("\nrun ").append(r.run_id);
    out.append("\nattempt ").append(std::to_string(r.attempt));
    out.append("\nsince ").append(std::to_string(r.since.count()));
    if (!r.fingerprint.empty()) out.append("\nfingerprint ").append(r.fingerprint);
    out.append("\n\n").append(r.payload);
    return out;
}

std::optional<once_record> decode_once(std::string_view text) {
    once_record r;
    bool first = true;
    bool has_state = false;
    for (;;) {
        const auto end = text.find('\n');
        if (end == std::string_view::npos) return std::nullopt;
        const auto line = text.substr(0, end);
        text.remove_prefix(end + 1);
        if (std::exchange(first, false)) {
            if (line != first_line) return std::nullopt;
            continue;
        }
        if (line.empty()) break;
        const auto blank = line.find(' ');
        if (blank == std::string_view::npos) return std::nullopt;
        const auto name = line.substr(0, blank);
        if (!take(r, name, line.substr(blank + 1))) return std::nullopt;
        has_state = has_state || name == "state";
    }
    if (!has_state || r.run_id.empty()) return std::nullopt;
    r.payload = text;
    return r;
}

std::optional<std::string> check_once_key(std::string_view key) {
    if (key.size() > max_once_key) {
        return "the key has " + std::to_string(key.size()) + " bytes; at most " +
               std::to_string(max_once_key) + " are allowed";
    }
    // It becomes the end of a lock's name, where a leading '/' would leave an empty segment.
    const bool rooted = key.starts_with('/');
    if (!rooted && !check_lock_name(key)) return std::nullopt;
    return "the key " + detail::quoted(key) +
           " is not of the form that is allowed: segments of A-Z a-z 0-9 . _ -, separated by '/', "
           "none of them empty or '..'";
}

std::optional<std::string> check_fingerprint(std::string_view fingerprint) {
    if (fingerprint.size() <= max_fingerprint && is_one_line(fingerprint)) return std::nullopt;
    return "the fingerprint " + detail::quoted(fingerprint) + " is not one line of at most " +
           std::to_string(max_fingerprint) + " bytes; a hash of the input is meant";
}

std::string once_lock_of(std::string_view key) {
    return std::string(lock_prefix).append(key);
}

std::string once_key_of(std::string_view key) {
    return std::string(once_keys).append(key);
}

once_step decide(const once_record* known, const once_wishes& wishes, bool owner_gone) noexcept {
    if (known == nullptr) return owner_gone ? once_step::begin : once_step::wait;
    if (known->fingerprint != wishes.fingerprint) return once_step::reused;
    switch (known->state) {
        case once_record::state_t::done: return once_step::answer;
        case once_record::state_t::failed:
            if (!wishes.retry_on_failure) return once_step::answer;
            return owner_gone ? once_step::begin : once_step::wait;
        case once_record::state_t::undone:
            return owner_gone ? once_step::begin_again : once_step::wait;
        case once_record::state_t::running: break;
    }
    if (!owner_gone) return once_step::wait;
    if (TRINCO_MUTANT("once_reruns_by_itself")) return once_step::begin_again;
    switch (wishes.on_interrupted) {
        case once_wishes::interrupted_t::tell: return once_step::tell;
        case once_wishes::interrupted_t::rerun: return once_step::begin_again;
        case once_wishes::interrupted_t::ask: return once_step::ask;
    }
    return once_step::tell;
}

}  // namespace trinco::detail
