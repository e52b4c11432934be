-- What counts mean (src/core/breaker/policy.cpp), how many voters are failing, and what else a
-- verdict and a report tell.
local function is_too_slow(n)
  local p = r.rules
  return p.slow_calls == 1 and at_rate(slow(n), judged(n), p.slow_call_rate)
end

local function slice_number(t) return floor(t / r.rules.slice_length) end

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
  local live, failing, since = 0, 0, t - r.rules.live_for
  local current, size, gen = slice_number(t), r.rules.window_slices, r.window_gen
  advance(r.window, current, size)
  local suspects = {}
  for name, bytes in pairs(packed) do
    local heard, of, failure, slow_success, slow_failure = struct.unpack('<ddddd', bytes)
    if heard ~= 0 and heard >= since then
      live = live + 1
      if of == gen and failure + slow_success + slow_failure ~= 0 then suspects[name] = bytes end
    end
  end
  for _, v in pairs(r.voters) do
    if is_live(v, t) then live = live + 1 end
  end
  for name, bytes in pairs(suspects) do
    local failure, slow_success, slow_failure, success, _, _, oldest =
      struct.unpack('<ddddddd', bytes, 17)
    if oldest <= current - size then
      voter(name)
    elseif is_failing({success, failure, slow_success, slow_failure}, live) then
      failing = failing + 1
    end
  end
  for _, v in pairs(r.voters) do
    local n = v.window.sum
    if n[2] + slow(n) ~= 0 and is_live(v, t) then
      if is_failing(advance(v.window, current, size), live) then failing = failing + 1 end
    end
  end
  return live, failing
end

local function instance_from(name, bytes)
  local p = cmsgpack.unpack(bytes)
  local window = p[5] == r.window_gen and p[6] or nil
  return {name = name, voter = p[1], heard = p[2], last_seq = p[3], own_stamp = p[4],
    window = window_of(window, 'ic:' .. name)}
end

local function pace() return max(r.rules.sync_interval_ms, spread_of()) end

-- As a verdict tells it: 0 while closed.
local function probes_left() return r.state == CLOSED and 0 or free_slots() end
