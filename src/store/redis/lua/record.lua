-- The record as it is kept, and how it is read. Layout 2:
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
--
-- Fields   layout; numbers, those of record_of; rules, the options that govern as numbers; texts:
--          reason, over_reason, options, configured_options, set_options; lists: totals, leases,
--          settled; the windows window and recent, with cells and recent_cells; control_ids
--
-- A server runs all of a script's text each time, from the definition of each function on. So a
-- script has those pieces only that it needs; what is needed seldom is in pieces that are run when
-- somebody calls them (`late`); and of the fields those are unpacked, and written again, that
-- somebody has asked for.
local layout = '2'

local CLOSED, OPEN, HALF_OPEN = 0, 1, 2
local NO_OVERRIDE, FORCED_OPEN, DISABLED, OBSERVING = 0, 1, 2, 3
local floor, ceil, max, min, sub = math.floor, math.ceil, math.max, math.min, string.sub

local r     -- the record
local kept  -- its fields as they were read, by name; false: there is none

local function decimal(x) return string.format('%.0f', x) end

-- Whole milliseconds, rounded up, so that nobody comes back too early.
local function left(ends, t) return ends > t and ceil((ends - t) / 1000) or 0 end

-- A field of the record: read already together with others, or now.
local function field(name)
  local bytes = kept[name]
  if bytes == nil then
    bytes = not r.is_new and redis.call('HGET', KEYS[1], name)
    kept[name] = bytes
  end
  return bytes
end

-- A sliding window of counts (window.lua) from what is kept of it: {oldest, six sums}.
local function window_of(packed, cells_at)
  local p = packed or {-1, 0, 0, 0, 0, 0, 0}
  return {oldest = p[1], sum = {p[2], p[3], p[4], p[5], p[6], p[7]}, cells_at = cells_at}
end

-- Options as numbers, in their order; durations in milliseconds and, without the suffix, in
-- microseconds.
local rules_layout = '<ddddddddddddddddddd'
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

-- What `r` lacks it reads in this way.
local function late_part(_, name)
  local part
  if name == 'rules' then
    if kept.rules then
      part = rules_of(struct.unpack(rules_layout, kept.rules))
      kept.unpacked_rules = part
    else
      part = option_texts().parse(r.options)
    end
  else
    local bytes = field(name)
    if name == 'leases' or name == 'settled' then
      part = bytes and cmsgpack.unpack(bytes) or {}
    elseif name == 'totals' then
      part = bytes and cmsgpack.unpack(bytes) or {0, 0, 0, 0, 0, 0}
    elseif name == 'window' then
      part = window_of(bytes and cmsgpack.unpack(bytes), 'cells')
    elseif name == 'recent' then
      part = window_of(bytes and cmsgpack.unpack(bytes), 'recent_cells')
    elseif name == 'reason' or name == 'over_reason' or name == 'options'
        or name == 'configured_options' or name == 'set_options' then
      part = bytes or ''
    else
      error('the record has no ' .. name)
    end
  end
  r[name] = part
  return part
end

local numbers_layout = '<ddddddddddddddddddddddd'
local function record_of(clock, skew, era, rev, state, ends, since, backoff_level, over, over_ends,
    options_stamp, configured_stamp, set_ends, suspect_since, reclaimed, set_aside_at,
    taken_over_at, forgot_at, live_instances, swept_at, window_gen, results_gen, forgiven_gen)
  return {clock = clock, skew = skew, era = era, rev = rev, state = state, ends = ends,
    since = since, backoff_level = backoff_level, over = over, over_ends = over_ends,
    options_stamp = options_stamp, configured_stamp = configured_stamp, set_ends = set_ends,
    suspect_since = suspect_since, reclaimed = reclaimed, set_aside_at = set_aside_at,
    taken_over_at = taken_over_at, forgot_at = forgot_at, live_instances = live_instances,
    swept_at = swept_at, window_gen = window_gen, results_gen = results_gen,
    forgiven_gen = forgiven_gen,
    is_new = not kept.layout, changed = false, flush = false, voters = {}, me = false}
end

-- Reads the record and, with the same command, the fields in `also`. False when a newer version of
-- this library has written it.
local function load_record(also)
  local values = redis.call('HMGET', KEYS[1], 'layout', 'numbers', 'rules', 'reason',
    unpack(also))
  kept = {layout = values[1], numbers = values[2], rules = values[3], reason = values[4]}
  for k = 1, #also do kept[also[k]] = values[4 + k] end
  if kept.layout and tonumber(kept.layout) > tonumber(layout) then return false end
  if kept.numbers or not kept.layout then
    r = record_of(struct.unpack(numbers_layout, kept.numbers or string.rep('\0', 184)))
  else
    r = record_of(layout_1().numbers())
  end
  if r.is_new then r.totals, r.leases = {0, 0, 0, 0, 0, 0}, {} end  -- each record has them
  setmetatable(r, {__index = late_part})
  return true
end

-- The record's time; it never goes back.
local function time_of(now) return max(now + r.skew, r.clock, 1) end

local function view_reply(t)
  local has_override = r.over ~= NO_OVERRIDE and t < r.over_ends
  return {r.era, r.rev, r.state, r.state == HALF_OPEN and 0 or left(r.ends, t), r.backoff_level,
    has_override and r.over or NO_OVERRIDE, has_override and left(r.over_ends, t) or 0,
    r.options_stamp, has_override and r.over_reason or r.reason}
end
