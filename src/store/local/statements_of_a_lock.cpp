#include <array>

#include "store/local/local_driver.hpp"

namespace trinco::detail {
namespace {

// The texts of local_queues.cpp, local_lock_sessions.cpp and local_file.cpp. One that is written
// otherwise there is prepared in vain, which local_driver_test notices.
constexpr std::array<std::string_view, 28> statements{
    "BEGIN IMMEDIATE",
    "SELECT sweep_at FROM machine",
    "SELECT count(*) FROM sessions",
    "INSERT INTO sessions(label, ttl, ends, socket, pid, pid_space) VALUES(?, ?, ?, ?, ?, ?)",
    "UPDATE machine SET sweep_at = ?1 WHERE sweep_at > ?1",
    "SELECT 1 FROM sessions WHERE id = ? AND ends > ?",
    "SELECT c.id, c.missing, c.evicted, s.ends, s.id FROM claims c JOIN sessions s ON s.id = "
    "c.session WHERE c.session = ? AND c.claim = ? AND s.ends > ?",
    "SELECT c.session FROM entries e JOIN claims c ON c.id = e.claim WHERE e.name = ? AND e.turn = "
    "1",
    "SELECT (SELECT max(id) FROM claims) - (SELECT min(id) FROM claims)",
    "INSERT INTO claims(session, claim, info, since, missing) VALUES(?, ?, ?, ?, ?)",
    "INSERT INTO entries(name, claim, part, kind, n) VALUES(?, ?, ?, ?, ?)",
    "SELECT e.claim, c.session, e.kind, e.n, e.turn, c.missing FROM entries e JOIN claims c ON "
    "c.id = e.claim WHERE e.name = ? ORDER BY e.claim",
    "UPDATE entries SET turn = 1 WHERE name = ? AND claim = ?",
    "UPDATE claims SET missing = ?, granted = ? WHERE id = ?",
    "UPDATE machine SET granted = granted + 1",
    "SELECT granted FROM machine",
    "UPDATE entries SET token = ? WHERE claim = ? AND kind = 0",
    "SELECT name FROM entries WHERE claim = ?",
    "SELECT socket FROM sessions WHERE id = ?",
    "SELECT socket FROM observers WHERE name = ?",
    "SELECT count(*) FROM entries WHERE claim < ?1 AND name = (SELECT name FROM entries WHERE "
    "claim = ?1 ORDER BY part LIMIT 1)",
    "SELECT token FROM entries WHERE claim = ? ORDER BY part",
    "COMMIT",
    // Giving it back.
    "SELECT id FROM claims WHERE session = ?",
    "SELECT claim FROM entries WHERE name = ? AND claim > ? AND turn = 0 ORDER BY claim LIMIT 1",
    "DELETE FROM entries WHERE claim = ?",
    "DELETE FROM claims WHERE id = ?",
    "DELETE FROM sessions WHERE id = ?",
};

}  // namespace

std::span<const std::string_view> statements_of_a_lock() noexcept {
    return statements;
}

}  // namespace trinco::detail
