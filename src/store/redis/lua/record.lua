-- The record as it is kept, read and written. Layout 1:
--
-- KEYS[1]  hash: the fields below; i:<instance> and ic:<instance> (its cells), c:<voter> (its
--          cells). Times are microseconds since 1970 of the record's own clock, as decimals.
-- KEYS[2]  hash: voter -> what the quorum and the probes ask of it, thirteen doubles
-- KEYS[3]  sorted set: instance by the time at which it was heard
-- Lists are packed with cmsgpack, voters with struct, which is read faster in part; both keep whole
-- numbers up to 2^53. Tokens and ids are texts.
-- The windows of all instances are cleared by counting window_gen up: one of an older one is empty.
local layout = 1
-- The fields of every record: the layout, then numbers, texts and lists.
local fields = {'layout',
  'clock', 'skew', 'era', 'rev', 'state', 'ends', 'since', 'backoff_level', 'over', 'over_ends',
  'options_stamp', 'configured_stamp', 'set_ends', 'suspect_since', 'reclaimed', 'set_aside_at',
  'taken_over_at', 'forgot_at', 'live_instances', 'swept_at', 'window_gen',
  'reason', 'over_reason', 'options', 'configured_options', 'set_options',
  'totals', 'leases', 'window', 'recent'}
local first_text, first_list = 23, 28

local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local NO_OVERRIDE, FORCED_OPEN, DISABLED, OBSERVING = 0, 1, 2, 3

local r = {gone = {}, is_gone = {}, changed = false, flush = false, late = {}}
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

-- Options as numbers; durations are kept in milliseconds and, without the suffix, in microseconds.
local function parse_rules(text)
  local a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, s, u =
    string.match(text == '' and default_options or text, option_holes)
  local window_ms, open_for_ms, open_max_ms = tonumber(c), tonumber(h), tonumber(j)
  local probe_timeout_ms, live_for_ms, sync_interval_ms = tonumber(m), tonumber(p), tonumber(q)
  local key_ttl_ms, window_slices = tonumber(u), tonumber(d)
  return {failure_rate = tonumber(a), minimum_calls = tonumber(b), window_ms = window_ms,
    window = window_ms * 1000, window_slices = window_slices,
    slice_length = floor(window_ms * 1000 / window_slices), failure_count = tonumber(e),
    slow_call_rate = tonumber(f), slow_calls = tonumber(g), open_for_ms = open_for_ms,
    open_for = open_for_ms * 1000, open_backoff = tonumber(i), open_max_ms = open_max_ms,
    open_max = open_max_ms * 1000, jitter = tonumber(k), half_open_probes = tonumber(l),
    probe_timeout_ms = probe_timeout_ms, probe_timeout = probe_timeout_ms * 1000,
    recovery_ramp_ms = tonumber(n), quorum = tonumber(o), live_for_ms = live_for_ms,
    live_for = live_for_ms * 1000, sync_interval_ms = sync_interval_ms,
    sync_interval = sync_interval_ms * 1000, exchange_budget = tonumber(s),
    key_ttl_ms = key_ttl_ms, key_ttl = key_ttl_ms * 1000}
end

-- Voters stay packed until somebody needs more of one than the census does: r.packed holds those,
-- r.voters the others. What every transition does to all of them is done to the bytes, and
-- r.repacked has the names of those that it has changed.
local voter_layout = '<ddddddddddddd'
local no_counts = struct.pack('<ddddddd', 0, 0, 0, 0, 0, 0, -1)
local no_results = struct.pack('<ddd', 0, 0, 0)
local not_aside = struct.pack('<d', 0)
local sub = string.sub
local function packed_voter(v)
  local n = v.window.sum
  return struct.pack(voter_layout, v.heard, n[2], n[3], n[4], n[1], n[5], n[6], v.window.oldest,
    v.asked, v.succeeded, v.failed, v.settled_at, v.set_aside and 1 or 0)
end

