#include "apps/trinco/doctor/examine_use.hpp"

#include <algorithm>
#include <chrono>
#include <string>
#include <utility>
#include <variant>

#include "apps/trinco/locks/lock_show.hpp"
#include "apps/trinco/locks/look_often.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"
#include "trinco/error.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;

constexpr double too_much = 0.7;
constexpr auto looks_for = 2s;
constexpr auto gives_up_after = 150ms;
constexpr std::size_t name_shown = 80;
constexpr std::size_t named = 3;  // of those that are used too much

// Where it is not known who waits: a lock that is taken again and again has somebody who wants it.
bool is_handed_on(const used_lock& one) {
    return one.grants > 0 && (one.waited > 0 || !one.lists_waiters);
}

std::string use_text(const used_lock& one, std::size_t looks) {
    std::string text = "the lock " + detail::quoted(one.name, name_shown) + " was held " +
                       whole_percent(one.share(looks)) + " of the time, handed on " +
                       std::to_string(one.grants) + (one.grants == 1 ? " time" : " times");
    if (!one.waits.empty()) text += ", p99 of waits " + measured_text(one.waits.p99());
    return text;
}

// The file is there, so that looking makes none.
bool may_be_opened(const settings& with, const examination& of) {
    if (of.worst() == level::bad) return false;
    if (trinco::detail::scheme_of(with.locks_url) != "local") return true;
    return std::any_of(of.all.begin(), of.all.end(),
                       [](const finding& one) { return one.check == "answer"; });
}

json_object figures_of(const std::vector<used_lock>& locks, std::size_t looks) {
    json_array all;
    for (const auto& one : locks) {
        json_object o;
        o.add("name", one.name).add_raw("use", use_json(one, looks).text());
        all.add_raw(o.text());
    }
    return json_object().add("looks", looks).add_raw("locks", all.text());
}

}  // namespace

finding judge_use(const std::vector<used_lock>& locks, std::size_t looks) {
    finding found{.check = "use", .sentence = "no lock is held"};
    if (locks.empty()) return found;
    auto busiest = locks;
    std::stable_sort(busiest.begin(), busiest.end(), [](const auto& a, const auto& b) {
        return std::pair(is_handed_on(a), a.held) > std::pair(is_handed_on(b), b.held);
    });
    const auto is_too_much = [&](const used_lock& one) {
        return is_handed_on(one) && one.share(looks) > too_much;
    };
    const auto end = std::find_if_not(busiest.begin(), busiest.end(), is_too_much);
    busiest.erase(end, busiest.end());
    found.figures = figures_of(busiest, looks);
    if (busiest.empty()) {
        found.sentence = std::to_string(locks.size()) +
                         (locks.size() == 1 ? " lock is" : " locks are") +
                         " in use, none is short of time";
        return found;
    }
    found.how = level::warn;
    found.sentence.clear();
    for (std::size_t i = 0; i < std::min(named, busiest.size()); ++i) {
        found.sentence += (i > 0 ? "; " : "") + use_text(busiest[i], looks);
    }
    if (busiest.size() > named) {
        found.sentence += "; and " + std::to_string(busiest.size() - named) + " more";
    }
    found.advice = "hold it for shorter, or split it into locks of smaller things";
    found.commands = {"trinco locks ls --for 10s"};
    return found;
}

finding judge_unlooked(const problem& why, std::string_view url) {
    if (why.error != errc::busy || !trinco::detail::scheme_of(url).starts_with("etcd")) {
        return {level::bad, "use", why.sentence};
    }
    return {level::warn, "use",
            "how much locks are used could not be seen: too many other keys lie beside them (a "
            "listing reads 200,000)",
            "keep them under a prefix of their own (etcd://HOST?prefix=locks); without one 'trinco "
            "locks ls' fails as well, while a lock reads no more than its own queue"};
}

void examine_use(const settings& with, examination& to) {
    if (!may_be_opened(with, to)) return;
    const auto opened = open_store(with, needs::locks);
    const auto* const at = std::get_if<store>(&opened);
    if (at == nullptr) return;
    const lock_scope scope{.prefix = with.prefix};
    const auto looked = look_often(*at, scope, looks_for, gives_up_after);
    if (const auto* const why = std::get_if<problem>(&looked)) {
        to.code = why->code;
        return to.add(judge_unlooked(*why, with.locks_url));
    }
    const auto& use = std::get<looked_often>(looked).use;
    to.add(judge_use(use.locks(), use.looks()));
}

}  // namespace trinco::program::doctor
