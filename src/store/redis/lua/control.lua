-- control: an operator's hand. Version 1. See src/core/breaker/record.hpp for what is decided, and
-- record.lua for the layout.
--
-- uses: window record options views
-- KEYS   1 record, 2 voters, 3 instances
-- ARGV   1 channel, 2 breaker's name, 3 id, a decimal of 64 bits that stays a text, 4 verb, 5 what
--        it is attributed to ("after the fix (by ann)"), 6 expires in ms (0: the verb's default),
--        7 pairs of `set`, each as to_text() writes it
-- Reply  {'ok', view, published, time to live ms, cost us}; {'invalid'} when the pairs of `set`
--        contradict what governs; {'newer'} when the layout is unknown
-- Time   TIME, read first for every decision and last for the cost
-- Cost   constant, whatever the fleet: at most 64 remembered ids

local now = store_time()
if not load_record({'control_ids'}) then return {'newer'} end
if not r.is_new then redis.call('HGET', KEYS[2], '') end  -- refused when it is no hash

local max_controls, control_memory = 64, 3600 * 1000000
local default_override_ms = 24 * 3600 * 1000
local verb, attribution, expires = ARGV[4], ARGV[5], tonumber(ARGV[6])

-- Ids are remembered as 20 characters and the time, oldest first.
local id_layout, id_size = '<c20d', 28

-- True when this id is new; it is known from now on.
local function is_first(id, t)
  local all, wanted, from, at = field('control_ids') or '', string.format('%-20s', id), 1, 0
  while from < #all and t - struct.unpack('<d', all, from + 20) >= control_memory do
    from = from + id_size
  end
  all = sub(all, from)
  repeat at = string.find(all, wanted, at + 1, true) until not at or at % id_size == 1
  if not at then
    if #all >= max_controls * id_size then all = sub(all, 1 + id_size) end
    all = all .. struct.pack(id_layout, wanted, t)
  end
  r.control_ids = all
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

local carry_out = {
  trip = function(t)
    enter_open(t, expires ~= 0 and expires or r.rules.open_for_ms, attribution)
  end,
  reset = start_anew,
  force_open = function(t) put_override(FORCED_OPEN, t) end,
  disable = function(t) put_override(DISABLED, t) end,
  observe = function(t) put_override(OBSERVING, t) end,
  resume = drop_override,
  unset = unset_options,
  forget = function(t)
    drop_override(t)
    unset_options(t)
    r.totals = {0, 0, 0, 0, 0, 0}
    start_anew(t)
  end
}

local t = tick(now)
expire(t)
local laid = verb == 'set' and laid_over(r.options, merged_pairs(r.set_options, ARGV[7]))
local is_valid = verb ~= 'set' or laid
if is_valid and is_first(ARGV[3], t) then
  if verb == 'set' then
    r.set_options = merged_pairs(r.set_options, ARGV[7])
    r.set_ends = t + (expires ~= 0 and expires * 1000 or default_set)
    govern(laid, next_stamp(t, true))
    bump_by_operator(t)
  else
    carry_out[verb](t)
  end
end
local ttl = save_record(t, is_valid)
local view = view_reply(t)
local published = publish(ARGV[1], ARGV[2], view)
if not is_valid then return {'invalid'} end
return {'ok', view, published, ttl, max(0, store_time() - now)}
