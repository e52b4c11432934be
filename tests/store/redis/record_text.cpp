#include "tests/store/redis/record_text.hpp"

#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <utility>

#include "core/breaker/record_steps.hpp"
#include "store/redis/redis_scripts.hpp"

namespace trinco::detail::test {
namespace {

void put(std::ostream& to, const counts& n) {
    to << n.success << ' ' << n.failure << ' ' << n.slow_success << ' ' << n.slow_failure << ' '
       << n.ignored << ' ' << n.rejected << ';';
}

void put(std::ostream& to, slice_window& w, std::int64_t current) {
    put(to, w.advance(current));
    std::map<std::int64_t, counts> cells;
    for (const auto& c : w.cells) {
        if (c.number >= 0 && !c.n.empty()) cells[c.number] = c.n;
    }
    for (const auto& [number, n] : cells) {
        to << ' ' << number << ": ";
        put(to, n);
    }
    to << '\n';
}

constexpr const char* script = R"LUA(
local out = {}
local function word(x) out[#out + 1] = type(x) == 'number' and decimal(x) or tostring(x) end
local function text(s) out[#out + 1] = s end
local function put_counts(n)
  for k = 1, 6 do text(decimal(n[k]) .. (k < 6 and ' ' or ';')) end
end
local function put_window(w, current, size)
  put_counts(advance(w, current, size))
  local numbers, counts, flat = {}, {}, cells_of(w)
  for k = 1, #flat, 7 do
    local n = {unpack(flat, k + 1, k + 6)}
    if n[1] + n[2] + n[3] + n[4] + n[5] + n[6] ~= 0 then numbers[#numbers + 1] = flat[k] end
    counts[flat[k]] = n
  end
  table.sort(numbers)
  for _, number in ipairs(numbers) do
    text(' ' .. decimal(number) .. ': ')
    put_counts(counts[number])
  end
  text('\n')
end
local function line(...)
  for k, x in ipairs({...}) do
    if k > 1 then text(' ') end
    word(x)
  end
  text('\n')
end
if not load_record({}) then return 'newer' end
if r.is_new then return 'absent' end
load_voters()
line(r.clock, r.skew, r.era, r.rev, r.state, r.ends, r.since, r.backoff_level, r.over, r.over_ends)
line(r.options_stamp, r.configured_stamp, r.set_ends, r.suspect_since, r.reclaimed, r.set_aside_at,
     r.taken_over_at, r.forgot_at, r.live_instances, r.swept_at)
line(r.reason) line(r.over_reason) line(r.options) line(r.configured_options)
local words = {}
for word in string.gmatch(r.set_options, '%S+') do words[#words + 1] = word .. ' ' end
table.sort(words)
line(table.concat(words))
put_counts(r.totals) text('\n')
local current, size = floor(r.clock / r.rules.slice_length), r.rules.window_slices
put_window(r.window, current, size)
put_window(r.recent, floor(r.clock / r.rules.sync_interval), 3)
for _, l in ipairs(r.leases) do line('lease', l[1], l[2], l[3], l[4]) end
for _, s in ipairs(r.settled) do line('settled', s[1], s[2], s[3] and 1 or 0) end
local ids = redis.call('HGET', KEYS[1], 'control_ids') or ''
for at = 1, #ids, 28 do
  local id, time = struct.unpack('<c20d', ids, at)
  line('control', string.match(id, '%d+'), time)
end
local names = {}
for name in pairs(all_voters()) do names[#names + 1] = name end
table.sort(names)
for _, name in ipairs(names) do
  local v = r.voters[name]
  line('voter', name, v.heard, v.asked, v.succeeded, v.failed, v.settled_at, v.set_aside and 1 or 0)
  put_window(v.window, current, size)
end
names = redis.call('ZRANGE', KEYS[3], 0, -1)
table.sort(names)
for _, name in ipairs(names) do
  local i = instance_from(name, redis.call('HGET', KEYS[1], 'i:' .. name))
  line('instance', name, i.voter, i.heard, i.last_seq, i.own_stamp)
  put_window(i.window, current, size)
end
local fields, strays = 0, 0
for _, f in ipairs(redis.call('HKEYS', KEYS[1])) do
  local kind, name = string.match(f, '^(%l+):(.*)$')
  if kind == 'i' then fields = fields + 1 end
  if kind == 'ic' and redis.call('HEXISTS', KEYS[1], 'i:' .. name) == 0 then strays = strays + 1 end
  if kind == 'c' and not r.voters[name] then strays = strays + 1 end
end
line('instances', fields, 'cells of nobody', strays)
return table.concat(out)
)LUA";

}  // namespace

std::string text_of(fleet_record r) {
    std::ostringstream to;
    const auto list = [&to](auto... x) {
        bool first = true;
        ((to << (std::exchange(first, false) ? "" : " ") << x), ...);
        to << '\n';
    };
    const auto us = [](store_time t) { return t.count(); };
    list(us(r.clock), us(r.skew), r.era, r.rev, int(r.state), us(r.until), us(r.since),
         int(r.backoff_level), int(r.over), us(r.over_until));
    list(r.options_stamp, r.configured_stamp, us(r.set_until), us(r.suspect_since), r.reclaimed,
         us(r.set_aside_at), us(r.taken_over_at), us(r.forgot_at), r.live_instances,
         us(r.swept_at));
    for (const auto* s : {&r.reason, &r.over_reason, &r.options, &r.configured_options}) {
        to << *s << '\n';
    }
    std::istringstream words(r.set_options);
    for (const auto& word : std::set<std::string>(std::istream_iterator<std::string>(words), {})) {
        to << word << ' ';
    }
    to << '\n';
    put(to, r.totals);
    to << '\n';
    const std::int64_t current = steps::slice_number(r, r.clock);
    put(to, r.window, current);
    put(to, r.recent, r.clock / r.rules.sync_interval);
    for (const auto& l : r.leases) list("lease", l.token, l.era, us(l.deadline), l.voter);
    for (const auto& s : r.settled) list("settled", s.token, us(s.at), int(s.granted));
    for (const auto& c : r.controls) list("control", c.id, us(c.at));
    for (auto& v : r.voters) {
        list("voter", v.name, us(v.heard), us(v.asked), v.probes_succeeded, v.probes_failed,
             us(v.settled_at), int(v.set_aside));
        put(to, v.window, current);
    }
    for (auto& i : r.instances) {
        list("instance", i.name, i.voter, us(i.heard), i.last_seq, i.own_stamp);
        put(to, i.window, current);
    }
    list("instances", r.instances.size(), "cells of nobody", 0);
    return to.str();
}

std::string text_script() {
    const std::string_view all = trinco::detail::text_of(redis_script::inspect);
    return std::string(all.substr(0, all.find("\n-- inspect: "))) + script;
}

}  // namespace trinco::detail::test
