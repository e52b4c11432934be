-- Layout 1 had a field for each number, and no marks: what its voters counted is lost, their
-- results and who is set aside count until the next transition.
local fields = {'clock', 'skew', 'era', 'rev', 'state', 'ends', 'since', 'backoff_level', 'over',
  'over_ends', 'options_stamp', 'configured_stamp', 'set_ends', 'suspect_since', 'reclaimed',
  'set_aside_at', 'taken_over_at', 'forgot_at', 'live_instances', 'swept_at', 'window_gen'}

-- As record_of takes them.
local function numbers()
  local values = redis.call('HMGET', KEYS[1], unpack(fields))
  for k = 1, #fields do values[k] = tonumber(values[k] or 0) end
  values[#fields + 1], values[#fields + 2] = 0, 0
  return unpack(values)
end

local function remove() redis.call('HDEL', KEYS[1], 'controls', unpack(fields)) end

-- What a voter lacks is the second of its numbers.
local function voter(bytes) return sub(bytes, 1, 8) .. struct.pack('<d', 0) .. sub(bytes, 9) end

return {numbers = numbers, remove = remove, voter = voter}
