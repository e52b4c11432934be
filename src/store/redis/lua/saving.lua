-- The record written, and the fleet told.

-- One of the rules, for who asks for one or two of them; `place` is its place in their order.
local function single_rule(name, place)
  local all = rawget(r, 'rules')
  if not all and kept.rules then return (struct.unpack('<d', kept.rules, 8 * place - 7)) end
  return (all or r.rules)[name]
end

local function time_to_live(t)
  local last = max(t, r.ends, r.set_ends)
  if r.over ~= NO_OVERRIDE then last = max(last, r.over_ends) end
  for _, l in ipairs(r.leases) do last = max(last, l[3]) end
  return left(last, t) + single_rule('key_ttl_ms', 19)
end

local function packed_window(w)
  local s = w.sum
  return {w.oldest, s[1], s[2], s[3], s[4], s[5], s[6]}
end

-- A window that has changed, as arguments of HSET; its cells were read for that.
local function put_window(out, w, name)
  if not w.changed then return end
  if name then
    out[#out + 1] = name
    out[#out + 1] = cmsgpack.pack(packed_window(w))
  end
  if w.oldest >= 0 then
    out[#out + 1] = w.cells_at
    out[#out + 1] = cmsgpack.pack(w.cells)
  end
end

local function packed_numbers()
  return struct.pack(numbers_layout, r.clock, r.skew, r.era, r.rev, r.state, r.ends, r.since,
    r.backoff_level, r.over, r.over_ends, r.options_stamp, r.configured_stamp, r.set_ends,
    r.suspect_since, r.reclaimed, r.set_aside_at, r.taken_over_at, r.forgot_at, r.live_instances,
    r.swept_at, r.window_gen, r.results_gen, r.forgiven_gen)
end

-- What was parsed once is kept.
local function packed_rules(p)
  return struct.pack(rules_layout, p.failure_rate, p.minimum_calls, p.window_ms, p.window_slices,
    p.failure_count, p.slow_call_rate, p.slow_calls, p.open_for_ms, p.open_backoff, p.open_max_ms,
    p.jitter, p.half_open_probes, p.probe_timeout_ms, p.recovery_ramp_ms, p.quorum, p.live_for_ms,
    p.sync_interval_ms, p.exchange_budget, p.key_ttl_ms)
end

-- What has changed of the record's own hash, as arguments of HSET. What nobody has asked for, or
-- said, is as it was.
local function changed_fields()
  local out = {}
  local function put(name, value, before)
    if value ~= before then
      out[#out + 1] = name
      out[#out + 1] = value
    end
  end
  local function text(name)
    local value = rawget(r, name)
    if value then put(name, value, field(name) or '') end
  end
  local function list(name)
    local value = rawget(r, name)
    if value then put(name, cmsgpack.pack(value), field(name)) end
  end
  if kept.layout ~= layout then put('layout', layout) end
  put('numbers', packed_numbers(), kept.numbers)
  local rules = rawget(r, 'rules')
  if rules ~= kept.unpacked_rules then put('rules', packed_rules(rules)) end
  text('reason') text('over_reason')
  text('options') text('configured_options') text('set_options')
  list('totals') list('leases') list('settled')
  text('control_ids')
  if rawget(r, 'window') then put_window(out, r.window, 'window') end
  if rawget(r, 'recent') then put_window(out, r.recent, 'recent') end
  return out
end

-- In pieces, because a function of Lua takes a few thousand arguments at most.
local function in_pieces(command, key, list)
  for from = 1, #list, 1000 do
    redis.call(command, key, unpack(list, from, min(from + 999, #list)))
  end
end

-- The one burst of writes; of a record that is there HSET is the first, unless nothing has changed
-- in the same microsecond. A record is kept for its time to live from now when `refresh` is true;
-- else what is there keeps the time it has. Answers the time to live given, 0 when it was not.
-- Who touches voters or instances gives `put_parties`, which adds their fields to those of the
-- record, and `save_parties`, which writes the other keys.
-- A right that the user lacks cuts the burst off where it is missed, and what was written stays: a
-- new record asks for DEL and PEXPIRE before it is there, and each key gets its end at once. A full
-- server takes every write behind one that it has taken, also behind DEL: hence the first, which it
-- refuses, and which changes nothing.
local function save_record(t, refresh, put_parties, save_parties)
  if r.is_new and not refresh then return 0 end
  local ttl = refresh and time_to_live(t) or redis.call('PTTL', KEYS[1])
  local lives = decimal(ttl)
  if r.is_new then
    redis.call('ZADD', KEYS[3], 'XX', 0, '')
    redis.call('DEL', KEYS[2], KEYS[3])
    redis.call('PEXPIRE', KEYS[1], lives)
  end
  local out = changed_fields()
  if put_parties then put_parties(out) end
  in_pieces('HSET', KEYS[1], out)
  if refresh then redis.call('PEXPIRE', KEYS[1], lives) end
  if save_parties then
    save_parties(refresh, ttl, lives)
  elseif refresh and not r.is_new then
    redis.call('PEXPIRE', KEYS[2], lives)
    redis.call('PEXPIRE', KEYS[3], lives)
  end
  if kept.layout and not kept.numbers then layout_1().remove() end
  return refresh and ttl or 0
end

-- Tells the rest of the fleet, after the writes: "kind breaker eight numbers reason". What fails
-- here undoes nothing; the flag in the reply lets the caller say that nobody hears it.
local function publish(channel, breaker, view)
  if not r.changed and not r.flush then return 1 end
  local sound = 1
  local news =
    string.format(' %s %.0f %.0f %d %.0f %d %d %.0f %.0f %s', breaker, unpack(view))
  local function say(kind)
    local answer = redis.pcall('PUBLISH', channel, kind .. news)
    if type(answer) == 'table' and answer.err then sound = 0 end
  end
  if r.changed then say('changed') end
  if r.flush then say('flush') end
  return sound
end
