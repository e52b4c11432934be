// The layout of the file, version 2. Times are microseconds of local_file::now().
//
//   machine   one row: who the machine is, its life, the clock of that life, and two counters:
//             `granted` for tokens of this epoch, `changes` for notices. No session ends before
//             `sweep_at`: an index of the ends would have to be changed by every renewal, and those
//             are what waiting processes cost
//   peers     sockets of those who want to hear of changes of breakers
//   sessions  leases of locks. `ends` is when one has run out; that its process is gone shows in
//             <file>-live (local_lives.hpp)
//   claims    in the order of entering, over all queues. `missing` parts do not have their turn;
//             `granted` is when the last of them got it, `evicted` whether an operator asks for it
//   entries   a row for each part of a claim: the queue of a name is its entries by claim
//   observers sockets of those who want to hear who holds a name
//   keys      records; `expires` 0: never
//   breakers  a record a row (core/breaker/record_codec.hpp). `touched` is the number of the last
//             change that others are told of, `changed` and `flushed` those of each kind
#pragma once

#include <cstdint>

namespace trinco::detail {

inline constexpr std::int64_t local_schema_owner = 0x54524e43;  // "TRNC"
inline constexpr std::int64_t local_schema_version = 2;

inline constexpr const char* local_schema = R"(
CREATE TABLE machine(
  id INTEGER PRIMARY KEY CHECK(id = 1),
  machine_id TEXT NOT NULL DEFAULT '', boot_id TEXT NOT NULL DEFAULT '',
  clock_offsets TEXT NOT NULL DEFAULT '', clock_offset INTEGER NOT NULL DEFAULT 0,
  began INTEGER NOT NULL DEFAULT 0, epoch INTEGER NOT NULL, lost INTEGER NOT NULL DEFAULT 0,
  granted INTEGER NOT NULL DEFAULT 0, changes INTEGER NOT NULL DEFAULT 0,
  revision INTEGER NOT NULL DEFAULT 0, sweep_at INTEGER NOT NULL DEFAULT 0);
CREATE TABLE sessions(
  id INTEGER PRIMARY KEY AUTOINCREMENT, label TEXT NOT NULL, ttl INTEGER NOT NULL,
  ends INTEGER NOT NULL, socket TEXT NOT NULL, pid INTEGER NOT NULL, pid_space TEXT NOT NULL);
CREATE TABLE claims(
  id INTEGER PRIMARY KEY AUTOINCREMENT, session INTEGER NOT NULL, claim INTEGER NOT NULL,
  info TEXT NOT NULL, since INTEGER NOT NULL, missing INTEGER NOT NULL,
  granted INTEGER NOT NULL DEFAULT 0, evicted INTEGER NOT NULL DEFAULT 0,
  evictor TEXT NOT NULL DEFAULT '', reason TEXT NOT NULL DEFAULT '', UNIQUE(session, claim));
CREATE TABLE entries(
  name TEXT NOT NULL, claim INTEGER NOT NULL, part INTEGER NOT NULL, kind INTEGER NOT NULL,
  n INTEGER NOT NULL, turn INTEGER NOT NULL DEFAULT 0, token INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY(name, claim)) WITHOUT ROWID;
CREATE INDEX entries_claim ON entries(claim, part);
CREATE TABLE observers(
  name TEXT NOT NULL, socket TEXT NOT NULL, PRIMARY KEY(name, socket)) WITHOUT ROWID;
CREATE TABLE keys(
  key TEXT PRIMARY KEY, value BLOB NOT NULL, revision INTEGER NOT NULL,
  expires INTEGER NOT NULL) WITHOUT ROWID;
CREATE INDEX keys_expires ON keys(expires) WHERE expires > 0;
CREATE TABLE peers(socket TEXT PRIMARY KEY) WITHOUT ROWID;
CREATE TABLE breakers(
  id INTEGER PRIMARY KEY, space TEXT NOT NULL, name TEXT NOT NULL, record BLOB NOT NULL,
  expires INTEGER NOT NULL, touched INTEGER NOT NULL DEFAULT 0,
  changed INTEGER NOT NULL DEFAULT 0, flushed INTEGER NOT NULL DEFAULT 0,
  UNIQUE(space, name));
CREATE INDEX breakers_touched ON breakers(touched);
)";

// From version 1.
inline constexpr const char* local_schema_update = R"(
DROP INDEX sessions_ends;
ALTER TABLE machine ADD COLUMN sweep_at INTEGER NOT NULL DEFAULT 0;
)";

// What does not outlive the machine's life. Records do: those of breakers because their views win
// by (era, rev), those of locks because they were written durably.
inline constexpr const char* local_end_of_life = R"(
DELETE FROM peers;
DELETE FROM observers;
DELETE FROM entries;
DELETE FROM claims;
DELETE FROM sessions;
)";

}  // namespace trinco::detail
