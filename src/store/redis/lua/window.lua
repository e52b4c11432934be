-- A sliding window of counts in numbered slices (src/core/breaker/slice_window.hpp).
--
-- It is kept in two fields: {oldest, six sums} and, apart from it, the cells, which are read only
-- when the window moves on or is counted into. oldest = -1: nothing is in it, whatever the field of
-- the cells still holds. Counts are arrays of six: success, failure, slow_success, slow_failure,
-- ignored, rejected.
local function window_of(packed, cells_at)
  local p = packed or {-1, 0, 0, 0, 0, 0, 0}
  return {oldest = p[1], sum = {p[2], p[3], p[4], p[5], p[6], p[7]}, cells_at = cells_at}
end

local function packed_window(w)
  local s = w.sum
  return {w.oldest, s[1], s[2], s[3], s[4], s[5], s[6]}
end

local function add_counts(to, n, sign)
  for k = 1, 6 do to[k] = to[k] + sign * n[k] end
end

local function judged(n) return n[1] + n[2] end
local function slow(n) return n[3] + n[4] end

local function cells_of(w)
  if w.cells then return w.cells end
  w.cells = {}
  local bytes = w.oldest >= 0 and redis.call('HGET', KEYS[1], w.cells_at)
  local flat = bytes and cmsgpack.unpack(bytes) or {}
  for k = 1, #flat, 7 do
    w.cells[flat[k]] = {flat[k + 1], flat[k + 2], flat[k + 3], flat[k + 4], flat[k + 5],
                        flat[k + 6]}
  end
  return w.cells
end

local function packed_cells(w)
  local flat = {}
  for number, n in pairs(cells_of(w)) do
    local k = #flat
    flat[k + 1] = number
    for j = 1, 6 do flat[k + 1 + j] = n[j] end
  end
  return flat
end

-- Takes out what has left the window of `size` slices when `current` is the running one.
local function advance(w, current, size)
  if w.oldest < 0 or w.oldest > current - size then return w.sum end
  local oldest = -1
  local cells = cells_of(w)
  for number, n in pairs(cells) do
    if number <= current - size then
      add_counts(w.sum, n, -1)
      cells[number] = nil
    elseif oldest < 0 or number < oldest then
      oldest = number
    end
  end
  w.oldest = oldest
  w.changed = true
  return w.sum
end

-- False, and nothing is booked, when the slice has left the window.
local function count_in(w, number, current, size, n)
  if number < 0 or number <= current - size then return false end
  advance(w, current, size)
  local cells = cells_of(w)
  cells[number] = cells[number] or {0, 0, 0, 0, 0, 0}
  add_counts(cells[number], n, 1)
  add_counts(w.sum, n, 1)
  if w.oldest < 0 or number < w.oldest then w.oldest = number end
  w.changed = true
  return true
end

local function clear_window(w)
  if w.oldest < 0 then return end
  w.oldest, w.sum, w.cells, w.changed = -1, {0, 0, 0, 0, 0, 0}, {}, true
end
