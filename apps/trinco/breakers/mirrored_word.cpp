#include "apps/trinco/breakers/mirrored_word.hpp"

#include <utility>
#include <variant>

#include "apps/trinco/mirror/stand_in.hpp"
#include "apps/trinco/mirror/told.hpp"
#include "apps/trinco/stores/hurried_ask.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::control_request;
using trinco::detail::control_verb;
using trinco::detail::glance;
using trinco::detail::view;

// Beside what a person waits for already; what cannot be had within this is said by the word
// itself.
constexpr auto patience = 2s;
constexpr auto bear = 0ms;

}  // namespace

mirrored_word::mirrored_word(const settings& with, std::string breaker)
    : breaker_(std::move(breaker)), mirror_(server_mirror::open(with)) {}

void mirrored_word::before(const breakers_place& in) const {
    if (!mirror_) return;
    const view told = mirror_->last_view(breaker_);
    if (!told.newer_than(view{})) return;
    const detail::look_request question{breaker_, told};
    const auto now = ask_breakers_hurried<glance>(
        in.at, patience, bear, [&](detail::breaker_store& at, auto by, auto done) {
            return at.look(question, by, std::move(done));
        });
    if (now.error || !told.newer_than(now.value.fleet)) return;
    bring_back_state(in, believed(told, now.value.fleet));
    bring_back_options(in, now.value.fleet.options_stamp);
}

void mirrored_word::bring_back_state(const breakers_place& in, const view& state) const {
    detail::probe_request nobodys;
    nobodys.breaker = breaker_;
    nobodys.mine = state;
    nobodys.mine.options_stamp = 0;
    nobodys.step = detail::probe_step::give_back;
    nobodys.token = 1;
    static_cast<void>(ask_breakers_hurried<detail::probe_reply>(
        in.at, patience, bear, [&](detail::breaker_store& at, auto by, auto done) {
            return at.probe(nobodys, by, std::move(done));
        }));
}

void mirrored_word::bring_back_options(const breakers_place& in, std::uint64_t there) const {
    const told_options governed = mirror_->last_options(breaker_);
    if (!governed.are_set() || governed.stamp <= there) return;
    control_request set;
    set.breaker = breaker_;
    set.id = governed.stamp;  // said once, whoever brings it
    set.verb = control_verb::set;
    set.options = governed.text;
    static_cast<void>(ask_breakers_hurried<view>(
        in.at, patience, bear, [&](detail::breaker_store& at, auto by, auto done) {
            return at.control(set, by, std::move(done));
        }));
}

void mirrored_word::after(const breakers_place& in, const control_request& what, const view& now) {
    if (!mirror_) return;
    told said{now, {}};
    const auto read = read_report(in, breaker_, "show the breaker " + breaker_);
    if (const auto* const r = std::get_if<std::optional<report>>(&read); r != nullptr && *r) {
        said.fleet = (*r)->now.fleet;
        said.options = {(*r)->options, (*r)->now.fleet.options_stamp};
    }
    mirror_->remember(breaker_, said);
    stand_in here(mirror_->stand_in(), breaker_);
    if (what.verb == control_verb::reset || what.verb == control_verb::forget) {
        here.begin_anew(said.fleet.reason);
    }
    here.agree(said, what.verb == control_verb::set ? what.expires : 0ms);
}

}  // namespace trinco::program
