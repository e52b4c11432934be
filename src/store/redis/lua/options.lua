-- The options that govern (src/core/breaker/record_options.cpp), for who changes them. Every text
-- is one that to_text() makes, or for `set` a part of it: the caller checks each pair and writes it
-- in that form, so that here only what two options say about each other is left to check.
local default_set = 30 * 24 * 3600 * 1000000
local texts = option_texts()

-- Greater than any the record has seen; odd for those that an operator set.
local function next_stamp(t, is_set)
  local stamp = max(t, max(r.options_stamp, r.configured_stamp) + 1)
  return floor((stamp + 1) / 2) * 2 + (is_set and 1 or 0)
end

local function govern(text, stamp)
  local rules = texts.parse(text)
  if rules.window ~= r.rules.window or rules.window_slices ~= r.rules.window_slices then
    clear_windows()
  elseif rules.sync_interval ~= r.rules.sync_interval then
    clear_own_window('recent', 'recent_cells')
  end
  r.options, r.rules, r.options_stamp = text, rules, stamp
end

local function pairs_of(text, into)
  for key, value in string.gmatch(text, '(%S+)=(%S+)') do into[key] = value end
  return into
end

-- The pairs of both, those of `over` where a key is in both; in the order of the options.
local function merged_pairs(under, over)
  local all, out = pairs_of(over, pairs_of(under, {})), {}
  for key in string.gmatch(texts.default, '(%S+)=') do
    if all[key] then out[#out + 1] = key .. '=' .. all[key] end
  end
  return table.concat(out, ' ')
end

-- What governs when these pairs go on top of all options; nil where two contradict each other.
local function laid_over(text, set)
  local all = merged_pairs(text == '' and texts.default or text, set)
  local p = texts.parse(all)
  if p.window_slices > floor(p.window_ms / 10) or p.open_max < p.open_for
      or p.key_ttl < p.live_for then
    return nil
  end
  local longest = floor(p.window_ms / 2)
  if p.sync_interval_ms > longest then
    all = merged_pairs(all, 'sync_interval_ms=' .. decimal(longest))
  end
  return all
end

-- Options that a process was configured with, beneath what an operator set.
local function configure(text, stamp, t)
  r.configured_options, r.configured_stamp = text, stamp
  if r.set_ends == 0 then return govern(text, stamp) end
  local merged = laid_over(text, r.set_options)
  if merged then govern(merged, next_stamp(t, true)) end
end

-- Governing options that the sender brings back to a record that has lost them.
local function restore(text, stamp, t)
  if stamp == 0 then stamp = next_stamp(t, false) end
  if stamp % 2 == 1 then
    r.set_options, r.set_ends = text, t + default_set
  else
    r.configured_options, r.configured_stamp = text, stamp
    r.set_options, r.set_ends = '', 0
  end
  govern(text, stamp)
end

-- A text of the same stamp is taken by a record that has none. One that an operator has unset since
-- is older than the record's stamp, and stays away.
local function bring_back(text, known_stamp, t)
  local lost = r.options == ''
  if known_stamp < r.options_stamp or not lost and known_stamp == r.options_stamp then return end
  restore(text, known_stamp, t)
  if not lost then bump() end
end

-- A sender's options: stamps them, or adopts what they bring back; answers the sender's own stamp,
-- of which `before` is known. own_stamp: as the sender says, 0 when it has none yet.
local function accept(text, before, own_stamp, known_stamp, repeated, t)
  if own_stamp ~= 0 then
    bring_back(text, known_stamp, t)
    return before
  end
  if repeated and before ~= 0 then return before end
  if text ~= r.configured_options then
    local governed = r.options_stamp
    configure(text, next_stamp(t, false), t)
    if r.options_stamp ~= governed then bump() end
  end
  return r.configured_stamp
end

local function unset(t)
  if r.set_ends == 0 then return end
  r.set_options, r.set_ends = '', 0
  -- What is beneath may be unknown (set before any process came, or lost with an older record):
  -- then nothing governs until the next process has told its own, which is asked for.
  local stamp = next_stamp(t, false)
  if r.configured_options ~= '' then r.configured_stamp = stamp end
  govern(r.configured_options, stamp)
  bump_by_operator(t)
end

-- What would govern with these pairs set on top; nil where two contradict each other.
local function with_set(some) return laid_over(r.options, merged_pairs(r.set_options, some)) end

-- `lasts` in microseconds, 0: as long as is usual.
local function set(some, text, lasts, t)
  r.set_options = merged_pairs(r.set_options, some)
  r.set_ends = t + (lasts ~= 0 and lasts or default_set)
  govern(text, next_stamp(t, true))
  bump_by_operator(t)
end

return {accept = accept, unset = unset, with_set = with_set, set = set}
