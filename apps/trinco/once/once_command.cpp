#include "apps/trinco/once/once_command.hpp"

#include <cstdlib>
#include <utility>
#include <variant>

#include "apps/trinco/lock/outset.hpp"
#include "apps/trinco/once/once_options.hpp"
#include "apps/trinco/once/once_runner.hpp"
#include "apps/trinco/once/output_tap.hpp"
#include "apps/trinco/records/record_list.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/settings_for.hpp"

namespace trinco::program {
namespace {

class once_command final : public command {
public:
    void declare(arguments& to) override { declare_once_options(to, options_); }
    int run(std::span<const std::string> words) override;

private:
    once_options options_;
};

int once_command::run(std::span<const std::string> words) {
    const auto loaded = settings_for(options_.where, {needs::locks});
    if (const auto* bad = std::get_if<problem>(&loaded)) return complain(*bad);
    const auto& with = std::get<settings>(loaded);
    const auto planned = plan_of(options_, with, words.front());
    if (const auto* bad = std::get_if<problem>(&planned)) return complain(*bad);
    if (const auto bad = check_key_at(with, std::get<once_plan>(planned).key)) {
        return complain(*bad);
    }
    signal_desk desk;
    // Those of an outer lock say nothing about this one.
    for (const char* name : {"TRINCO_TOKEN", "TRINCO_LOCK"}) ::unsetenv(name);
    output_tap tap;
    if (!options_.no_output) {
        if (const auto bad = tap.open()) return complain(*bad);
    }
    auto begun =
        set_out(words, guardian::commands::one, [&] { return open_store(with, needs::locks); });
    if (const auto* bad = std::get_if<problem>(&begun)) return complain(*bad);
    auto& all = std::get<outset>(begun);
    run_once(options_, std::get<once_plan>(planned), all.at, std::move(all.over),
             options_.no_output ? nullptr : &tap, desk, std::move(all.what));
}

}  // namespace

std::unique_ptr<command> make_once_command() {
    return std::make_unique<once_command>();
}

}  // namespace trinco::program
