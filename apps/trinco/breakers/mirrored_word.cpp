#include "apps/trinco/breakers/mirrored_word.hpp"

#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/mirror/stand_in.hpp"
#include "apps/trinco/mirror/told.hpp"
#include "apps/trinco/stores/hurried_ask.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::control_verb;
using trinco::detail::glance;
using trinco::detail::verdict;
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
    const auto n =
        again(breaker_, believed(told, now.value.fleet), mirror_->last_options(breaker_));
    static_cast<void>(ask_breakers_hurried<std::vector<verdict>>(
        in.at, patience, bear, [&](detail::breaker_store& at, auto by, auto done) {
            return at.exchange({&n, 1}, by, std::move(done));
        }));
}

void mirrored_word::after(const breakers_place& in, const detail::control_request& what,
                          const view& now) {
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
