-- A field of the record: read already together with others, or now.
local fetched = {}
local function field(name)
  local bytes = fetched[name]
  if bytes == nil then bytes = redis.call('HGET', KEYS[1], name) end
  return bytes
end

-- A sliding window of counts in numbered slices (src/core/breaker/slice_window.hpp).
--
-- It is kept in two fields: {oldest, six sums} and, apart from it, the cells, which are read only
-- when the window moves on or is counted into. oldest = -1: nothing is in it, whatever the field of
-- the cells still holds. Counts are arrays of six: success, failure, slow_success, slow_failure,
-- ignored, rejected. Cells are one flat array: seven numbers for each, its number and its counts;
-- in memory as in the field, because that is what they cost least as.
local function window_of(packed, cells_at)
  local p = packed or {-1, 0, 0, 0, 0, 0, 0}
  return {oldest = p[1], sum = {p[2], p[3], p[4], p[5], p[6], p[7]}, cells_at = cells_at}
end

local function packed_window(w)
  local s = w.sum
  return {w.oldest, s[1], s[2], s[3], s[4], s[5], s[6]}
end

local function add_counts(to, n)
  for k = 1, 6 do to[k] = to[k] + n[k] end
end

local function judged(n) return n[1] + n[2] end
local function slow(n) return n[3] + n[4] end

local function cells_of(w)
  if not w.cells then
    local bytes = w.oldest >= 0 and field(w.cells_at)
    w.cells = bytes and cmsgpack.unpack(bytes) or {}
  end
  return w.cells
end

-- Takes out what has left the window of `size` slices when `current` is the running one.
local function advance(w, current, size)
  local last_out = current - size
  if w.oldest < 0 or w.oldest > last_out then return w.sum end
  local cells, sum, kept_cells, oldest = cells_of(w), w.sum, {}, -1
  for k = 1, #cells, 7 do
    local number = cells[k]
    if number <= last_out then
      for j = 1, 6 do sum[j] = sum[j] - cells[k + j] end
    else
      local at = #kept_cells
      for j = 0, 6 do kept_cells[at + 1 + j] = cells[k + j] end
      if oldest < 0 or number < oldest then oldest = number end
    end
  end
  w.cells, w.oldest, w.changed = kept_cells, oldest, true
  return sum
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

local function clear_window(w)
  if w.oldest < 0 then return end
  w.oldest, w.sum, w.cells, w.changed = -1, {0, 0, 0, 0, 0, 0}, {}, true
end
