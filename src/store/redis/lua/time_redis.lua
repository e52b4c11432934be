-- From Redis 7.2 on TIME stands still while a script runs. Where a script may ask for the time of
-- the CPU (Redis 7.4, Valkey 8) the second reading, which is for the cost, adds what was spent.
local os_library = rawget(_G, 'os')
local cpu = os_library and os_library.clock
local first_time, cpu_then
local function store_time()
  if first_time then return first_time + math.floor((cpu() - cpu_then) * 1000000) end
  local x = redis.call('TIME')
  local t = x[1] * 1000000 + x[2]
  if cpu then first_time, cpu_then = t, cpu() end
  return t
end
