-- The record's time goes on, and its transitions (src/core/breaker/record_views.cpp).
local empty_window = '\151\255\0\0\0\0\0\0'  -- {-1, 0, 0, 0, 0, 0, 0}, packed

local function tick(now)
  if now + r.skew < r.clock then r.skew = r.clock - now end
  r.clock = time_of(now)
  return r.clock
end

local function bump()
  r.rev = r.rev + 1
  r.changed = true
end

local function bump_by_operator(t)
  r.rev = max(r.rev + 1, t)
  r.changed = true
end

-- Removes an override and set options that have run out.
local function expire(t)
  if r.over ~= NO_OVERRIDE and t >= r.over_ends then
    r.over, r.over_reason = NO_OVERRIDE, ''
    bump()
  end
  if r.set_ends ~= 0 and t >= r.set_ends then options().unset(t) end
end

local function clear_window(w)
  if w.oldest < 0 then return end
  w.oldest, w.sum, w.cells, w.changed = -1, {0, 0, 0, 0, 0, 0}, {}, true
end

-- One of the record's own, which is not unpacked for that.
local function clear_own_window(name, cells_at)
  local w = rawget(r, name)
  if w then return clear_window(w) end
  if (field(name) or empty_window) == empty_window then return end
  w = window_of(nil, cells_at)
  w.changed = true
  r[name] = w
end

local function clear_windows()
  clear_own_window('window', 'cells')
  clear_own_window('recent', 'recent_cells')
  r.suspect_since = 0
  for _, v in pairs(r.voters) do clear_window(v.window) end
  r.window_gen = r.window_gen + 1
  if r.me then clear_window(r.me.window) end
end

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
