-- The record's time, its view and its transitions (src/core/breaker/record_views.cpp).
local longest_time_ms = 31 * 24 * 3600 * 1000
local max_backoff = 32
local max_attribution = 320

local function time_of(now) return max(now + r.skew, r.clock, 1) end

local function tick(now)
  if now + r.skew < r.clock then r.skew = r.clock - now end
  r.clock = time_of(now)
  return r.clock
end

-- Removes an override and set options that have run out.
local function expire(t)
  if r.over ~= NO_OVERRIDE and t >= r.over_ends then
    r.over, r.over_reason = NO_OVERRIDE, ''
    bump()
  end
  if r.set_ends ~= 0 and t >= r.set_ends then unset_options(t) end
end

local function is_frozen() return r.over == FORCED_OPEN or r.over == DISABLED end

-- The part of every transition that is the same.
local function begin_era(to, t, reason)
  r.era, r.rev = max(r.era + 1, t), 0
  r.state, r.since, r.ends, r.reason, r.reclaimed = to, t, t, reason, 0
  for _, v in pairs(r.voters) do
    v.succeeded, v.failed, v.settled_at, v.changed = 0, 0, 0, true
    if to == OPEN then v.set_aside = false end
  end
  clear_windows()
  r.results_gen = r.window_gen
  if to == OPEN then r.forgiven_gen = r.window_gen end
  r.changed = true
end

local function forgive_all()
  r.forgiven_gen = r.window_gen
  for _, v in pairs(r.voters) do v.set_aside, v.changed = false, true end
end

local function enter_open(t, length_ms, reason)
  begin_era(OPEN, t, reason)
  r.ends = t + length_ms * 1000
end

local function enter_closed(t, ramp_ms, reason)
  begin_era(CLOSED, t, reason)
  r.ends = t + ramp_ms * 1000
end

-- Of the opening that begins now, in milliseconds; its jitter is a function of its era.
local function opening_length(t)
  local p = r.rules
  local spread = math.fmod(max(r.era + 1, t), 1009) / 1008
  local lasts, level = p.open_for_ms, 0
  while level < r.backoff_level and lasts < p.open_max_ms do
    lasts = lasts * p.open_backoff
    level = level + 1
  end
  lasts = min(lasts, p.open_max_ms)
  return floor(lasts * (1 + p.jitter * spread) + 0.5)
end

local function reopen(t, why)
  r.backoff_level = min(r.backoff_level + 1, max_backoff)
  enter_open(t, opening_length(t), why)
end

-- Nine arguments from ARGV[at] on, in the order of view_reply; times in milliseconds.
local function view_argument(at)
  local function number(k) return tonumber(ARGV[at + k]) end
  return {era = number(0), rev = number(1), state = number(2), remaining = number(3),
    backoff_level = number(4), over = number(5), over_remaining = number(6),
    options_stamp = number(7), reason = ARGV[at + 8]}
end

-- Of two views the newer one is in force.
local function take_over(theirs, t)
  local is_newer = theirs.rev > r.rev
  if theirs.era ~= r.era then is_newer = theirs.era > r.era end
  if not is_newer then return end
  -- Said to a record that has lost everything: later than what any copy of the old one knows.
  local keeps_override = r.era == 0 and theirs.era > 0 and r.over ~= NO_OVERRIDE and t < r.over_ends
  begin_era(theirs.state, t, '')
  r.era, r.rev = theirs.era, theirs.rev
  r.ends = t + min(theirs.remaining, longest_time_ms) * 1000
  r.backoff_level = min(theirs.backoff_level, max_backoff)
  local reason = string.sub(theirs.reason, 1, max_attribution)
  local is_of_override = theirs.over ~= NO_OVERRIDE
  r.reason = is_of_override and '' or reason
  if keeps_override then
    bump_by_operator(t)
  else
    r.over = theirs.over
    r.over_ends = t + min(theirs.over_remaining, longest_time_ms) * 1000
    r.over_reason = is_of_override and reason or ''
  end
  forgive_all()
  r.leases = {}
  r.taken_over_at, r.forgot_at = t, t
  expire(t)
end

local function view_reply(t)
  local has_override = r.over ~= NO_OVERRIDE and t < r.over_ends
  return {r.era, r.rev, r.state, r.state == HALF_OPEN and 0 or left(r.ends, t), r.backoff_level,
    has_override and r.over or NO_OVERRIDE, has_override and left(r.over_ends, t) or 0,
    r.options_stamp, has_override and r.over_reason or r.reason}
end

-- Tells the rest of the fleet, after the writes: "kind breaker eight numbers reason". What fails
-- here undoes nothing; the flag in the reply lets the caller say that nobody hears it.
local function publish(channel, breaker, view)
  local sound = 1
  local function say(kind)
    local answer = redis.pcall('PUBLISH', channel,
      string.format('%s %s %.0f %.0f %d %.0f %d %d %.0f %.0f %s', kind, breaker, unpack(view)))
    if type(answer) == 'table' and answer.err then sound = 0 end
  end
  if r.changed then say('changed') end
  if r.flush then say('flush') end
  return sound
end
