-- inspect: what operators see of one breaker. Writes nothing. Version 1. See record.lua for the
-- layout.
--
-- uses: record window voters judging
-- late: layout_1 option_texts
-- KEYS   1 record, 2 voters, 3 instances
-- ARGV   none
-- Reply  {'ok', view, window's six counts, live voters, voters failing, probes_left, next_exchange
--        ms, options, options_set, set_remaining ms, totals' six counts, shares, cost us}; a share
--        is {instance, voter, window's six counts, heard ms ago, stamp of its options}, sorted by
--        name, the 256 last heard of those within live_for. {'absent'} when there is no record,
--        {'newer'} when its layout is unknown.
-- Time   TIME, read first for every decision and last for the cost
-- Cost   linear in voters and shares

local now = store_time()
if not load_record({'leases', 'window', 'options', 'totals'}) then return {'newer'} end
if r.is_new then return {'absent'} end
load_voters()

local max_shares = 256

local function shares_of(t)
  local names = redis.call('ZREVRANGEBYSCORE', KEYS[3], '+inf', decimal(t - r.rules.live_for),
                           'LIMIT', 0, max_shares)
  table.sort(names)
  local shares = {}
  for _, name in ipairs(names) do
    local bytes = redis.call('HGET', KEYS[1], 'i:' .. name)
    if bytes then
      local i = instance_from(name, bytes)
      shares[#shares + 1] = {name, i.voter, advance(i.window, slice_number(t),
        r.rules.window_slices), floor((t - i.heard) / 1000), i.own_stamp}
    end
  end
  return shares
end

local t = time_of(now)
local live, failing = take_census(t)
return {'ok', view_reply(t), r.window.sum, live, failing, probes_left(), pace(), r.options,
  r.set_ends ~= 0 and 1 or 0, left(r.set_ends, t), r.totals, shares_of(t),
  max(0, store_time() - now)}
