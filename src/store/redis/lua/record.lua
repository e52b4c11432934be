-- The record as it is kept, read and written. Layout 2:
--
-- KEYS[1]  hash: the fields below; i:<instance> and ic:<instance> (its cells), c:<voter> (its
--          cells). Times are microseconds since 1970 of the record's own clock.
-- KEYS[2]  hash: voter -> what the quorum and the probes ask of it, fourteen doubles
-- KEYS[3]  sorted set: instance by the time at which it was heard
-- Lists are packed with cmsgpack; numbers, voters and ids of controls with struct, which is faster
-- and is read in part. Both keep whole numbers up to 2^53. Tokens and ids are texts.
-- A transition writes nothing of instances and voters: it counts window_gen up, with which each of
-- them is marked when it is written. A window of an older one is empty, a voter's results count
-- from results_gen on, and it stays set aside from forgiven_gen on.
-- Layout 1 had a field for each number, and no marks: what its voters counted is lost, their
-- results and who is set aside count until the next transition.
local layout = 2
-- The fields of every record: the layout, all numbers in one field, the options that govern as
-- numbers, texts and lists.
local fields = {'layout', 'numbers', 'rules',
  'reason', 'over_reason', 'options', 'configured_options', 'set_options',
  'totals', 'leases', 'window', 'recent'}
local first_text, first_list = 4, 9
local numbers = {'clock', 'skew', 'era', 'rev', 'state', 'ends', 'since', 'backoff_level', 'over',
  'over_ends', 'options_stamp', 'configured_stamp', 'set_ends', 'suspect_since', 'reclaimed',
  'set_aside_at', 'taken_over_at', 'forgot_at', 'live_instances', 'swept_at', 'window_gen',
  'results_gen', 'forgiven_gen'}
