// What is said to Consul and what it answers, as plain values: the part of its HTTP API that locks
// need. Names and meanings are those of its KV store, transactions and sessions; indexes and flags
// are its unsigned 64-bit numbers. std only: a simulated Consul speaks it as well as the real way.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trinco::detail::consul {

struct key_value {
    std::string key;
    std::string value;
    std::uint64_t flags = 0;
    std::uint64_t create_index = 0;
    std::uint64_t modify_index = 0;  // of the last change, also of who holds it: a Raft index
    std::uint64_t lock_index = 0;    // begins anew when the key is deleted
    std::string session;             // who holds it; empty: nobody
    bool operator==(const key_value&) const = default;
};

struct operation {
    enum class verb_t : std::uint8_t {
        set,               // whoever holds it
        cas,               // only at `index`; 0: only where there is none
        lock,              // hold it as `session`, with value and flags
        unlock,            // give it back as `session`, with value and flags
        get,               // refused where there is none
        get_tree,          // all that begin with `key`; none is as good
        check_index,       // only at `index`
        check_session,     // only held by `session`
        check_not_exists,  // only where there is none
        erase,             // whoever holds it; nothing there is as good
        erase_cas,         // only at `index`
    };
    verb_t verb = verb_t::get;
    std::string key;
    std::string value;
    std::uint64_t flags = 0;
    std::uint64_t index = 0;
    std::string session;
    bool operator==(const operation&) const = default;
};

// All or none, in one atomic step; at most 128 operations.
struct txn_request {
    std::vector<operation> operations;
    // Changes nothing: may be repeated blindly.
    [[nodiscard]] bool reads_only() const noexcept;
};

// Why an operation refused the whole transaction.
enum class refusal_t : std::uint8_t {
    held,        // another session holds the key
    lock_delay,  // nobody does, but a session that ended without giving it back did a moment ago
    no_session,  // the session that was named does not exist
    index,       // another index, or the key is there, or it is not
    absent,      // get of what is not there
    session,     // check_session, or unlock: that session does not hold it
    denied,      // the token has no right to it
    other,       // see `what`
};

struct refused {
    std::size_t operation = 0;
    refusal_t why = refusal_t::other;
    std::string what;  // the server's words
};

struct txn_reply {
    bool applied = false;
    std::vector<key_value> rows;  // of get, get_tree, and of what was written (without its value)
    std::vector<refused> refusals;
};

// Whether it is the id of a session: a UUID in small letters.
[[nodiscard]] bool is_session_id(std::string_view text) noexcept;

struct read_request {
    std::string key;
    bool under = false;       // all keys that begin with it
    bool consistent = false;  // the leader asks a majority first; else it may be a deposed one
};

struct read_reply {
    std::vector<key_value> rows;  // by key; none: there is none
    std::uint64_t index = 0;      // of the state that was read, at least 1
};

struct session_request {
    std::string name;
    std::chrono::seconds ttl{0};
    std::chrono::seconds lock_delay{0};
    bool erases = false;  // its end deletes the keys it holds; else they are only released
};

struct session_facts {
    std::string id;
    std::string name;
    std::string node;
    std::chrono::seconds ttl{0};
    std::chrono::milliseconds lock_delay{0};
    bool erases = false;
};

struct server_status {
    std::string address;  // as in the URL
    std::string why;      // it cannot be asked; else the rest holds
    std::string version;
    std::string datacenter;
    std::string node;
    bool server = false;  // else an agent that asks servers
    std::string leader;   // address; empty: none
    std::vector<std::string> peers;
    // Of its own configuration, which of an agent that asks servers is not theirs.
    std::chrono::seconds session_ttl_min{0};
    std::chrono::milliseconds election_timeout{0};  // 0: not known
    std::uint64_t connections = 0;                  // it takes so many of one host; 0: not known
    bool leaves_when_ended = false;                 // by TERM: then its node goes, and its sessions
    bool removes_dead_servers = false;
    // By the word of the servers, whichever agent is asked; nothing without operator:read.
    std::optional<std::uint64_t> may_be_lost;
    std::vector<std::string> unwell;
};

}  // namespace trinco::detail::consul
