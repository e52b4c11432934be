-- Voters, read: who counts, and what they say together (src/core/breaker/record_parties.cpp).
-- They stay packed until somebody needs more of one than the census does: `packed` holds those,
-- r.voters the others.
local voter_layout = '<dddddddddddddd'
local packed, voters_were_there = {}, true

local function unpack_voter(name, bytes)
  local heard, gen, failure, slow_success, slow_failure, success, ignored, rejected, oldest, asked,
    succeeded, failed, settled_at, set_aside = struct.unpack(voter_layout, bytes)
  local v = {heard = heard, asked = asked, succeeded = 0, failed = 0, settled_at = 0,
    set_aside = set_aside == 1 and gen >= r.forgiven_gen, window = window_of(nil, 'c:' .. name)}
  if gen >= r.results_gen then
    v.succeeded, v.failed, v.settled_at = succeeded, failed, settled_at
  end
  if gen == r.window_gen then
    v.window.oldest = oldest
    v.window.sum = {success, failure, slow_success, slow_failure, ignored, rejected}
  end
  r.voters[name] = v
end

local function voter(name)
  local bytes = packed[name]
  if bytes then
    unpack_voter(name, bytes)
    packed[name] = nil
  end
  return r.voters[name]
end

local function all_voters()
  for name, bytes in pairs(packed) do unpack_voter(name, bytes) end
  packed = {}
  return r.voters
end

-- For who asks about voters, which a transition does not.
local function load_voters()
  local all = r.is_new and {} or redis.call('HGETALL', KEYS[2])
  for k = 1, #all, 2 do
    local bytes = all[k + 1]
    if #bytes == 104 then bytes = layout_1().voter(bytes) end
    packed[all[k]] = bytes
  end
  voters_were_there = #all > 0
end

local function is_live(v, t) return v.heard ~= 0 and t - v.heard <= r.rules.live_for end

-- A rate is compared after the division, which is what a person means by it.
local function at_rate(hits, calls, rate) return hits ~= 0 and hits / calls >= rate end

-- The time over which the live instances share the budget of one exchange each, in milliseconds.
local function spread_of() return floor(r.live_instances * 1000 / r.rules.exchange_budget) end

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