local function voter_from(name, bytes)
  local heard, failure, slow_success, slow_failure, success, ignored, rejected, oldest, asked,
    succeeded, failed, settled_at, set_aside = struct.unpack(voter_layout, bytes)
  return {heard = heard, asked = asked, succeeded = succeeded, failed = failed,
    settled_at = settled_at, set_aside = set_aside == 1,
    window = {oldest = oldest, cells_at = 'c:' .. name,
              sum = {success, failure, slow_success, slow_failure, ignored, rejected}}}
end

-- When a packed one was heard, and its bad calls: failures and slow ones.
local function glance_at(bytes)
  local heard, failure, slow_success, slow_failure = struct.unpack('<dddd', bytes)
  return heard, failure + slow_success + slow_failure
end

-- What judging asks of its counts, and the oldest slice that they are from.
local function judged_part(bytes)
  local _, failure, slow_success, slow_failure, success, _, _, oldest =
    struct.unpack('<dddddddd', bytes)
  return {success, failure, slow_success, slow_failure}, oldest
end

local function unpack_voter(name, bytes)
  local v = voter_from(name, bytes)
  v.changed = r.repacked[name]
  r.voters[name] = v
end

local function voter(name)
  local bytes = r.packed[name]
  if bytes then
    unpack_voter(name, bytes)
    r.packed[name], r.repacked[name] = nil, nil
  end
  return r.voters[name]
end

local function all_voters()
  for name, bytes in pairs(r.packed) do unpack_voter(name, bytes) end
  r.packed, r.repacked = {}, {}
  return r.voters
end

local function repack(name, bytes)
  if bytes ~= r.packed[name] then r.packed[name], r.repacked[name] = bytes, true end
end

-- Empties the windows of the packed ones; with `results` also what they have settled, and with
-- `forgiven` nobody of them stays set aside.
local function clear_packed(results, forgiven)
  for name, bytes in pairs(r.packed) do
    local rest = sub(bytes, 65)
    if results then
      rest = sub(rest, 1, 8) .. no_results .. (forgiven and not_aside or sub(rest, 33))
    end
    repack(name, sub(bytes, 1, 8) .. no_counts .. rest)
  end
end

local function forgive_packed()
  for name, bytes in pairs(r.packed) do repack(name, sub(bytes, 1, 96) .. not_aside) end
end

local function load_voters()
  r.voters, r.packed, r.repacked = {}, {}, {}
  local all = r.is_new and {} or redis.call('HGETALL', KEYS[2])
  for k = 1, #all, 2 do r.packed[all[k]] = all[k + 1] end
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
  for k = 2, first_text - 1 do
    kept[k] = tonumber(kept[k] or 0)
    r[fields[k]] = kept[k]
  end
  for k = first_text, first_list - 1 do
    kept[k] = kept[k] or ''
    r[fields[k]] = kept[k]
  end
  local function list(k) return kept[k] and cmsgpack.unpack(kept[k]) end
  r.totals = list(first_list) or {0, 0, 0, 0, 0, 0}
  r.leases = list(first_list + 1) or {}
  r.window = window_of(list(first_list + 2), 'cells')
  r.recent = window_of(list(first_list + 3), 'recent_cells')
  r.rules = parse_rules(r.options)
  load_voters()
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
  for k = 2, first_text - 1 do
    local name = fields[k]
    if r[name] ~= kept[k] then put(name, decimal(r[name])) end
  end
  for k = first_text, first_list - 1 do put(fields[k], r[fields[k]], kept[k]) end
  put('totals', cmsgpack.pack(r.totals), kept[first_list])
  put('leases', cmsgpack.pack(r.leases), kept[first_list + 1])
  for name, list in pairs(r.late) do put(name, cmsgpack.pack(list), kept[name]) end
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
  for name in pairs(r.repacked) do
    out[#out + 1] = name
    out[#out + 1] = r.packed[name]
  end
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
  in_pieces('HDEL', KEYS[1], old)
  return refresh and ttl or 0
end
