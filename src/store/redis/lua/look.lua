-- look: what a call in strict mode reads before it goes. Version 1. Writes nothing: only TIME and
-- HMGET, so that EVALSHA_RO may run it, too, and a user who may not write. See
-- src/core/breaker/record.hpp for what is decided, and record.lua for the layout.
--
-- uses: nothing
-- KEYS   1 record
-- ARGV   1 era and 2 rev of the sender's view, 3 stamp of the options that the sender holds
-- Reply  {'ok', exchange_first, view, cost us}; the flag is 0 or 1, the view has the order of
--        exchange's. A record that is absent is shown as an empty one. {'newer'} when the layout is
--        unknown.
-- Time   TIME, read first for every decision and last for the cost
-- Cost   constant, whatever the fleet

local now = store_time()
local f = redis.call('HMGET', KEYS[1], 'layout', 'clock', 'skew', 'era', 'rev', 'state', 'ends',
  'backoff_level', 'over', 'over_ends', 'options_stamp', 'set_ends', 'suspect_since', 'reason',
  'over_reason')
if f[1] and tonumber(f[1]) > 1 then return {'newer'} end
local function number(k) return f[k] and tonumber(f[k]) or 0 end

local HALF_OPEN, NO_OVERRIDE, flush_wait = 2, 0, 20000
local t = math.max(now + number(3), number(2), 1)
local era, rev, state, over = number(4), number(5), number(6), number(9)
local options_stamp, set_ends, suspect_since = number(11), number(12), number(13)

-- Whole milliseconds, rounded up, so that nobody comes back too early.
local function left(ends) return ends > t and math.ceil((ends - t) / 1000) or 0 end

local has_override = over ~= NO_OVERRIDE and t < number(10)
local view = {era, rev, state, state == HALF_OPEN and 0 or left(number(7)), number(8),
  has_override and over or NO_OVERRIDE, has_override and left(number(10)) or 0, options_stamp,
  (has_override and f[15] or f[14]) or ''}

local their_era, their_rev = tonumber(ARGV[1]), tonumber(ARGV[2])
local knows_less = their_rev > rev
if their_era ~= era then knows_less = their_era > era end
local exchange_first = knows_less
  or options_stamp == 0 or tonumber(ARGV[3]) ~= options_stamp
  or (over ~= NO_OVERRIDE and not has_override) or (set_ends ~= 0 and t >= set_ends)
  or (suspect_since ~= 0 and t - suspect_since >= flush_wait)
return {'ok', exchange_first and 1 or 0, view, math.max(0, store_time() - now)}
