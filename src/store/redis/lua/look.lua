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
local f = redis.call('HMGET', KEYS[1], 'layout', 'numbers', 'reason', 'over_reason')
if f[1] and tonumber(f[1]) > 2 then return {'newer'} end
-- The first of record.lua's numbers; in layout 1 each is a field.
local clock, skew, era, rev, state, ends, _, backoff_level, over, over_ends, options_stamp, _,
  set_ends, suspect_since = 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0
if f[2] then
  clock, skew, era, rev, state, ends, _, backoff_level, over, over_ends, options_stamp, _,
    set_ends, suspect_since = struct.unpack('<dddddddddddddd', f[2])
elseif f[1] then
  local old = redis.call('HMGET', KEYS[1], 'clock', 'skew', 'era', 'rev', 'state', 'ends',
    'backoff_level', 'over', 'over_ends', 'options_stamp', 'set_ends', 'suspect_since')
  for k = 1, 12 do old[k] = tonumber(old[k] or 0) end
  clock, skew, era, rev, state, ends, backoff_level, over, over_ends, options_stamp, set_ends,
    suspect_since = unpack(old)
end

local HALF_OPEN, NO_OVERRIDE, flush_wait = 2, 0, 20000
local t = math.max(now + skew, clock, 1)

-- Whole milliseconds, rounded up, so that nobody comes back too early.
local function left(ends) return ends > t and math.ceil((ends - t) / 1000) or 0 end

local has_override = over ~= NO_OVERRIDE and t < over_ends
local view = {era, rev, state, state == HALF_OPEN and 0 or left(ends), backoff_level,
  has_override and over or NO_OVERRIDE, has_override and left(over_ends) or 0, options_stamp,
  (has_override and f[4] or f[3]) or ''}

local their_era, their_rev = tonumber(ARGV[1]), tonumber(ARGV[2])
local knows_less = their_rev > rev
if their_era ~= era then knows_less = their_era > era end
local exchange_first = knows_less
  or options_stamp == 0 or tonumber(ARGV[3]) ~= options_stamp
  or (over ~= NO_OVERRIDE and not has_override) or (set_ends ~= 0 and t >= set_ends)
  or (suspect_since ~= 0 and t - suspect_since >= flush_wait)
return {'ok', exchange_first and 1 or 0, view, math.max(0, store_time() - now)}
