-- Voters and instances: who was heard, who counts, who is forgotten
-- (src/core/breaker/record_parties.cpp).
local max_voters, max_instances = 512, 4096

-- A batch is repeated for at most one window and must be known as counted for longer.
local function memory_of() return max(r.rules.live_for, 2 * r.rules.window) end

local function is_live(v, t) return v.heard ~= 0 and t - v.heard <= r.rules.live_for end

local function live_voters(t)
  local n, since = 0, t - r.rules.live_for
  for _, bytes in pairs(r.packed) do
    local heard = heard_at(bytes)
    if heard ~= 0 and heard >= since then n = n + 1 end
  end
  for _, v in pairs(r.voters) do
    if is_live(v, t) then n = n + 1 end
  end
  return n
end

-- min(quorum, live), at least 1; all of it while the record may have forgotten voters.
local function quorum_of(live, t)
  local p = r.rules
  if r.forgot_at ~= 0 and t - r.forgot_at < p.live_for then live = max(live, p.quorum) end
  return max(1, min(p.quorum, live))
end

local function drop_instance(name)
  r.gone[#r.gone + 1] = name
  r.is_gone[name] = true
end

local function drop_voter(name)
  r.gone_voters = r.gone_voters or {}
  r.gone_voters[#r.gone_voters + 1] = name
  r.voters[name] = nil
end

local function sweep(t)
  local p = r.rules
  if t - r.swept_at < floor(p.live_for_ms / 8) * 1000 then return end
  r.swept_at = t
  local memory = memory_of()
  if r.is_new then
    r.live_instances = 0
  else
    local old = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. decimal(t - memory))
    for _, name in ipairs(old) do drop_instance(name) end
    r.live_instances = redis.call('ZCOUNT', KEYS[3], decimal(t - p.live_for), '+inf')
  end
  -- A voter whose probes count in this era stays, or others could settle more than N.
  for name, v in pairs(all_voters()) do
    if t - max(v.heard, v.asked) > memory and not v.set_aside and v.succeeded + v.failed == 0 then
      drop_voter(name)
    end
  end
end

local function drop_oldest_voter()
  local oldest, n = nil, 0
  for name, v in pairs(all_voters()) do
    n = n + 1
    local o = oldest and r.voters[oldest]
    if not o or v.heard < o.heard or (v.heard == o.heard and name < oldest) then oldest = name end
  end
  if n >= max_voters then drop_voter(oldest) end
end

local function voter_of(name, t)
  sweep(t)
  local v = voter(name)
  if not v then
    drop_oldest_voter()
    v = {heard = 0, asked = 0, succeeded = 0, failed = 0, settled_at = 0, set_aside = false,
         window = window_of(nil, 'c:' .. name)}
    r.voters[name] = v
  end
  v.changed = true
  return v
end

local function instance_from(name, bytes)
  local p = cmsgpack.unpack(bytes)
  local window = p[5] == r.window_gen and p[6] or nil
  return {name = name, voter = p[1], heard = p[2], last_seq = p[3], own_stamp = p[4],
    window = window_of(window, 'ic:' .. name)}
end

-- The sender, registered if it is not known; the second value says whether it was.
local function instance_of(name, voter, t)
  local bytes = not r.is_new and not r.is_gone[name] and field('i:' .. name)
  if bytes then
    r.me = instance_from(name, bytes)
  else
    r.me = {name = name, heard = 0, last_seq = 0, own_stamp = 0,
            window = window_of(nil, 'ic:' .. name)}
    if not r.is_new and redis.call('ZCARD', KEYS[3]) - #r.gone >= max_instances then
      local oldest = redis.call('ZRANGE', KEYS[3], #r.gone, #r.gone)[1]
      drop_instance(oldest)
    end
  end
  local i = r.me
  if i.heard == 0 or t - i.heard > r.rules.live_for then r.live_instances = r.live_instances + 1 end
  i.heard, i.voter = t, voter
  return i, bytes and true or false
end

-- The time over which the live instances share the budget of one exchange each, in milliseconds.
local function spread_of() return floor(r.live_instances * 1000 / r.rules.exchange_budget) end
local function pace() return max(r.rules.sync_interval_ms, spread_of()) end

-- The probe results that count: those of voters that are not set aside.
local function count_results()
  local succeeded, failed = 0, 0
  for _, v in pairs(all_voters()) do
    if not v.set_aside then
      succeeded, failed = succeeded + v.succeeded, failed + v.failed
    end
  end
  return succeeded, failed
end

local function free_slots()
  local used = #r.leases
  if r.state == HALF_OPEN then
    local succeeded, failed = count_results()
    used = used + succeeded + failed
  end
  return max(0, r.rules.half_open_probes - used)
end

-- As a verdict tells it: 0 while closed.
local function probes_left() return r.state == CLOSED and 0 or free_slots() end
