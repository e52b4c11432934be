// Where breakers and locks are kept: a store, opened by its URL.
//
//     auto where = trinco::open("memory:", {trinco::drivers::memory()});
//     trinco::breaker_registry breakers(where);       // shared by all who open the same store
//     trinco::session locks(where);
//
// A store is opened with the drivers that the program chose: each comes from a header of its own
// (trinco/memory.hpp ...), so that a program links only what it uses. Nothing registers itself.
//
//   URL          breakers  locks  for
//   memory:      yes       yes    one process; tests
//   memory:NAME  yes       yes    the same, several apart from each other
//   local:       yes       yes    all processes of one machine; see trinco/local.hpp
//   redis: ...   yes       no     a fleet; see trinco/redis.hpp
//   etcd: ...    no        yes    a fleet; see trinco/etcd.hpp
//   consul: ...  no        yes    a fleet; see trinco/consul.hpp
//
// Identity     Three names say who speaks; all are 1-64 of [A-Za-z0-9._:-].
//   namespace    breakers of different namespaces do not see each other.
//   instance     this process, as far as the store is concerned. No two open stores may share it.
//   voter        the failure domain this process lives in: normally the machine. A fleet's breaker
//                opens when enough *voters* see the trouble, so that one bad machine, however many
//                processes it runs, opens nothing but its own.
//
// Threads      An open store has a thread of its own, named "trinco", on which it talks to its
//              server; it takes no signals. A store object is a plain value: one thread at a time.
// Ownership    A store is a movable handle. Registries and sessions made from it keep what they
//              need alive, so it may be destroyed before them. The last owner closes it.
// Closing      takes at most close_timeout (and half a second on a busy machine), whatever the
//              network does: what is under way is finished or abandoned. When the last owner goes
//              inside one of our own callbacks nobody waits.
// fork         A store belongs to the process that opened it: in a child, what is made from it says
//              errc::forked, and destroying it there is harmless. Open another one, with another
//              driver value.
// Errors       open throws open_error, whose what() is one sentence that names the URL, what is
//              wrong with it and what to do; the twin that takes an error_code returns an empty
//              store. Codes: invalid (URL or names, or a driver that is empty), not_supported (no
//              driver for this scheme), unavailable, denied, busy.
// Secrets      A URL is shown, here and in messages, without what may be one: *** stands for all
//              before its last @, and for all that follows a key of its query such as password,
//              token or secret.
// Cost         open: a thread, three descriptors, and for a server a connection.
#pragma once

#include <chrono>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <system_error>

#include "trinco/error.hpp"

namespace trinco {

namespace detail {
class store_driver;
class store_state;
struct store_access;
}  // namespace detail

// Knows how to open the stores of some schemes. A value to hand on: copies are the same driver. It
// may carry what its stores share (memory: the data), and then lives as long as they do.
class driver {
public:
    // Made by the factories in trinco/memory.hpp and its kin. One of null, and one that was moved
    // from, is empty: open refuses it (errc::invalid).
    explicit driver(std::shared_ptr<detail::store_driver> what) noexcept;

private:
    friend struct detail::store_access;
    std::shared_ptr<detail::store_driver> what_;
};

struct store_settings {
    // Breakers of one namespace share their state; give each environment (production, staging) its
    // own. Default "default".
    std::string name_space = "default";
    // Empty: host:pid:random, so that a restarted process is never taken for the one before.
    std::string instance = {};
    // Empty: the environment variable TRINCO_INSTANCE when set, otherwise the machine's id, and the
    // container's id where there is one. Set it when processes that fail together are told apart by
    // that (machines of one rack), or such that fail apart are not (cloned machine ids).
    std::string voter = {};
    // The longest that closing may wait for the server. 0 ... 60 s. Default 2 s.
    std::chrono::milliseconds close_timeout{2'000};
};

// Why a store was not opened. what() is one sentence; code() is for programs.
class open_error : public std::system_error {
public:
    open_error(std::error_code code, std::string sentence);
    [[nodiscard]] const char* what() const noexcept override { return sentence_.c_str(); }

private:
    std::string sentence_;
};

class store {
public:
    // Empty: nothing can be made from it (errc::invalid).
    store() noexcept;
    store(store&& other) noexcept;
    store& operator=(store&& other) noexcept;
    ~store();

    [[nodiscard]] explicit operator bool() const noexcept { return state_ != nullptr; }
    // What it offers; false when empty.
    [[nodiscard]] bool has_breakers() const noexcept;
    [[nodiscard]] bool has_locks() const noexcept;
    // As opened, without its secrets; empty when empty. The names in force, given or found.
    [[nodiscard]] std::string_view url() const noexcept;
    [[nodiscard]] std::string_view name_space() const noexcept;
    [[nodiscard]] std::string_view instance() const noexcept;
    [[nodiscard]] std::string_view voter() const noexcept;

    // Gives this handle's share up; afterwards it is empty.
    void close() noexcept;

private:
    friend struct detail::store_access;
    explicit store(std::shared_ptr<detail::store_state> state) noexcept;
    std::shared_ptr<detail::store_state> state_;
};

// Opens the store that the URL names, with the driver that knows its scheme. Throws open_error.
[[nodiscard]] store open(std::string_view url, std::span<const driver> drivers,
                         const store_settings& settings = {});
[[nodiscard]] inline store open(std::string_view url, std::initializer_list<driver> drivers,
                                const store_settings& settings = {}) {
    return open(url, std::span<const driver>(drivers.begin(), drivers.size()), settings);
}

// The same without exceptions: an empty store and the code on failure, a cleared code otherwise.
// `why`, when given, receives the sentence.
[[nodiscard]] store open(std::string_view url, std::span<const driver> drivers,
                         const store_settings& settings, std::error_code& error,
                         std::string* why = nullptr);
[[nodiscard]] inline store open(std::string_view url, std::initializer_list<driver> drivers,
                                const store_settings& settings, std::error_code& error,
                                std::string* why = nullptr) {
    return open(url, std::span<const driver>(drivers.begin(), drivers.size()), settings, error,
                why);
}

}  // namespace trinco