local numbers_layout = '<' .. string.rep('d', #numbers)

local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local NO_OVERRIDE, FORCED_OPEN, DISABLED, OBSERVING = 0, 1, 2, 3

local r = {gone = {}, is_gone = {}, changed = false, flush = false, late = {}, voters = {},
  packed = {}, voters_were_there = true}
local kept = {}  -- as they were read: fields by their place, lists that are read late by name

local floor, ceil, max, min = math.floor, math.ceil, math.max, math.min

local function decimal(x) return string.format('%.0f', x) end
local function clamp(x, low, high) return max(low, min(x, high)) end

-- Whole milliseconds, rounded up, so that nobody comes back too early.
local function left(ends, t) return ends > t and ceil((ends - t) / 1000) or 0 end

-- What the fleet has agreed on, before anybody has said what: to_text(policy{}).
local default_options = 'failure_rate=0.5 minimum_calls=20 window_ms=10000 window_slices=10 '
  .. 'failure_count=0 slow_call_rate=1 slow_calls=0 open_for_ms=10000 open_backoff=2 '
  .. 'open_max_ms=300000 jitter=0.1 half_open_probes=5 probe_timeout_ms=10000 '
  .. 'recovery_ramp_ms=0 quorum=2 live_for_ms=60000 sync_interval_ms=100 exchange_budget=200 '
  .. 'key_ttl_ms=3600000'

-- default_options with a hole for each value: all options are written in this order.
local option_holes = 'failure_rate=(%S+) minimum_calls=(%S+) window_ms=(%S+) window_slices=(%S+) '
  .. 'failure_count=(%S+) slow_call_rate=(%S+) slow_calls=(%S+) open_for_ms=(%S+) '
  .. 'open_backoff=(%S+) open_max_ms=(%S+) jitter=(%S+) half_open_probes=(%S+) '
  .. 'probe_timeout_ms=(%S+) recovery_ramp_ms=(%S+) quorum=(%S+) live_for_ms=(%S+) '
  .. 'sync_interval_ms=(%S+) exchange_budget=(%S+) key_ttl_ms=(%S+)'

-- Options as numbers, in their order; durations in milliseconds and, without the suffix, in
-- microseconds.
local function rules_of(failure_rate, minimum_calls, window_ms, window_slices, failure_count,
    slow_call_rate, slow_calls, open_for_ms, open_backoff, open_max_ms, jitter, half_open_probes,
    probe_timeout_ms, recovery_ramp_ms, quorum, live_for_ms, sync_interval_ms, exchange_budget,
    key_ttl_ms)
  return {failure_rate = failure_rate, minimum_calls = minimum_calls, window_ms = window_ms,
    window = window_ms * 1000, window_slices = window_slices,
    slice_length = floor(window_ms * 1000 / window_slices), failure_count = failure_count,
    slow_call_rate = slow_call_rate, slow_calls = slow_calls, open_for_ms = open_for_ms,
    open_for = open_for_ms * 1000, open_backoff = open_backoff, open_max_ms = open_max_ms,
    open_max = open_max_ms * 1000, jitter = jitter, half_open_probes = half_open_probes,
    probe_timeout_ms = probe_timeout_ms, probe_timeout = probe_timeout_ms * 1000,
    recovery_ramp_ms = recovery_ramp_ms, quorum = quorum, live_for_ms = live_for_ms,
    live_for = live_for_ms * 1000, sync_interval_ms = sync_interval_ms,
    sync_interval = sync_interval_ms * 1000, exchange_budget = exchange_budget,
    key_ttl_ms = key_ttl_ms, key_ttl = key_ttl_ms * 1000}
end

local function parse_rules(text)
  local n = {string.match(text == '' and default_options or text, option_holes)}
  for k = 1, #n do n[k] = tonumber(n[k]) end
  return rules_of(unpack(n))
end

-- What was parsed once is kept.
local rules_layout = '<' .. string.rep('d', 19)
local function packed_rules(p)
  return struct.pack(rules_layout, p.failure_rate, p.minimum_calls, p.window_ms, p.window_slices,
    p.failure_count, p.slow_call_rate, p.slow_calls, p.open_for_ms, p.open_backoff, p.open_max_ms,
    p.jitter, p.half_open_probes, p.probe_timeout_ms, p.recovery_ramp_ms, p.quorum, p.live_for_ms,
    p.sync_interval_ms, p.exchange_budget, p.key_ttl_ms)
end

-- Voters stay packed until somebody needs more of one than the census does: r.packed holds those,
-- r.voters the others.
local voter_layout = '<dddddddddddddd'
local size_in_layout_1, no_gen = 104, struct.pack('<d', 0)
local sub = string.sub

local function packed_voter(v)
  local n = v.window.sum
  return struct.pack(voter_layout, v.heard, r.window_gen, n[2], n[3], n[4], n[1], n[5], n[6],
    v.window.oldest, v.asked, v.succeeded, v.failed, v.settled_at, v.set_aside and 1 or 0)
end

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

local function heard_at(bytes) return (struct.unpack('<d', bytes)) end

-- When a packed one was heard, and its bad calls: failures and slow ones.
local function glance_at(bytes)
  local heard, gen, failure, slow_success, slow_failure = struct.unpack('<ddddd', bytes)
  return heard, gen == r.window_gen and failure + slow_success + slow_failure or 0
end

-- What judging asks of its counts, and the oldest slice that they are from.
local function judged_part(bytes)
  local failure, slow_success, slow_failure, success, _, _, oldest =
    struct.unpack('<ddddddd', bytes, 17)
  return {success, failure, slow_success, slow_failure}, oldest
end

local function voter(name)
  local bytes = r.packed[name]
  if bytes then
    unpack_voter(name, bytes)
    r.packed[name] = nil
  end
  return r.voters[name]
end

local function all_voters()
  for name, bytes in pairs(r.packed) do unpack_voter(name, bytes) end
  r.packed = {}
  return r.voters
end

-- For who asks about voters, which a transition does not.
local function load_voters()
  local all = r.is_new and {} or redis.call('HGETALL', KEYS[2])
  for k = 1, #all, 2 do
    local bytes = all[k + 1]
    if #bytes == size_in_layout_1 then bytes = sub(bytes, 1, 8) .. no_gen .. sub(bytes, 9) end
    r.packed[all[k]] = bytes
  end
  r.voters_were_there = #all > 0
end

-- Reads the record and, with the same command, the fields in `also`. False when a newer version of
-- this library has written it.
local function load_record(also)
  local count = #fields
  for k, name in ipairs(also or {}) do fields[count + k] = name end
  kept = redis.call('HMGET', KEYS[1], unpack(fields))
  for k = count + 1, #fields do fetched[fields[k]] = kept[k] end
  r.is_new = not kept[1]
  if kept[1] and tonumber(kept[1]) > layout then return false end
  local values = kept[2] and {struct.unpack(numbers_layout, kept[2])}
    or (r.is_new and {} or redis.call('HMGET', KEYS[1], unpack(numbers)))
  for k, name in ipairs(numbers) do r[name] = tonumber(values[k] or 0) end
  for k = first_text, first_list - 1 do
    kept[k] = kept[k] or ''
    r[fields[k]] = kept[k]
  end
  local function list(k) return kept[k] and cmsgpack.unpack(kept[k]) end
  r.totals = list(first_list) or {0, 0, 0, 0, 0, 0}
  r.leases = list(first_list + 1) or {}
  r.window = window_of(list(first_list + 2), 'cells')
  r.recent = window_of(list(first_list + 3), 'recent_cells')
  r.rules = kept[3] and rules_of(struct.unpack(rules_layout, kept[3])) or parse_rules(r.options)
  r.rules_were = kept[3] and r.rules
  return true
end

-- Lists that few requests need: read when they are. They are written when somebody has read them.
local function late_list(name)
  if not r.late[name] then
    local bytes = not r.is_new and redis.call('HGET', KEYS[1], name)
    r.late[name] = bytes and cmsgpack.unpack(bytes) or {}
    kept[name] = bytes or nil
  end
  return r.late[name]
end

local function time_to_live(t)
  local last = max(t, r.ends, r.set_ends)
  if r.over ~= NO_OVERRIDE then last = max(last, r.over_ends) end
  for _, l in ipairs(r.leases) do last = max(last, l[3]) end
  return left(last, t) + r.rules.key_ttl_ms
end

local function put_window(out, w, name)
  if not w.changed then return end
  if name then
    out[#out + 1] = name
    out[#out + 1] = cmsgpack.pack(packed_window(w))
  end
  if w.oldest >= 0 then
    out[#out + 1] = w.cells_at
    out[#out + 1] = cmsgpack.pack(cells_of(w))
  end
end

-- What has changed of the record's own hash, as arguments of HSET.
local function changed_fields()
  local out = {'layout', layout}
  local function put(name, value, before)
    if value ~= before then
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  local values = {}
  for k, name in ipairs(numbers) do values[k] = r[name] end
  put('numbers', struct.pack(numbers_layout, unpack(values)), kept[2])
  if r.rules ~= r.rules_were then put('rules', packed_rules(r.rules)) end
  for k = first_text, first_list - 1 do put(fields[k], r[fields[k]], kept[k]) end
  put('totals', cmsgpack.pack(r.totals), kept[first_list])
  put('leases', cmsgpack.pack(r.leases), kept[first_list + 1])
  for name, list in pairs(r.late) do put(name, cmsgpack.pack(list), kept[name]) end
  if r.control_ids then put('control_ids', r.control_ids, fetched.control_ids or '') end
  put_window(out, r.window, 'window')
  put_window(out, r.recent, 'recent')
  for _, v in pairs(r.voters) do put_window(out, v.window) end
  if r.me then
    local i = r.me
    put_window(out, i.window)
    put('i:' .. i.name, cmsgpack.pack({i.voter, i.heard, i.last_seq, i.own_stamp, r.window_gen,
                                       packed_window(i.window)}))
  end
  return out
end

local function changed_voters()
  local out = {}
  for name, v in pairs(r.voters) do
    if v.changed or v.window.changed then
      out[#out + 1] = name
      out[#out + 1] = packed_voter(v)
    end
  end
  return out
end

-- In pieces, because a function of Lua takes a few thousand arguments at most.
local function in_pieces(command, key, list)
  for from = 1, #list, 1000 do
    redis.call(command, key, unpack(list, from, min(from + 999, #list)))
  end
end

-- The one burst of writes. A record is kept for its time to live from now when `refresh` is true;
-- else what is there keeps the time it has. Answers the time to live given, 0 when it was not.
-- A right that the user lacks cuts the burst off where it is missed, and what was written stays: a
-- new record asks for DEL and PEXPIRE before it is there, and each key gets its end at once. A full
-- server takes every write behind one that it has taken, also behind DEL: hence the first, which it
-- refuses, and which changes nothing.
local function save_record(t, refresh)
  if r.is_new and not refresh then return 0 end
  local ttl = refresh and time_to_live(t) or redis.call('PTTL', KEYS[1])
  local lives = decimal(ttl)
  if r.is_new then
    redis.call('ZADD', KEYS[3], 'XX', 0, '')
    redis.call('DEL', KEYS[2], KEYS[3])
    redis.call('PEXPIRE', KEYS[1], lives)
  end
  in_pieces('HSET', KEYS[1], changed_fields())
  if refresh then redis.call('PEXPIRE', KEYS[1], lives) end
  in_pieces('HSET', KEYS[2], changed_voters())
  if refresh or (ttl > 0 and not r.voters_were_there) then
    redis.call('PEXPIRE', KEYS[2], lives)
  end
  if r.me then redis.call('ZADD', KEYS[3], decimal(r.me.heard), r.me.name) end
  if refresh then redis.call('PEXPIRE', KEYS[3], lives) end
  local old = {}
  for _, name in ipairs(r.gone) do
    if not (r.me and r.me.name == name) then
      old[#old + 1] = 'i:' .. name
      old[#old + 1] = 'ic:' .. name
      redis.call('ZREM', KEYS[3], name)
    end
  end
  for _, name in ipairs(r.gone_voters or {}) do
    if not r.voters[name] then
      old[#old + 1] = 'c:' .. name
      redis.call('HDEL', KEYS[2], name)
    end
  end
  if not r.is_new and not kept[2] then  -- of layout 1
    for k = 1, 21 do old[#old + 1] = numbers[k] end
    old[#old + 1] = 'controls'
  end
  in_pieces('HDEL', KEYS[1], old)
  return refresh and ttl or 0
end
