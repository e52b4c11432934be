-- What counts mean (src/core/breaker/policy.cpp), and how many voters are failing. A rate is
-- compared after the division, which is what a person means by it.
local function at_rate(hits, calls, rate) return hits ~= 0 and hits / calls >= rate end

local function is_too_slow(n)
  local p = r.rules
  return p.slow_calls == 1 and at_rate(slow(n), judged(n), p.slow_call_rate)
end

local function slice_number(t) return floor(t / r.rules.slice_length) end

-- Why a window with these counts opens the breaker, or nil.
local function judge(n)
  local p = r.rules
  if p.failure_count ~= 0 and n[2] >= p.failure_count then return 'failure_count' end
  local calls = judged(n)
  if calls < p.minimum_calls then return nil end
  if at_rate(n[2], calls, p.failure_rate) then return 'failure_rate' end
  return is_too_slow(n) and 'slow_call_rate' or nil
end

local function is_failing(n, live)
  local p = r.rules
  if n[2] + slow(n) == 0 then return false end
  if at_rate(n[2], judged(n), p.failure_rate) then return true end
  if is_too_slow(n) then return true end
  if p.failure_count == 0 then return false end
  local voters = max(1, live)
  return n[2] >= floor((p.failure_count + voters - 1) / voters)
end

-- The live voters, and how many of them are failing. A window without anything bad is not brought
-- up to date for it: counts only leave by that.
local function take_census(t)
  local live, failing, since = live_voters(t), 0, t - r.rules.live_for
  local current, size = slice_number(t), r.rules.window_slices
  advance(r.window, current, size)
  local outdated = {}
  for name, bytes in pairs(r.packed) do
    local heard, bad = glance_at(bytes)
    if bad ~= 0 and heard ~= 0 and heard >= since then
      local n, oldest = judged_part(bytes)
      if oldest <= current - size then
        outdated[#outdated + 1] = name
      elseif is_failing(n, live) then
        failing = failing + 1
      end
    end
  end
  for _, name in ipairs(outdated) do voter(name) end
  for _, v in pairs(r.voters) do
    local n = v.window.sum
    if n[2] + slow(n) ~= 0 and is_live(v, t) then
      if is_failing(advance(v.window, current, size), live) then failing = failing + 1 end
    end
  end
  return live, failing
end
