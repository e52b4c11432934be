#include "apps/trinco/lock/lock_command.hpp"

#include <malloc.h>

#include <cstdlib>
#include <utility>
#include <variant>

#include "apps/trinco/lock/lock_options.hpp"
#include "apps/trinco/lock/lock_run.hpp"
#include "apps/trinco/lock/outset.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/settings_for.hpp"

namespace trinco::program {
namespace {

class lock_command final : public command {
public:
    void declare(arguments& to) override { declare_lock_options(to, options_); }
    int run(std::span<const std::string> words) override;

private:
    lock_options options_;
};

int lock_command::run(std::span<const std::string> words) {
    const auto loaded = settings_for(options_.where, {needs::locks});
    if (const auto* bad = std::get_if<problem>(&loaded)) return complain(*bad);
    const auto& with = std::get<settings>(loaded);
    const auto planned = plan_of(options_, with, words.front());
    if (const auto* bad = std::get_if<problem>(&planned)) return complain(*bad);
    const auto& plan = std::get<lock_plan>(planned);
    signal_desk desk;
    // One heap for each of the threads that work at the same time (this one and the store's, which
    // prepares statements meanwhile): in a common one they wait for each other, and more would cost
    // more to make than they are worth.
    ::mallopt(M_ARENA_MAX, 2);
    // Not in steps: each takes the other threads' time, too.
    ::mallopt(M_TOP_PAD, 1 << 20);
    ::mallopt(M_TRIM_THRESHOLD, 1 << 22);
    // One of an outer lock says nothing about this one.
    ::unsetenv("TRINCO_TOKEN");
    auto begun =
        set_out(words, guardian::commands::one, [&] { return open_store_for_a_moment(with); });
    if (const auto* bad = std::get_if<problem>(&begun)) return complain(*bad);
    auto& all = std::get<outset>(begun);
    run_under_lock(options_, plan, all.at, std::move(all.over), desk, all.what);
}

}  // namespace

std::unique_ptr<command> make_lock_command() {
    return std::make_unique<lock_command>();
}

}  // namespace trinco::program
