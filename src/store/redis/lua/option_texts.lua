-- Options as texts. What the fleet has agreed on, before anybody has said what:
-- to_text(policy{}).
local default_options = 'failure_rate=0.5 minimum_calls=20 window_ms=10000 window_slices=10 '
  .. 'failure_count=0 slow_call_rate=1 slow_calls=0 open_for_ms=10000 open_backoff=2 '
  .. 'open_max_ms=300000 jitter=0.1 half_open_probes=5 probe_timeout_ms=10000 '
  .. 'recovery_ramp_ms=0 quorum=2 live_for_ms=60000 sync_interval_ms=100 exchange_budget=200 '
  .. 'key_ttl_ms=3600000'

-- default_options with a hole for each value: all options are written in this order.
local option_holes = 'failure_rate=(%S+) minimum_calls=(%S+) window_ms=(%S+) window_slices=(%S+) '
  .. 'failure_count=(%S+) slow_call_rate=(%S+) slow_calls=(%S+) open_for_ms=(%S+) '
  .. 'open_backoff=(%S+) open_max_ms=(%S+) jitter=(%S+) half_open_probes=(%S+) '
  .. 'probe_timeout_ms=(%S+) recovery_ramp_ms=(%S+) quorum=(%S+) live_for_ms=(%S+) '
  .. 'sync_interval_ms=(%S+) exchange_budget=(%S+) key_ttl_ms=(%S+)'

local function parse(text)
  local n = {string.match(text == '' and default_options or text, option_holes)}
  for k = 1, #n do n[k] = tonumber(n[k]) end
  return rules_of(unpack(n))
end

return {default = default_options, parse = parse}
