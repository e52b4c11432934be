#include "apps/trinco/help/help.hpp"

namespace trinco::program {

std::string help_json() {
    return R"(Commands that show something take -o json: one object in one line, on standard output.
`schema` is a number of the command's own, which changes when a member goes away or changes its
meaning; new members may come at any time. Members that end in _ms are milliseconds; a share is 0 to
1. What is not known, or not so, is null and never "". Times of day are UTC, as in
2026-01-31T09:00:00.000Z.

breakers (schema 2), whatever the verb
  {"schema", "store", "namespace", "breaker": {...}}         show, trip, reset, ..., set, forget
  {"schema", "store", "namespace", "breakers": [{...}]}      ls
  {"schema", "store", "namespace", "at", "change", "breaker": {...}}     watch, a line a change

  change is begin, state, override or options; or store_lost, with reason and since, store_back,
  with since, away_ms and restarted, and store_emptied: then breaker is null.

  of a breaker        always: name, and
  error               why it cannot be read, and then there is nothing else; else null
  state, in_force     closed, open or half_open; beneath and with an override
  reason              of the state: failure_rate, ..., or an operator's words; null beneath an
                      override
  override            null, or {"kind", "reason", "remaining_ms"}
  remaining_ms        open: until probes begin. closed: of the recovery ramp
  backoff_level, era, rev                                    openings in a row; order of changes
  of ls, show, set and unset also
  since_ms, failed_share, opens_at_share, why, window, totals, probes_left, options_set
  set_remaining_ms    until what an operator set ends: null when nothing is set, 0 when it is over
  voters              {"failing", "live", "quorum"}
  of show, set and unset also: options (durations as window_ms), instances; of show: measured

locks (schema 1)
  {"schema", "locks": [{"name", "kind", "holders": [...], "waiters": 3, "longest_wait_ms"}]}    ls
  {"schema", "name", "holders": [...], "waiters": [...]}                     show
  {"schema", "at", "change", "name", "entry": {...}}                         watch, a line a change

  waiters and what is said of waiting are null where the store keeps no list of them (Consul). A
  holder there has "ttl_left_ms" null, and "ttl_ms": how much of it is over is not told.
  change is granted, waits, released, left or asked_back; or store_lost, with reason (watch goes on,
  and what changes meanwhile is told later), and store_back: then name and entry are null.
  ls --for adds "looked_ms" and "looks", and of each lock
  use                 {"share", "grants", "waits", "p99_wait_ms"}

records (schema 1)
  {"schema", "records": [{"key", "state", ...}]}                             ls
  {"schema", "record": {"key", "state", ...}}                                show, resolve

  state is running, interrupted, done, failed, undone or unknown (no record of once); of show also
  absent, and then there is nothing else

elect --observe (schema 1), a line a change
  {"schema", "at", "change", "election", "leader": {"value", "token"}, "reason"}

  change is leader, store_lost (with reason) or store_back; leader is null when there is none, or it
  is not known

doctor (schema 1)
  {"schema", "level", "stores": [{"use", "store", "namespace", "level", "checks": [...]}]}
  a check: "check", "level" (ok, warn, bad), "sentence", "advice", "commands" (lines for a shell),
  "figures"
)";
}

}  // namespace trinco::program
