-- exchange: one instance's news of one breaker. Version 1. See src/core/breaker/record.hpp for what
-- is decided, and record.lua for the layout.
--
-- uses: record window voters eras saving parties senders judging
-- late: layout_1 option_texts options
-- KEYS   1 record, 2 voters, 3 instances
-- ARGV   1 instance, 2 voter, 3 channel, 4 breaker's name; 5-13 the sender's view: era, rev, state,
--        remaining ms, backoff level, override, its remaining ms, stamp of the options that the
--        sender holds, reason; 14 seq (0: nothing to count); 15 stamp of its own options (0: none
--        yet); 16 options, as to_text() writes them, or ''; 17-22 stale counts; 23 number of
--        slices; then for each its age in ms and six counts
-- Reply  {'ok', counted, own_stamp, set_aside, live voters, voters failing, probes_left,
--        next_exchange ms, send_options, options, window's six counts, view, published, time to
--        live ms, cost us}; flags are 0 or 1, the view has the order of ARGV. {'newer'} when the
--        layout is unknown.
-- Time   TIME, read first for every decision and last for the cost
-- Cost   linear in voters and slices carried; what is written is what has changed

local now = store_time()
local me, is_counting = 'i:' .. ARGV[1], ARGV[23] ~= '0'
local asked_for = {me, 'options', 'leases', 'window'}
if is_counting then
  asked_for = {me, 'options', 'leases', 'window', 'recent', 'totals', 'cells', 'recent_cells',
    'c:' .. ARGV[2], 'ic:' .. ARGV[1]}
end
if not load_record(asked_for) then return {'newer'} end
load_voters()

local max_instances = 4096
local young_slices, flush_wait = 3, 20000

local function sync_number(t) return floor(t / r.rules.sync_interval) end

local function counts_argument(at)
  return {tonumber(ARGV[at]), tonumber(ARGV[at + 1]), tonumber(ARGV[at + 2]),
    tonumber(ARGV[at + 3]), tonumber(ARGV[at + 4]), tonumber(ARGV[at + 5])}
end

local function add_counts(to, n)
  for k = 1, 6 do to[k] = to[k] + n[k] end
end

-- False, and nothing is booked, when the slice has left the window.
local function count_in(w, number, current, size, n)
  if number < 0 or number <= current - size then return false end
  add_counts(advance(w, current, size), n)
  local cells, at = cells_of(w), nil
  for k = 1, #cells, 7 do
    if cells[k] == number then at = k end
  end
  if at then
    for j = 1, 6 do cells[at + j] = cells[at + j] + n[j] end
  else
    at = #cells
    cells[at + 1] = number
    for j = 1, 6 do cells[at + 1 + j] = n[j] end
  end
  if w.oldest < 0 or number < w.oldest then w.oldest = number end
  w.changed = true
  return true
end

-- Adds what a batch counted to the windows, and all of it to the totals.
local function book(v, i, t)
  local era = tonumber(ARGV[5])
  add_counts(r.totals, counts_argument(17))
  local current, size = slice_number(t), r.rules.window_slices
  for k = 1, tonumber(ARGV[23]) do
    local at = 24 + 7 * (k - 1)
    local n = counts_argument(at + 1)
    local time = t - max(0, min(tonumber(ARGV[at]), longest_time_ms)) * 1000
    local number = slice_number(time)
    if era == r.era and time >= 0 and count_in(r.window, number, current, size, n) then
      count_in(v.window, number, current, size, n)
      count_in(i.window, number, current, size, n)
      count_in(r.recent, sync_number(time), sync_number(t), young_slices, n)
    end
    add_counts(r.totals, n)
  end
end

-- The sender, registered if it is not known; the second value says whether it was.
local function instance_of(name, voter, t)
  local bytes = not r.is_new and not is_gone[name] and field('i:' .. name)
  if bytes then
    r.me = instance_from(name, bytes)
  else
    r.me = {name = name, heard = 0, last_seq = 0, own_stamp = 0,
            window = window_of(nil, 'ic:' .. name)}
    if not r.is_new and redis.call('ZCARD', KEYS[3]) - #gone >= max_instances then
      local oldest = redis.call('ZRANGE', KEYS[3], #gone, #gone)[1]
      drop_instance(oldest)
    end
  end
  local i = r.me
  if i.heard == 0 or t - i.heard > r.rules.live_for then r.live_instances = r.live_instances + 1 end
  i.heard, i.voter = t, voter
  return i, bytes and true or false
end

local function is_cold(t)
  return judged(advance(r.recent, sync_number(t), young_slices)) * 10 > judged(r.window.sum)
end

-- Why a window with these counts opens the breaker, or nil.
local function judge(n)
  local p = r.rules
  if p.failure_count ~= 0 and n[2] >= p.failure_count then return 'failure_count' end
  local calls = judged(n)
  if calls < p.minimum_calls then return nil end
  if at_rate(n[2], calls, p.failure_rate) then return 'failure_rate' end
  return is_too_slow(n) and 'slow_call_rate' or nil
end

local function decide_opening(live, failing, t)
  if r.state ~= CLOSED or is_frozen() or r.options == '' then return end
  local why = judge(r.window.sum)
  local crossed = why and failing >= quorum_of(live, t)
  if r.suspect_since ~= 0 then
    if t - r.suspect_since < flush_wait then return end
    r.suspect_since = 0
  elseif crossed and is_cold(t) then
    r.suspect_since = t
    r.flush = true
    return
  end
  if not crossed then return end
  if t - r.since >= r.rules.open_max then r.backoff_level = 0 end
  enter_open(t, opening_length(t), why)
end

local t = tick(now)
local known_stamp, seq, own_stamp = tonumber(ARGV[12]), tonumber(ARGV[14]), tonumber(ARGV[15])
expire(t)
take_over(5, t)

local v = voter_of(ARGV[2], t)
v.heard = t
local i, was_known = instance_of(ARGV[1], ARGV[2], t)
if own_stamp ~= 0 then
  i.own_stamp = own_stamp
  if not was_known then r.forgot_at = t end
end
local repeated = seq ~= 0 and seq <= i.last_seq
if ARGV[16] ~= '' then
  i.own_stamp = options().accept(ARGV[16], i.own_stamp, own_stamp, known_stamp, repeated, t)
end
local counted = seq ~= 0 and not repeated
if counted then
  i.last_seq = seq
  book(v, i, t)
end
local set_aside = v.set_aside

local live, failing = take_census(t)
local before = r.era
decide_opening(live, failing, t)
if r.era ~= before then
  failing, set_aside = 0, false  -- the window is empty again
end

local told_stamp = i.own_stamp ~= 0 and i.own_stamp or r.configured_stamp
if r.configured_stamp == 0 and r.options_stamp ~= 0 then told_stamp = 0 end
local send_options = r.options == '' or known_stamp > r.options_stamp
local governing = known_stamp < r.options_stamp and r.options or ''
local ttl = save_record(t, true, put_parties, save_parties)
local view = view_reply(t)
local published = publish(ARGV[3], ARGV[4], view)
return {'ok', counted and 1 or 0, told_stamp, set_aside and 1 or 0, live, failing, probes_left(),
  pace(), send_options and 1 or 0, governing, r.window.sum, view, published,
  ttl, max(0, store_time() - now)}
