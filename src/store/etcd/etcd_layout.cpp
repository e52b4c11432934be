#include "store/etcd/etcd_layout.hpp"

#include <array>
#include <charconv>

namespace trinco::detail::etcd {
namespace {

constexpr std::string_view mark = "trinco/1 ";
constexpr std::array<std::string_view, 3> kinds{"exclusive", "shared", "permit"};
constexpr std::size_t max_numbers = 96;  // four of them, and what is between

template <class T>
bool read_number(std::string_view text, T& out, int base = 10) {
    const auto* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, out, base);
    return error == std::errc() && at == end;
}

// The text before the separator, which is taken away with it.
std::optional<std::string_view> take(std::string_view& text, char separator) {
    const auto end = text.find(separator);
    if (end == std::string_view::npos) return std::nullopt;
    const auto out = text.substr(0, end);
    text.remove_prefix(end + 1);
    return out;
}

template <class T>
bool take_number(std::string_view& text, char separator, T& out) {
    const auto word = take(text, separator);
    return word && read_number(*word, out);
}

}  // namespace

std::string lease_text(std::int64_t lease) {
    std::array<char, 17> digits{};
    const auto end = std::to_chars(digits.begin(), digits.end(), lease, 16).ptr;
    return {digits.begin(), end};
}

std::optional<std::int64_t> lease_number(std::string_view text) {
    std::int64_t out = 0;
    // Its own spelling alone: no upper case, no leading zeros.
    if (!read_number(text, out, 16) || lease_text(out) != text) return std::nullopt;
    return out;
}

std::string entry_key(std::string_view name, std::int64_t lease, claim_id id) {
    auto key = std::string(name) + '/' + lease_text(lease);
    if (id.n != 1) key += '.' + std::to_string(id.n);
    return key;
}

std::optional<entry_place> place_of_key(std::string_view key) {
    const auto slash = key.rfind('/');
    if (slash == std::string_view::npos || slash == 0) return std::nullopt;
    entry_place out{std::string(key.substr(0, slash)), 0, {1}};
    auto last = key.substr(slash + 1);
    if (const auto dot = last.find('.'); dot != std::string_view::npos) {
        const auto number = last.substr(dot + 1);
        if (!read_number(number, out.id.n) || std::to_string(out.id.n) != number || out.id.n == 1) {
            return std::nullopt;
        }
        last = last.substr(0, dot);
    }
    const auto lease = lease_number(last);
    if (!lease) return std::nullopt;
    out.lease = *lease;
    return out;
}

std::optional<entry_place> entry_of(const key_value& kv) {
    auto out = place_of_key(kv.key);
    if (!out || kv.lease == 0 || out->lease != kv.lease) return std::nullopt;
    return out;
}

key_range queue_of(std::string_view name) {
    return all_under(std::string(name) + '/');
}

std::string text_of(const owner_note& note) {
    std::array<char, max_numbers> numbers{};
    auto* at = numbers.data();
    for (const auto number : {static_cast<std::int64_t>(note.asks.n), note.since, note.held,
                              static_cast<std::int64_t>(note.token)}) {
        *at++ = ' ';
        at = std::to_chars(at, numbers.data() + numbers.size(), number).ptr;
    }
    std::string out(mark);
    out.reserve(max_numbers + note.info.size());
    out.append(kinds.at(static_cast<std::size_t>(note.asks.kind)));
    out.append(numbers.data(), at);
    out.append(note.evicted ? " 1\n" + note.evicted->who + '\n' + note.evicted->why : " 0\n\n");
    out.append(1, '\n').append(note.info);
    return out;
}

std::optional<owner_note> note_of(std::string_view value) {
    if (!value.starts_with(mark)) return std::nullopt;
    value.remove_prefix(mark.size());
    owner_note out;
    const auto kind = take(value, ' ');
    std::size_t k = 0;
    while (k < kinds.size() && kinds.at(k) != kind) ++k;
    if (k == kinds.size()) return std::nullopt;
    out.asks.kind = static_cast<claim_kind>(k);
    int evicted = 0;
    if (!take_number(value, ' ', out.asks.n) || !take_number(value, ' ', out.since) ||
        !take_number(value, ' ', out.held) || !take_number(value, ' ', out.token) ||
        !take_number(value, '\n', evicted)) {
        return std::nullopt;
    }
    const bool counts = out.asks.kind == claim_kind::permit;
    const auto who = take(value, '\n');
    const auto why = take(value, '\n');
    if (!who || !why || counts != (out.asks.n != 0)) return std::nullopt;
    if (evicted != 0) out.evicted = eviction{std::string(*who), std::string(*why)};
    out.info = value;
    return out;
}

seat seat_of(std::string_view value) {
    const auto note = note_of(value);
    return note ? note->asks : seat{};
}

}  // namespace trinco::detail::etcd
