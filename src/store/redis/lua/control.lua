-- control: an operator's hand. Version 1. See src/core/breaker/record.hpp for what is decided, and
-- record.lua for the layout.
--
-- uses: record eras saving
-- late: layout_1 option_texts options
-- KEYS   1 record, 2 voters, 3 instances
-- ARGV   1 channel, 2 breaker's name, 3 id, a decimal of 64 bits that stays a text, 4 verb, 5 what
--        it is attributed to ("after the fix (by ann)"), 6 expires in ms (0: the verb's default),
--        7 pairs of `set`, each as to_text() writes it
-- Reply  {'ok', view, published, time to live ms, cost us}; {'invalid'} when the pairs of `set`
--        contradict what governs; {'newer'} when the layout is unknown
-- Time   TIME, read first for every decision and last for the cost
-- Cost   constant, whatever the fleet: at most 64 remembered ids

local now = store_time()
if not load_record({'leases', 'window', 'recent', 'control_ids'}) then return {'newer'} end
if not r.is_new then redis.call('HGET', KEYS[2], '') end  -- refused when it is no hash

local max_controls, control_memory = 64, 3600 * 1000000
local default_override_ms = 24 * 3600 * 1000
local verb, attribution, expires = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- Ids are remembered as 20 characters and the time, oldest first.
local id_size = 28

-- True when this id is new; it is known from now on.
local function is_first(id, t)
  local all, wanted, from = field('control_ids') or '', string.format('%-20s', id), 1
  while from < #all and t - struct.unpack('<d', all, from + 20) >= control_memory do
    from = from + id_size
  end
  local at = from - 1
  repeat at = string.find(all, wanted, at + 1, true) until not at or at % id_size == 1
  if not at and #all - from + 1 >= max_controls * id_size then from = from + id_size end
  if from > 1 then all = sub(all, from) end
  r.control_ids = at and all or all .. wanted .. struct.pack('<d', t)
  return not at
end

local function put_override(kind, t)
  r.over, r.over_reason = kind, attribution
  r.over_ends = t + (expires ~= 0 and expires or default_override_ms) * 1000
  bump_by_operator(t)
end

local function drop_override(t)
  if r.over == NO_OVERRIDE then return end
  r.over, r.over_reason = NO_OVERRIDE, ''
  bump_by_operator(t)
end

local function start_anew(t)
  enter_closed(t, 0, attribution)
  r.backoff_level = 0
  forgive_all()
end

local function carry_out(governing, t)
  if verb == 'trip' then
    enter_open(t, expires ~= 0 and expires or single_rule('open_for_ms', 8), attribution)
  elseif verb == 'reset' then
    start_anew(t)
  elseif verb == 'force_open' then
    put_override(FORCED_OPEN, t)
  elseif verb == 'disable' then
    put_override(DISABLED, t)
  elseif verb == 'observe' then
    put_override(OBSERVING, t)
  elseif verb == 'resume' then
    drop_override(t)
  elseif verb == 'set' then
    options().set(ARGV[7], governing, expires * 1000, t)
  elseif verb == 'unset' then
    options().unset(t)
  elseif verb == 'forget' then
    drop_override(t)
    options().unset(t)
    r.totals = {0, 0, 0, 0, 0, 0}
    start_anew(t)
  else
    error('no such verb: ' .. verb)
  end
end

local t = tick(now)
expire(t)
local governing = verb == 'set' and options().with_set(ARGV[7])
local is_valid = verb ~= 'set' or governing
if is_valid and is_first(ARGV[3], t) then carry_out(governing, t) end
local ttl = save_record(t, is_valid)
local view = view_reply(t)
local published = publish(ARGV[1], ARGV[2], view)
if not is_valid then return {'invalid'} end
return {'ok', view, published, ttl, max(0, store_time() - now)}
