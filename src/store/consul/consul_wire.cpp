#include "store/consul/consul_wire.hpp"

#include <algorithm>
#include <array>
#include <boost/json/src.hpp>
#include <charconv>
#include <cstdint>
#include <system_error>
#include <utility>

namespace trinco::detail::consul {
namespace {

namespace json = boost::json;
using namespace std::chrono_literals;

constexpr std::string_view base64_digits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::string to_base64(std::string_view bytes) {
    std::string out;
    out.reserve((bytes.size() + 2) / 3 * 4);
    for (std::size_t i = 0; i < bytes.size(); i += 3) {
        std::uint32_t group = 0;
        for (std::size_t j = 0; j < 3; ++j) {
            group <<= 8;
            if (i + j < bytes.size()) group |= static_cast<unsigned char>(bytes[i + j]);
        }
        for (std::size_t j = 0; j < 4; ++j) {
            const bool is_there = i + j < bytes.size() + 1;
            out += is_there ? base64_digits[(group >> (18 - 6 * j)) & 63] : '=';
        }
    }
    return out;
}

std::optional<std::string> from_base64(std::string_view text) {
    if (text.size() % 4 != 0) return {};
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
    if (text.size() % 4 == 1) return {};
    std::string out;
    out.reserve(text.size() / 4 * 3 + 2);
    std::uint32_t group = 0;
    unsigned bits = 0;
    for (const char c : text) {
        const auto digit = base64_digits.find(c);
        if (digit == std::string_view::npos) return {};
        group = (group << 6) | static_cast<std::uint32_t>(digit);
        bits += 6;
        if (bits < 8) continue;
        bits -= 8;
        out += static_cast<char>((group >> bits) & 255);
    }
    return out;
}

std::optional<json::value> parsed(std::string_view body) {
    json::error_code error;
    auto value = json::parse({body.data(), body.size()}, error);
    if (error) return {};
    return value;
}

// Of a member that is left out: as if it were empty.
std::string text_in(const json::object& of, std::string_view key) {
    const auto* const value = of.if_contains({key.data(), key.size()});
    const auto* const text = value != nullptr ? value->if_string() : nullptr;
    return text != nullptr ? std::string(text->data(), text->size()) : std::string();
}

std::optional<std::uint64_t> number_of(const json::value& value) {
    if (const auto* n = value.if_uint64()) return *n;
    if (const auto* n = value.if_int64(); n != nullptr && *n >= 0) {
        return static_cast<std::uint64_t>(*n);
    }
    return {};
}

// 0 of a member that is left out; nothing of one that is no unsigned number of 64 bits.
std::optional<std::uint64_t> number_in(const json::object& of, std::string_view key) {
    const auto* const value = of.if_contains({key.data(), key.size()});
    if (value == nullptr) return 0;
    return number_of(*value);
}

// Of a member that is left out: no.
bool flag_in(const json::object& of, std::string_view key) {
    const auto* const value = of.if_contains({key.data(), key.size()});
    const auto* const flag = value != nullptr ? value->if_bool() : nullptr;
    return flag != nullptr && *flag;
}

bool read_row(const json::value& from, key_value& to) {
    const auto* const o = from.if_object();
    if (o == nullptr) return false;
    to.key = text_in(*o, "Key");
    to.session = text_in(*o, "Session");
    const auto flags = number_in(*o, "Flags");
    const auto created = number_in(*o, "CreateIndex");
    const auto modified = number_in(*o, "ModifyIndex");
    const auto lock = number_in(*o, "LockIndex");
    auto value = from_base64(text_in(*o, "Value"));
    if (to.key.empty() || !flags || !created || !modified || !lock || !value) return false;
    to.flags = *flags;
    to.create_index = *created;
    to.modify_index = *modified;
    to.lock_index = *lock;
    to.value = std::move(*value);
    return true;
}

constexpr std::string_view name_of(operation::verb_t verb) noexcept {
    using verb_t = operation::verb_t;
    switch (verb) {
        case verb_t::set: return "set";
        case verb_t::cas: return "cas";
        case verb_t::lock: return "lock";
        case verb_t::unlock: return "unlock";
        case verb_t::get: return "get";
        case verb_t::get_tree: return "get-tree";
        case verb_t::check_index: return "check-index";
        case verb_t::check_session: return "check-session";
        case verb_t::check_not_exists: return "check-not-exists";
        case verb_t::erase: return "delete";
        case verb_t::erase_cas: return "delete-cas";
    }
    return "";
}

json::value written(const operation& one) {
    using verb_t = operation::verb_t;
    const auto verb = name_of(one.verb);
    json::object kv;
    kv["Verb"] = json::string_view(verb.data(), verb.size());
    kv["Key"] = one.key;
    switch (one.verb) {
        case verb_t::set:
        case verb_t::cas:
        case verb_t::lock:
        case verb_t::unlock:
            kv["Value"] = to_base64(one.value);
            kv["Flags"] = one.flags;
            break;
        default: break;
    }
    switch (one.verb) {
        case verb_t::lock:
        case verb_t::unlock:
        case verb_t::check_session: kv["Session"] = one.session; break;
        case verb_t::cas:
        case verb_t::check_index:
        case verb_t::erase_cas: kv["Index"] = one.index; break;
        default: break;
    }
    json::object wrapped;
    wrapped["KV"] = std::move(kv);
    return wrapped;
}

bool read_results(const json::object& from, txn_reply& to) {
    const auto* const results = from.if_contains("Results");
    if (results == nullptr || results->is_null()) return true;
    const auto* const all = results->if_array();
    if (all == nullptr) return false;
    for (const auto& one : *all) {
        const auto* const o = one.if_object();
        const auto* const kv = o != nullptr ? o->if_contains("KV") : nullptr;
        if (kv == nullptr || !read_row(*kv, to.rows.emplace_back())) return false;
    }
    return true;
}

bool read_refusals(const json::object& from, txn_reply& to) {
    const auto* const errors = from.if_contains("Errors");
    const auto* const all = errors != nullptr ? errors->if_array() : nullptr;
    if (all == nullptr || all->empty()) return false;
    for (const auto& one : *all) {
        const auto* const o = one.if_object();
        const auto at = o != nullptr ? number_in(*o, "OpIndex") : std::nullopt;
        if (!at) return false;
        auto what = text_in(*o, "What");
        const auto why = refusal_of(what);
        to.refusals.push_back({static_cast<std::size_t>(*at), why, std::move(what)});
    }
    return true;
}

bool read_session(const json::value& from, session_facts& to) {
    const auto* const o = from.if_object();
    if (o == nullptr) return false;
    to.id = text_in(*o, "ID");
    to.name = text_in(*o, "Name");
    to.node = text_in(*o, "Node");
    to.erases = text_in(*o, "Behavior") == "delete";
    const auto ttl = text_in(*o, "TTL");
    const auto read = ttl.empty() ? 0ms : duration_of(ttl);
    if (to.id.empty() || !read) return false;
    to.ttl = std::chrono::duration_cast<std::chrono::seconds>(*read);
    // A number of nanoseconds; in some versions written as a duration.
    if (const auto delay = duration_of(text_in(*o, "LockDelay"))) {
        to.lock_delay = *delay;
    } else if (const auto* n = o->if_contains("LockDelay"); n != nullptr) {
        const auto whole = number_of(*n);
        const auto* const real = n->if_double();
        if (!whole && real == nullptr) return false;
        const auto nanoseconds = whole ? static_cast<double>(*whole) : *real;
        if (!(nanoseconds >= 0 && nanoseconds < 1e15)) return false;
        to.lock_delay = std::chrono::milliseconds(static_cast<std::int64_t>(nanoseconds / 1e6));
    }
    return true;
}

// Without what it quotes: keys, which may be made of any words.
std::string unquoted(std::string_view text) {
    const auto first = text.find('"');
    if (first == std::string_view::npos) return std::string(text);
    return std::string(text.substr(0, first)).append(text.substr(text.rfind('"') + 1));
}

bool has(std::string_view text, std::string_view words) noexcept {
    return text.find(words) != std::string_view::npos;
}

}  // namespace

std::string escaped(std::string_view text, bool is_path) {
    constexpr std::string_view hex = "0123456789ABCDEF";
    std::string out;
    for (const char c : text) {
        const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                           (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' || c == '~' ||
                           (c == '/' && is_path);
        if (plain) {
            out += c;
            continue;
        }
        const auto byte = static_cast<unsigned char>(c);
        out += '%';
        out += hex[byte >> 4];
        out += hex[byte & 15];
    }
    return out;
}

std::string encode_txn(const txn_request& what) {
    json::array all;
    for (const auto& one : what.operations) all.push_back(written(one));
    return json::serialize(all);
}

std::optional<txn_reply> decode_txn(std::string_view body, bool applied) {
    const auto value = parsed(body);
    const auto* const o = value ? value->if_object() : nullptr;
    if (o == nullptr) return {};
    txn_reply reply;
    reply.applied = applied;
    if (!(applied ? read_results(*o, reply) : read_refusals(*o, reply))) return {};
    return reply;
}

refusal_t refusal_of(std::string_view text) {
    const auto what = unquoted(text);
    if (has(what, "Permission denied") || has(what, "ACL not found")) return refusal_t::denied;
    if (has(what, "due to lock delay")) return refusal_t::lock_delay;
    if (has(what, "lock is already held")) return refusal_t::held;
    if (what.starts_with("invalid session")) return refusal_t::no_session;
    if (has(what, "session check") || has(what, "failed to check session") ||
        what.starts_with("failed to unlock")) {
        return refusal_t::session;
    }
    if (has(what, "index is stale") || has(what, "index check") ||
        has(what, "failed to check index")) {
        return refusal_t::index;
    }
    if (what.ends_with("doesn't exist")) return refusal_t::absent;
    if (what.starts_with("key ") && what.ends_with(" exists")) return refusal_t::index;
    return refusal_t::other;
}

std::optional<read_reply> decode_read(const http_response& reply) {
    const auto index = field_of(reply.fields, "X-Consul-Index");
    read_reply out;
    const auto [end, error] = std::from_chars(index.data(), index.data() + index.size(), out.index);
    if (error != std::errc() || end != index.data() + index.size()) return {};
    out.index = std::max<std::uint64_t>(out.index, 1);
    if (reply.status == 404) return out;
    const auto value = parsed(reply.body);
    const auto* const all = value ? value->if_array() : nullptr;
    if (all == nullptr) return {};
    out.rows.resize(all->size());
    for (std::size_t i = 0; i < out.rows.size(); ++i) {
        if (!read_row((*all)[i], out.rows[i])) return {};
    }
    return out;
}

std::optional<std::vector<std::string>> decode_texts(std::string_view body) {
    const auto value = parsed(body);
    if (value && value->is_null()) return std::vector<std::string>();
    const auto* const all = value ? value->if_array() : nullptr;
    if (all == nullptr) return {};
    std::vector<std::string> texts;
    for (const auto& one : *all) {
        const auto* const text = one.if_string();
        if (text == nullptr) return {};
        texts.emplace_back(text->data(), text->size());
    }
    return texts;
}

std::optional<std::string> decode_text(std::string_view body) {
    const auto value = parsed(body);
    const auto* const text = value ? value->if_string() : nullptr;
    if (text == nullptr) return {};
    return std::string(text->data(), text->size());
}

std::string encode_session(const session_request& what) {
    json::object o;
    o["Name"] = what.name;
    o["TTL"] = std::to_string(what.ttl.count()) + "s";
    o["LockDelay"] = std::to_string(what.lock_delay.count()) + "s";
    o["Behavior"] = what.erases ? "delete" : "release";
    // Left out, a session hangs on the health of the agent's node; the first name is the older one.
    o["Checks"] = json::array();
    o["NodeChecks"] = json::array();
    return json::serialize(o);
}

std::optional<std::string> decode_session_id(std::string_view body) {
    const auto value = parsed(body);
    const auto* const o = value ? value->if_object() : nullptr;
    if (o == nullptr) return {};
    auto id = text_in(*o, "ID");
    if (!is_session_id(id)) return {};
    return id;
}

std::optional<std::vector<session_facts>> decode_sessions(std::string_view body) {
    const auto value = parsed(body);
    if (value && value->is_null()) return std::vector<session_facts>();
    const auto* const all = value ? value->if_array() : nullptr;
    if (all == nullptr) return {};
    std::vector<session_facts> sessions(all->size());
    for (std::size_t i = 0; i < sessions.size(); ++i) {
        if (!read_session((*all)[i], sessions[i])) return {};
    }
    return sessions;
}

std::optional<std::chrono::milliseconds> duration_of(std::string_view text) noexcept {
    struct unit {
        std::string_view name;
        double milliseconds;
    };
    // The longer names first.
    constexpr std::array<unit, 7> units{{{"ms", 1},
                                         {"us", 1e-3},
                                         {"\u00b5s", 1e-3},
                                         {"ns", 1e-6},
                                         {"h", 3'600'000},
                                         {"m", 60'000},
                                         {"s", 1'000}}};
    if (text == "0") return 0ms;
    if (text.empty()) return {};
    double sum = 0;
    while (!text.empty()) {
        double number = 0;
        const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number,
                                                  std::chars_format::fixed);
        if (error != std::errc() || !(number >= 0)) return {};
        text.remove_prefix(static_cast<std::size_t>(end - text.data()));
        const unit* found = nullptr;
        for (const auto& one : units) {
            if (found == nullptr && text.starts_with(one.name)) found = &one;
        }
        if (found == nullptr) return {};
        text.remove_prefix(found->name.size());
        sum += number * found->milliseconds;
    }
    if (!(sum < 1e12)) return {};
    return std::chrono::milliseconds(static_cast<std::int64_t>(sum + 0.5));
}

bool decode_agent(std::string_view body, server_status& to) {
    const auto value = parsed(body);
    const auto* const o = value ? value->if_object() : nullptr;
    const auto* const config = o != nullptr ? o->if_contains("Config") : nullptr;
    const auto* const c = config != nullptr ? config->if_object() : nullptr;
    if (c == nullptr) return false;
    to.version = text_in(*c, "Version");
    to.datacenter = text_in(*c, "Datacenter");
    to.node = text_in(*c, "NodeName");
    to.server = flag_in(*c, "Server");
    const auto* const debug = o->if_contains("DebugConfig");
    const auto* const d = debug != nullptr ? debug->if_object() : nullptr;
    const auto least = d != nullptr ? duration_of(text_in(*d, "SessionTTLMin")) : std::nullopt;
    // Not set, it is what Consul has by itself.
    to.session_ttl_min = least && *least > 0ms
                             ? std::chrono::duration_cast<std::chrono::seconds>(*least)
                             : std::chrono::seconds(10);
    if (d == nullptr) return true;
    to.election_timeout = duration_of(text_in(*d, "ConsulRaftElectionTimeout")).value_or(0ms);
    to.connections = number_in(*d, "HTTPMaxConnsPerClient").value_or(0);
    to.leaves_when_ended = flag_in(*d, "LeaveOnTerm");
    to.removes_dead_servers = flag_in(*d, "AutopilotCleanupDeadServers");
    return true;
}

bool decode_health(std::string_view body, server_status& to) {
    const auto value = parsed(body);
    const auto* const o = value ? value->if_object() : nullptr;
    if (o == nullptr || o->if_contains("FailureTolerance") == nullptr) return false;
    to.may_be_lost = number_in(*o, "FailureTolerance");
    if (!to.may_be_lost) return false;
    const auto* const servers = o->if_contains("Servers");
    const auto* const rows = servers != nullptr ? servers->if_array() : nullptr;
    if (rows == nullptr) return true;
    for (const auto& row : *rows) {
        const auto* const one = row.if_object();
        if (one != nullptr && !flag_in(*one, "Healthy")) to.unwell.push_back(text_in(*one, "Name"));
    }
    return true;
}

}  // namespace trinco::detail::consul
