-- A breaker as introductions to the subject draw it, for comparison: one script that is asked
-- before each call. Not a part of the product; docs/articles.md says what is wrong with it.
--
-- KEYS   1 hash of one breaker
-- ARGV   1 failure_threshold, 2 cooldown_time in seconds, 3 current_time of the caller
-- Reply  the state; everything but 'open' lets the call through
local breaker = KEYS[1]
local failure_threshold = tonumber(ARGV[1])
local cooldown_time, current_time = tonumber(ARGV[2]), tonumber(ARGV[3])

local state = redis.call('HGET', breaker, 'state') or 'closed'
if state == 'open' then
  local opened_at = tonumber(redis.call('HGET', breaker, 'opened_at'))
  if current_time - opened_at < cooldown_time then return 'open' end
  redis.call('HSET', breaker, 'state', 'half_open')
  return 'half_open'
end
if state == 'half_open' then return state end

local failures = redis.call('HINCRBY', breaker, 'failures', 1)
if failures >= failure_threshold then
  redis.call('HSET', breaker, 'state', 'open', 'opened_at', current_time)
  return 'open'
end
return 'closed'
