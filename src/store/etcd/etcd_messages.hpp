// What is said to etcd and what it answers, as plain values: the part of its v3 API that locks
// need. Field for field what the messages of the same names in etcdserverpb mean; revisions, leases
// and TTLs are its signed 64-bit numbers. std only: a simulated etcd speaks it as well as the real
// way does.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace trinco::detail::etcd {

// One key, or with `end` all keys in [begin, end).
struct key_range {
    std::string begin;
    std::string end;
    bool operator==(const key_range&) const = default;
};

// All keys that begin with this prefix, which is not empty.
[[nodiscard]] key_range all_under(std::string_view prefix);

struct key_value {
    std::string key;
    std::string value;
    std::int64_t create_revision = 0;
    std::int64_t mod_revision = 0;
    std::int64_t version = 0;
    std::int64_t lease = 0;
    bool operator==(const key_value&) const = default;
};

// Holds when the number of every key in the range compares so. Where no key is there the numbers
// are 0, of a range as of one key: that none of a range exists is create_revision = 0. Ranges: etcd
// 3.3 and later.
struct comparison {
    enum class target_t : std::uint8_t { version, create_revision, mod_revision, lease };
    enum class is_t : std::uint8_t { equal, greater, less, not_equal };
    key_range keys;
    target_t target = target_t::create_revision;
    is_t is = is_t::equal;
    std::int64_t number = 0;
};

struct range_request {
    enum class order_t : std::uint8_t { none, ascend, descend };
    enum class by_t : std::uint8_t { key, version, create_revision, mod_revision };
    key_range keys;
    std::int64_t limit = 0;  // 0: all
    order_t order = order_t::none;
    by_t by = by_t::key;
    bool keys_only = false;
    bool count_only = false;
    std::int64_t min_create_revision = 0;  // 0: any
    std::int64_t max_create_revision = 0;  // as here
};

struct put_request {
    std::string key;
    std::string value;
    std::int64_t lease = 0;
};

struct erase_request {
    key_range keys;
};

using operation = std::variant<range_request, put_request, erase_request>;

// All of `success` when every comparison holds, else all of `failure`, in one atomic step. At most
// 128 operations in a list by the server's default.
struct txn_request {
    std::vector<comparison> compare;
    std::vector<operation> success;
    std::vector<operation> failure;
    // Changes nothing whichever list is carried out: may be repeated blindly.
    [[nodiscard]] bool reads_only() const noexcept;
};

struct operation_reply {
    std::vector<key_value> kvs;  // of a range
    std::int64_t count = 0;      // of a range: all that match, whatever the limit
    bool more = false;
    std::int64_t erased = 0;
};

struct txn_reply {
    bool succeeded = false;
    std::int64_t revision = 0;  // of the store, as it is after this step
    std::vector<operation_reply> replies;
    // Beside unknown_outcome: it was answered, so that nothing of it lands later.
    bool settled = false;
};

struct lease_reply {
    std::int64_t id = 0;
    std::chrono::seconds ttl{0};  // as granted
};

struct lease_facts {
    std::chrono::seconds ttl{0};          // left; negative: there is no such lease
    std::chrono::seconds granted_ttl{0};  // whole
    std::vector<std::string> keys;        // only when asked for
};

struct watch_request {
    key_range keys;
    std::int64_t from_revision = 0;  // the first whose events are wanted; 0: from now on
    bool puts = true;
    bool erasures = true;
};

struct watch_event {
    bool erased = false;
    key_value now;  // of an erased key only key and mod_revision
};

struct watch_news {
    std::int64_t revision = 0;  // all events up to it have been told
    std::vector<watch_event> events;
};

// For `trinco doctor`.
struct server_status {
    std::string endpoint;
    std::string version;
    std::uint64_t cluster = 0;
    std::uint64_t member = 0;
    std::uint64_t leader = 0;  // 0: none
    std::uint64_t term = 0;
    std::int64_t size = 0;            // bytes of the file
    std::int64_t size_in_use = 0;     // of them in use; 0: the server does not say (before 3.4)
    std::vector<std::string> errors;  // alarms and the like, in the server's words
};

struct member {
    std::uint64_t id = 0;
    std::string name;
    std::vector<std::string> client_urls;
    bool learner = false;
};

}  // namespace trinco::detail::etcd
