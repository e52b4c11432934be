-- The record as it is kept, read and written. Layout 1:
--
-- KEYS[1]  hash: the fields below; i:<instance> and ic:<instance> (its cells), c:<voter> (its
--          cells). Times are microseconds since 1970 of the record's own clock, as decimals.
-- KEYS[2]  hash: voter -> what the quorum and the probes ask of it
-- KEYS[3]  sorted set: instance by the time at which it was heard
-- Lists are packed with cmsgpack, which keeps whole numbers up to 2^53; tokens and ids are texts.
-- The windows of all instances are cleared by counting window_gen up: one of an older one is empty.
local layout = 1
local numbers = {'clock', 'skew', 'era', 'rev', 'state', 'ends', 'since', 'backoff_level', 'over',
                 'over_ends', 'options_stamp', 'configured_stamp', 'set_ends', 'suspect_since',
                 'reclaimed', 'set_aside_at', 'taken_over_at', 'forgot_at', 'live_instances',
                 'swept_at', 'window_gen'}
local texts = {'reason', 'over_reason', 'options', 'configured_options', 'set_options'}
local lists = {'totals', 'leases', 'window', 'recent'}

local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local NO_OVERRIDE, FORCED_OPEN, DISABLED, OBSERVING = 0, 1, 2, 3

local r = {gone = {}, is_gone = {}, changed = false, flush = false, late = {}}
local kept = {}  -- the fields as they were read: numbers, texts, bytes

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

-- Options as numbers; durations are kept in milliseconds and, without the suffix, in microseconds.
local function parse_rules(text)
  local p = {}
  for key, value in string.gmatch(text == '' and default_options or text, '(%S+)=(%S+)') do
    p[key] = tonumber(value)
    local name = string.match(key, '^(.*)_ms$')
    if name then p[name] = p[key] * 1000 end
  end
  p.slice_length = floor(p.window / p.window_slices)
  return p
end

local function load_voters()
  r.voters = {}
  local all = r.is_new and {} or redis.call('HGETALL', KEYS[2])
  for k = 1, #all, 2 do
    local p = cmsgpack.unpack(all[k + 1])
    r.voters[all[k]] = {heard = p[1], asked = p[2], succeeded = p[3], failed = p[4],
      settled_at = p[5], set_aside = p[6], window = window_of(p[7], 'c:' .. all[k])}
  end
  r.voters_were_there = #all > 0
end

-- False when a newer version of this library has written it.
local function load_record()
  local names = {'layout'}
  for _, group in ipairs({numbers, texts, lists}) do
    for _, name in ipairs(group) do names[#names + 1] = name end
  end
  local values = redis.call('HMGET', KEYS[1], unpack(names))
  r.is_new = not values[1]
  if values[1] and tonumber(values[1]) > layout then return false end
  for k, name in ipairs(names) do kept[name] = values[k] or nil end
  for _, name in ipairs(numbers) do
    kept[name] = tonumber(kept[name] or 0)
    r[name] = kept[name]
  end
  for _, name in ipairs(texts) do
    kept[name] = kept[name] or ''
    r[name] = kept[name]
  end
  local function list(name) return kept[name] and cmsgpack.unpack(kept[name]) end
  r.totals = list('totals') or {0, 0, 0, 0, 0, 0}
  r.leases = list('leases') or {}
  r.window = window_of(list('window'), 'cells')
  r.recent = window_of(list('recent'), 'recent_cells')
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
    out[#out + 1] = cmsgpack.pack(packed_cells(w))
  end
end

-- What has changed of the record's own hash, as arguments of HSET.
local function changed_fields()
  local out = {'layout', layout}
  local function put(name, value)
    if kept[name] ~= value then
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  for _, name in ipairs(numbers) do
    if r[name] ~= kept[name] then put(name, decimal(r[name])) end
  end
  for _, name in ipairs(texts) do put(name, r[name]) end
  put('totals', cmsgpack.pack(r.totals))
  put('leases', cmsgpack.pack(r.leases))
  for name, list in pairs(r.late) do put(name, cmsgpack.pack(list)) end
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
      out[#out + 1] = cmsgpack.pack({v.heard, v.asked, v.succeeded, v.failed, v.settled_at,
                                     v.set_aside, packed_window(v.window)})
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

-- The one burst of writes: HSET first, PEXPIRE last. A record is kept for its time to live from
-- now when `refresh` is true; else what is there keeps the time it has. Answers the time to live
-- given, 0 when it was not.
local function save_record(t, refresh)
  if r.is_new and not refresh then return 0 end
  in_pieces('HSET', KEYS[1], changed_fields())
  if r.is_new then redis.call('DEL', KEYS[2], KEYS[3]) end
  in_pieces('HSET', KEYS[2], changed_voters())
  if r.me then redis.call('ZADD', KEYS[3], decimal(r.me.heard), r.me.name) end
  local fields = {}
  for _, name in ipairs(r.gone) do
    if not (r.me and r.me.name == name) then
      fields[#fields + 1] = 'i:' .. name
      fields[#fields + 1] = 'ic:' .. name
      redis.call('ZREM', KEYS[3], name)
    end
  end
  for _, name in ipairs(r.gone_voters or {}) do
    if not r.voters[name] then
      fields[#fields + 1] = 'c:' .. name
      redis.call('HDEL', KEYS[2], name)
    end
  end
  in_pieces('HDEL', KEYS[1], fields)
  local ttl = refresh and time_to_live(t) or redis.call('PTTL', KEYS[1])
  if refresh then redis.call('PEXPIRE', KEYS[1], decimal(ttl)) end
  if refresh or (ttl > 0 and not r.voters_were_there) then
    redis.call('PEXPIRE', KEYS[2], decimal(ttl))
  end
  if refresh then redis.call('PEXPIRE', KEYS[3], decimal(ttl)) end
  return refresh and ttl or 0
end
