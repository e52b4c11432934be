-- probe: takes, settles or gives back one probe of half-open. Version 1. See
-- src/core/breaker/record.hpp for what is decided, and record.lua for the layout.
--
-- uses: record voters eras saving parties senders
-- late: layout_1 option_texts options
-- KEYS   1 record, 2 voters, 3 instances
-- ARGV   1 instance, 2 voter, 3 channel, 4 breaker's name; 5-13 the sender's view, as in exchange;
--        14 step: take, success, failure or give_back; 15 token, a decimal of 64 bits that stays a
--        text; 16 length of the lease in ms (0: probe_timeout)
-- Reply  {'ok', granted, retry_after ms, set_aside, live voters, view, published, time to live ms
--        (0: not prolonged), cost us}; flags are 0 or 1. {'newer'} when the layout is unknown.
-- Time   TIME, read first for every decision and last for the cost
-- Cost   linear in voters, leases (at most 1000) and remembered tokens (at most 256). A refusal
--        prolongs no key's life and makes no key.

local now = store_time()
if not load_record({'leases', 'options'}) then return {'newer'} end
load_voters()

local max_settled, shortest_retry, longest_retry = 256, 10, 1000
local token, step = ARGV[15], ARGV[14]

-- Tokens that are spent, oldest first: a take with one of them is a duplicate.
local function remember(spent, t, granted)
  local all, from = r.settled, 1
  while all[from] and t - all[from][2] >= r.rules.probe_timeout do from = from + 1 end
  if #all >= max_settled and from == 1 then from = 2 end
  local rest = {}
  for k = from, #all do rest[#rest + 1] = all[k] end
  rest[#rest + 1] = {spent, t, granted}
  r.settled = rest
end

local function spent_token()
  for _, s in ipairs(r.settled) do
    if s[1] == token then return s end
  end
  return nil
end

local function lease_at()
  for k, l in ipairs(r.leases) do
    if l[1] == token then return k end
  end
  return nil
end

local function live_voters(t)
  local n, since = 0, t - r.rules.live_for
  for _, bytes in pairs(packed) do
    local heard = struct.unpack('<d', bytes)
    if heard ~= 0 and heard >= since then n = n + 1 end
  end
  for _, v in pairs(r.voters) do
    if is_live(v, t) then n = n + 1 end
  end
  return n
end

local function clamp(x, low, high) return max(low, min(x, high)) end

-- ---- what time and results decide ---------------------------------------------------------------

local function reopen(t, why)
  r.backoff_level = min(r.backoff_level + 1, max_backoff)
  enter_open(t, opening_length(t), why)
end

local function reclaim(t)
  local grace, of_this_era, rest = r.rules.probe_timeout / 10, 0, {}
  for _, l in ipairs(r.leases) do
    if t < l[3] + grace then
      rest[#rest + 1] = l
    else
      if l[2] == r.era then of_this_era = of_this_era + 1 end
      remember(l[1], t, false)
    end
  end
  r.leases = rest
  if r.state ~= HALF_OPEN then return end
  r.reclaimed = r.reclaimed + of_this_era
  if r.reclaimed >= r.rules.half_open_probes then reopen(t, 'probes_vanished') end
end

-- The failures forbid closing: opens again when a quorum has failed, else goes on without the
-- voters that did.
local function judge_failures(t)
  local failed = 0
  for _, v in pairs(all_voters()) do
    if v.failed ~= 0 then failed = failed + 1 end
  end
  if failed >= quorum_of(live_voters(t), t) then return reopen(t, 'probes_failed') end
  for _, v in pairs(all_voters()) do
    if v.failed ~= 0 then v.set_aside, v.changed = true, true end
  end
  r.set_aside_at = t
  bump()
end

local function judge_results(t)
  if r.state ~= HALF_OPEN then return end
  local n = r.rules.half_open_probes
  local succeeded, failed = count_results()
  if at_rate(failed, n, r.rules.failure_rate) then judge_failures(t) end
  if r.state ~= HALF_OPEN then return end
  succeeded, failed = count_results()
  if succeeded + failed >= n then enter_closed(t, r.rules.recovery_ramp_ms, 'recovered') end
end

-- Some are set aside and the others do not come: opens again.
local function end_vain_wait(t)
  if r.state ~= HALF_OPEN then return end
  local any_set_aside, asked = false, 0
  for _, v in pairs(all_voters()) do
    if v.set_aside then any_set_aside = true else asked = max(asked, v.asked) end
  end
  if not any_set_aside then return end
  local p = r.rules
  local due = r.set_aside_at + p.probe_timeout
  if asked > r.set_aside_at then due = asked + max(p.probe_timeout, p.live_for) end
  if t >= due then reopen(t, 'probes_failed') end
end

local function progress(t)
  if is_frozen() then return end
  reclaim(t)
  judge_results(t)
  end_vain_wait(t)
end

-- ---- take ---------------------------------------------------------------------------------------

-- How many probes of an era the sender's voter may hold and have settled.
local function cap_of(me, t)
  local p = r.rules
  local candidates = (me and is_live(me, t)) and 0 or 1
  local other_asked, other_settled = r.since, r.since
  for _, v in pairs(all_voters()) do
    if not v.set_aside then
      if is_live(v, t) then candidates = candidates + 1 end
      if v ~= me then
        other_asked, other_settled = max(other_asked, v.asked), max(other_settled, v.settled_at)
      end
    end
  end
  if t - other_asked >= p.probe_timeout or t - other_settled >= 2 * p.probe_timeout then
    return p.half_open_probes
  end
  return ceil(p.half_open_probes / quorum_of(candidates, t))
end

local function used_by(name, me)
  local used = me and me.succeeded + me.failed or 0
  for _, l in ipairs(r.leases) do
    if l[2] == r.era and l[4] == name then used = used + 1 end
  end
  return used
end

-- When nobody can have a probe, whoever asks: how long that will last; else nil.
local function refusal_of_all(t)
  if r.state == CLOSED then return 0 end
  if is_frozen() then return clamp(left(r.over_ends, t), shortest_retry, longest_retry) end
  if r.state == OPEN and t < r.ends then return max(left(r.ends, t), shortest_retry) end
  return nil
end

-- Why this voter gets no probe now, as the time after which to ask again; nil: it gets one.
local function refusal_of(name, t)
  local p, me = r.rules, voter(name)
  local quarantined = r.taken_over_at + p.probe_timeout
  if r.taken_over_at ~= 0 and t < quarantined then
    return max(left(quarantined, t), shortest_retry)
  end
  if r.options == '' then return max(p.sync_interval_ms, shortest_retry) end
  if me and me.set_aside then return clamp(p.probe_timeout_ms, shortest_retry, longest_retry) end
  local at_cap = r.state == HALF_OPEN and used_by(name, me) >= cap_of(me, t)
  if at_cap or free_slots() == 0 then return clamp(spread_of(), shortest_retry, longest_retry) end
  return nil
end

local function lease_to(name, t)
  if r.state == OPEN then begin_era(HALF_OPEN, t, 'probing') end
  local me = voter_of(name, t)
  me.heard, me.asked = t, t
  local length = tonumber(ARGV[16])
  if length <= 0 or length > r.rules.probe_timeout_ms then length = r.rules.probe_timeout_ms end
  r.leases[#r.leases + 1] = {token, r.era, t + length * 1000, name}
  bump()
end

-- Answers granted, retry_after.
local function take(t)
  -- Before time is looked at: its asking may be what another voter's results wait for.
  if r.state == HALF_OPEN and not is_frozen() then voter_of(ARGV[2], t).asked = t end
  progress(t)
  local held = lease_at()
  if held and r.leases[held][2] == r.era then return true, 0 end
  local wait = refusal_of_all(t)
  if not wait and (token == '0' or held or spent_token()) then wait = shortest_retry end
  wait = wait or refusal_of(ARGV[2], t)
  if wait then return false, wait end
  lease_to(ARGV[2], t)
  return true, 0
end

-- ---- settle -------------------------------------------------------------------------------------

-- A lease is over: books its result. True when it is of the running half-open era.
local function finish(l, t)
  if l[2] ~= r.era or r.state ~= HALF_OPEN then return false end
  local v = voter_of(l[4], t)
  v.heard = t
  if step == 'give_back' then return true end
  if step == 'success' and t <= l[3] then
    v.succeeded = v.succeeded + 1
  else
    v.failed = v.failed + 1
  end
  v.settled_at = t
  return true
end

local function settle(t)
  if token == '0' then return false, 0 end
  local granted = false
  local before = spent_token()
  if before then
    granted = before[3]
  else
    local held = lease_at()
    if held then
      granted = finish(table.remove(r.leases, held), t)
      if granted then bump() end
    end
    remember(token, t, granted)
  end
  progress(t)
  return granted, 0
end

local t = tick(now)
expire(t)
take_over(5, t)
local granted, retry_after = (step == 'take' and take or settle)(t)
local ttl = save_record(t, granted or r.changed, put_parties, save_parties)
local view = view_reply(t)
local published = publish(ARGV[3], ARGV[4], view)
local me = voter(ARGV[2])
return {'ok', granted and 1 or 0, retry_after, (me and me.set_aside) and 1 or 0, live_voters(t),
  view, published, ttl, max(0, store_time() - now)}
