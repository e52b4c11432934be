-- exchange: one instance's news of one breaker. Version 1. See src/core/breaker/record.hpp for what
-- is decided, and record.lua for the layout.
--
-- uses: window record options views parties judging
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
local me = 'i:' .. ARGV[1]
local counted_into = {me, 'cells', 'recent_cells', 'c:' .. ARGV[2], 'ic:' .. ARGV[1]}
if not load_record(ARGV[23] == '0' and {me} or counted_into) then return {'newer'} end
load_voters()

local young_slices, flush_wait = 3, 20000

local function sync_number(t) return floor(t / r.rules.sync_interval) end

local function counts_argument(at)
  local n = {}
  for k = 1, 6 do n[k] = tonumber(ARGV[at + k - 1]) end
  return n
end

-- Adds what a batch counted to the windows, and all of it to the totals.
local function book(v, i, era, t)
  add_counts(r.totals, counts_argument(17))
  local current, size = slice_number(t), r.rules.window_slices
  for k = 1, tonumber(ARGV[23]) do
    local at = 24 + 7 * (k - 1)
    local n = counts_argument(at + 1)
    local time = t - clamp(tonumber(ARGV[at]), 0, longest_time_ms) * 1000
    local number = slice_number(time)
    if era == r.era and time >= 0 and count_in(r.window, number, current, size, n) then
      count_in(v.window, number, current, size, n)
      count_in(i.window, number, current, size, n)
      count_in(r.recent, sync_number(time), sync_number(t), young_slices, n)
    end
    add_counts(r.totals, n)
  end
end

local function is_cold(t)
  return judged(advance(r.recent, sync_number(t), young_slices)) * 10 > judged(r.window.sum)
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
local mine = view_argument(5)
local seq, own_stamp = tonumber(ARGV[14]), tonumber(ARGV[15])
expire(t)
take_over(mine, t)

local v = voter_of(ARGV[2], t)
v.heard = t
local i, was_known = instance_of(ARGV[1], ARGV[2], t)
if own_stamp ~= 0 and not was_known then r.forgot_at = t end
local repeated = seq ~= 0 and seq <= i.last_seq
own_stamp = accept_options(i, ARGV[16], own_stamp, mine.options_stamp, repeated, t)
local counted = seq ~= 0 and not repeated
if counted then
  i.last_seq = seq
  book(v, i, mine.era, t)
end
local set_aside = v.set_aside

local live, failing = take_census(t)
local before = r.era
decide_opening(live, failing, t)
if r.era ~= before then
  failing, set_aside = 0, false  -- the window is empty again
end

local send_options = r.options == '' or mine.options_stamp > r.options_stamp
local options = mine.options_stamp < r.options_stamp and r.options or ''
local ttl = save_record(t, true)
local view = view_reply(t)
local published = publish(ARGV[3], ARGV[4], view)
return {'ok', counted and 1 or 0, own_stamp, set_aside and 1 or 0, live, failing, probes_left(),
  pace(), send_options and 1 or 0, options, r.window.sum, view, published,
  ttl, max(0, store_time() - now)}
