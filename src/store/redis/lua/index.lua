-- index: keeps the name of a breaker among those of its namespace, for who lists them. Version 1.
-- A script of its own, because the index lives in another slot of a cluster than the records.
--
-- uses: nothing
-- KEYS   1 index, a sorted set in which every name has the score 0, so that it is in the order of
--        the names: ZRANGEBYLEX pages through it
-- ARGV   1 breaker's name, 2 time to live of its record in ms
-- Reply  1
-- Time   none; the index lives as long as the longest of its records. A name whose record is gone
--        stays until then, or until somebody who was answered `absent` removes it (ZREM).
-- Cost   O(log names)

redis.call('ZADD', KEYS[1], 0, ARGV[1])
if redis.call('PTTL', KEYS[1]) < tonumber(ARGV[2]) then
  redis.call('PEXPIRE', KEYS[1], ARGV[2])
end
return 1
