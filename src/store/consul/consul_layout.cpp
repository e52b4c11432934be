#include "store/consul/consul_layout.hpp"

#include <charconv>

#include "core/names.hpp"
#include "core/quoted.hpp"

namespace trinco::detail::consul {
namespace {

constexpr std::string_view mark = "trinco/1 ";
constexpr unsigned second_bits = 40;
constexpr std::uint64_t expires_mark = 0x74726e;

template <class T>
bool read_number(std::string_view text, T& out) {
    const auto* const end = text.data() + text.size();
    const auto [at, error] = std::from_chars(text.data(), end, out);
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

std::optional<std::string> check_segments(std::string_view key) {
    for (auto rest = key;;) {
        const auto segment = rest.substr(0, rest.find('/'));
        if (segment.empty() || segment == "." || segment == "..") {
            return detail::quoted(key, 256) +
                   " has a segment that is empty, '.' or '..', which no path of Consul's API can "
                   "name: leave it out";
        }
        if (segment.size() == rest.size()) return std::nullopt;
        rest.remove_prefix(segment.size() + 1);
    }
}

std::optional<std::string> check_consul_name(std::string_view name) {
    if (auto bad = check_lock_name(name)) return bad;
    if (name.starts_with('/')) {
        return "the lock name '" + std::string(name) +
               "' begins with '/'; no key of Consul does: leave it out";
    }
    if (const auto bad = check_segments(name)) return "the lock name " + *bad;
    if (name == ".lock" || name.ends_with(lock_segment)) {
        return "the lock name '" + std::string(name) +
               "' ends with '.lock', which is where Consul's locks lie: leave it out";
    }
    return std::nullopt;
}

std::string lock_key(std::string_view prefix, std::string_view name, bool plain) {
    auto key = std::string(prefix);
    key += name;
    if (!plain) key += lock_segment;
    return key;
}

std::optional<std::string> name_of_key(std::string_view prefix, std::string_view key, bool plain) {
    if (!key.starts_with(prefix)) return std::nullopt;
    key.remove_prefix(prefix.size());
    if (!plain) {
        if (!key.ends_with(lock_segment)) return std::nullopt;
        key.remove_suffix(lock_segment.size());
    }
    if (check_consul_name(key)) return std::nullopt;
    return std::string(key);
}

std::string semaphore_key(std::string_view prefix, std::string_view name) {
    return lock_key(prefix, name, false);
}

std::string contenders_under(std::string_view prefix, std::string_view name) {
    auto out = std::string(prefix);
    out += name;
    return out += '/';
}

std::string contender_key(std::string_view prefix, std::string_view name,
                          std::string_view session) {
    return contenders_under(prefix, name) += session;
}

std::optional<contender> contender_of_key(std::string_view prefix, std::string_view key) {
    if (!key.starts_with(prefix)) return std::nullopt;
    key.remove_prefix(prefix.size());
    const auto slash = key.rfind('/');
    if (slash == std::string_view::npos) return std::nullopt;
    const auto session = key.substr(slash + 1);
    if (!is_session_id(session)) return std::nullopt;
    const auto name = key.substr(0, slash);
    if (check_consul_name(name)) return std::nullopt;
    return contender{std::string(name), std::string(session)};
}

std::string text_of(const owner_note& note) {
    std::string out(mark);
    out += std::to_string(note.id.n);
    for (const auto number : {note.since, note.held, static_cast<std::int64_t>(note.token)}) {
        out += ' ' + std::to_string(number);
    }
    out += note.evicted ? " 1" : " 0";
    if (!note.lease.empty()) out += ' ' + note.lease;
    out += '\n';
    if (note.evicted) out += note.evicted->who;
    out += '\n';
    if (note.evicted) out += note.evicted->why;
    return out + '\n' + note.info;
}

std::optional<owner_note> note_of(std::string_view value) {
    if (!value.starts_with(mark)) return std::nullopt;
    value.remove_prefix(mark.size());
    owner_note out;
    int evicted = 0;
    if (!take_number(value, ' ', out.id.n) || !take_number(value, ' ', out.since) ||
        !take_number(value, ' ', out.held) || !take_number(value, ' ', out.token)) {
        return std::nullopt;
    }
    auto rest = take(value, '\n');
    if (!rest) return std::nullopt;
    const auto lease = rest->find(' ');
    if (!read_number(rest->substr(0, lease), evicted)) return std::nullopt;
    if (lease != std::string_view::npos) {
        out.lease = rest->substr(lease + 1);
        if (!is_session_id(out.lease)) return std::nullopt;
    }
    const auto who = take(value, '\n');
    const auto why = take(value, '\n');
    if (!who || !why) return std::nullopt;
    if (evicted != 0) out.evicted = eviction{std::string(*who), std::string(*why)};
    out.info = value;
    return out;
}

entry_id id_of(const key_value& kv) {
    return {kv.session, kv.create_index, kv.lock_index};
}

bool is_entry(const key_value& kv, const entry_id& id) {
    return kv.session == id.session && kv.create_index == id.create_index &&
           (kv.lock_index == id.lock_index || kv.lock_index == 0);
}

std::string handle_of(const key_value& kv) {
    const auto note = kv.flags == semaphore_flags ? note_of(kv.value) : std::nullopt;
    const auto lease = note && !note->lease.empty() ? note->lease + '/' : std::string();
    return lease + kv.session + '/' + std::to_string(kv.create_index) + '.' +
           std::to_string(kv.lock_index) + ' ' + kv.key;
}

std::optional<handle_parts> parts_of_handle(std::string_view handle) {
    handle_parts out;
    auto head = take(handle, ' ');
    if (!head || handle.empty()) return std::nullopt;
    const auto slash = head->rfind('/');
    if (slash == std::string_view::npos) return std::nullopt;
    // The last, behind the lease of a permit.
    out.id.session = head->substr(0, slash).substr(head->substr(0, slash).rfind('/') + 1);
    head->remove_prefix(slash + 1);
    if (out.id.session.empty() || !take_number(*head, '.', out.id.create_index) ||
        !read_number(*head, out.id.lock_index)) {
        return std::nullopt;
    }
    out.key = handle;
    return out;
}

std::uint64_t flags_until(std::int64_t second) noexcept {
    if (second <= 0) return 0;
    return expires_mark << second_bits | static_cast<std::uint64_t>(second);
}

bool has_expired(const key_value& kv, std::int64_t second) noexcept {
    if (kv.flags >> second_bits != expires_mark) return false;
    const auto until = kv.flags & ((std::uint64_t{1} << second_bits) - 1);
    return second >= 0 && until <= static_cast<std::uint64_t>(second);
}

}  // namespace trinco::detail::consul
