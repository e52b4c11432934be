-- What a sender brings along: the view that it knows (src/core/breaker/record_views.cpp); and the
-- openings that nobody commands.
local longest_time_ms = 31 * 24 * 3600 * 1000
local max_backoff = 32
local max_attribution = 320

local function is_frozen() return r.over == FORCED_OPEN or r.over == DISABLED end

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

-- Of the record's view and the sender's, nine arguments from ARGV[at] on in the order of
-- view_reply and with times in milliseconds, the newer one is in force.
local function take_over(at, t)
  local era, rev = tonumber(ARGV[at]), tonumber(ARGV[at + 1])
  local is_newer = rev > r.rev
  if era ~= r.era then is_newer = era > r.era end
  if not is_newer then return end
  -- Said to a record that has lost everything: later than what any copy of the old one knows.
  local keeps_override = r.era == 0 and era > 0 and r.over ~= NO_OVERRIDE and t < r.over_ends
  begin_era(tonumber(ARGV[at + 2]), t, '')
  r.era, r.rev = era, rev
  r.ends = t + min(tonumber(ARGV[at + 3]), longest_time_ms) * 1000
  r.backoff_level = min(tonumber(ARGV[at + 4]), max_backoff)
  local over, over_remaining = tonumber(ARGV[at + 5]), tonumber(ARGV[at + 6])
  local reason = sub(ARGV[at + 8], 1, max_attribution)
  local is_of_override = over ~= NO_OVERRIDE
  r.reason = is_of_override and '' or reason
  if keeps_override then
    bump_by_operator(t)
  else
    r.over = over
    r.over_ends = t + min(over_remaining, longest_time_ms) * 1000
    r.over_reason = is_of_override and reason or ''
  end
  forgive_all()
  r.leases = {}
  r.taken_over_at, r.forgot_at = t, t
  expire(t)
end
