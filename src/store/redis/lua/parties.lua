-- Voters and instances, kept: who was heard, who is forgotten, and what is written of them
-- (src/core/breaker/record_parties.cpp).
local max_voters = 512
local gone, is_gone, gone_voters = {}, {}, {}

-- min(quorum, live), at least 1; all of it while the record may have forgotten voters.
local function quorum_of(live, t)
  local p = r.rules
  if r.forgot_at ~= 0 and t - r.forgot_at < p.live_for then live = max(live, p.quorum) end
  return max(1, min(p.quorum, live))
end

local function drop_instance(name)
  gone[#gone + 1] = name
  is_gone[name] = true
end

local function drop_voter(name)
  gone_voters[#gone_voters + 1] = name
  r.voters[name] = nil
end

local function sweep(t)
  local p = r.rules
  if t - r.swept_at < floor(p.live_for_ms / 8) * 1000 then return end
  r.swept_at = t
  -- A batch is repeated for at most one window and must be known as counted for longer.
  local memory = max(p.live_for, 2 * p.window)
  if r.is_new then
    r.live_instances = 0
  else
    local old = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', '(' .. decimal(t - memory))
    for _, name in ipairs(old) do drop_instance(name) end
    r.live_instances = redis.call('ZCOUNT', KEYS[3], decimal(t - p.live_for), '+inf')
  end
  -- A voter whose probes count in this era stays, or others could settle more than N.
  for name, v in pairs(all_voters()) do
    if t - max(v.heard, v.asked) > memory and not v.set_aside and v.succeeded + v.failed == 0 then
      drop_voter(name)
    end
  end
end

local function drop_oldest_voter()
  local oldest, n = nil, 0
  for name, v in pairs(all_voters()) do
    n = n + 1
    local o = oldest and r.voters[oldest]
    if not o or v.heard < o.heard or (v.heard == o.heard and name < oldest) then oldest = name end
  end
  if n >= max_voters then drop_voter(oldest) end
end

local function voter_of(name, t)
  sweep(t)
  local v = voter(name)
  if not v then
    drop_oldest_voter()
    v = {heard = 0, asked = 0, succeeded = 0, failed = 0, settled_at = 0, set_aside = false,
         window = window_of(nil, 'c:' .. name)}
    r.voters[name] = v
  end
  v.changed = true
  return v
end

local function packed_voter(v)
  local n = v.window.sum
  return struct.pack(voter_layout, v.heard, r.window_gen, n[2], n[3], n[4], n[1], n[5], n[6],
    v.window.oldest, v.asked, v.succeeded, v.failed, v.settled_at, v.set_aside and 1 or 0)
end

-- Their fields of KEYS[1].
local function put_parties(out)
  for _, v in pairs(r.voters) do put_window(out, v.window) end
  local i = r.me
  if i then
    put_window(out, i.window)
    out[#out + 1] = 'i:' .. i.name
    out[#out + 1] = cmsgpack.pack({i.voter, i.heard, i.last_seq, i.own_stamp, r.window_gen,
                                   packed_window(i.window)})
  end
end

local function forget_the_gone()
  local old = {}
  for _, name in ipairs(gone) do
    if not (r.me and r.me.name == name) then
      old[#old + 1] = 'i:' .. name
      old[#old + 1] = 'ic:' .. name
      redis.call('ZREM', KEYS[3], name)
    end
  end
  for _, name in ipairs(gone_voters) do
    if not r.voters[name] then
      old[#old + 1] = 'c:' .. name
      redis.call('HDEL', KEYS[2], name)
    end
  end
  in_pieces('HDEL', KEYS[1], old)
end

-- KEYS[2] and KEYS[3].
local function save_parties(refresh, ttl, lives)
  local out = {}
  for name, v in pairs(r.voters) do
    if v.changed or v.window.changed then
      out[#out + 1] = name
      out[#out + 1] = packed_voter(v)
    end
  end
  in_pieces('HSET', KEYS[2], out)
  if refresh or (ttl > 0 and not voters_were_there) then
    redis.call('PEXPIRE', KEYS[2], lives)
  end
  if r.me then redis.call('ZADD', KEYS[3], decimal(r.me.heard), r.me.name) end
  if refresh then redis.call('PEXPIRE', KEYS[3], lives) end
  if #gone + #gone_voters > 0 then forget_the_gone() end
end
