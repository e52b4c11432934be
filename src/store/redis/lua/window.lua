-- A sliding window of counts in numbered slices (src/core/breaker/slice_window.hpp).
--
-- It is kept in two fields: {oldest, six sums} and, apart from it, the cells, which are read only
-- when the window moves on or is counted into. oldest = -1: nothing is in it, whatever the field of
-- the cells still holds. Counts are arrays of six: success, failure, slow_success, slow_failure,
-- ignored, rejected. Cells are one flat array: seven numbers for each, its number and its counts;
-- in memory as in the field, because that is what they cost least as.
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
