#include <array>

#include "store/local/local_driver.hpp"

namespace trinco::detail {
namespace {

// The texts of local_queues.cpp, local_lock_sessions.cpp and local_file.cpp. One that is written
// otherwise there is prepared in vain, which local_driver_test notices.
constexpr std::array<std::string_view, 15> statements{
    "BEGIN IMMEDIATE",
    "SELECT sweep_at, granted FROM machine",
    "SELECT count(*) FROM sessions",
    "INSERT INTO sessions(label, ttl, ends, socket, pid, pid_space) VALUES(?, ?, ?, ?, ?, ?)",
    "SELECT 1 FROM entries WHERE name = ? LIMIT 1",
    "UPDATE machine SET granted = ?",
    "INSERT INTO claims(session, claim, info, since, missing, granted) VALUES(?, ?, ?, ?, 0, ?)",
    "INSERT INTO entries(name, claim, part, kind, n, turn, token) VALUES(?, ?, ?, ?, ?, 1, ?)",
    "SELECT socket FROM observers WHERE name = ?",
    "COMMIT",
    // Giving it back.
    "SELECT id FROM claims WHERE session = ?",
    "SELECT name FROM entries WHERE claim = ?",
    "DELETE FROM entries WHERE claim = ?",
    "DELETE FROM claims WHERE id = ?",
    "DELETE FROM sessions WHERE id = ?",
};

}  // namespace

std::span<const std::string_view> statements_of_a_lock() noexcept {
    return statements;
}

}  // namespace trinco::detail
