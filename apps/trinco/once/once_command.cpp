#include "apps/trinco/once/once_command.hpp"

#include <cstdlib>
#include <utility>
#include <variant>

#include "apps/trinco/lock/ending_signals.hpp"
#include "apps/trinco/once/once_options.hpp"
#include "apps/trinco/once/once_runner.hpp"
#include "apps/trinco/once/output_tap.hpp"
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
    const auto planned = plan_of(options_, with.prefix, words.front());
    if (const auto* bad = std::get_if<problem>(&planned)) return complain(*bad);
    signal_desk desk;
    // Those of an outer lock say nothing about this one.
    for (const char* name : {"TRINCO_TOKEN", "TRINCO_LOCK"}) ::unsetenv(name);
    output_tap tap;
    if (!options_.no_output) {
        if (const auto bad = tap.open()) return complain(*bad);
    }
    auto started = guardian::start();
    if (const auto* bad = std::get_if<problem>(&started)) return complain(*bad);
    command_spec what;
    what.words.assign(words.begin(), words.end());
    std::variant<store, problem> opened;
    {
        const ending_signals_allowed meanwhile;
        opened = open_store(with, needs::locks);
    }
    if (const auto* bad = std::get_if<problem>(&opened)) return complain(*bad);
    run_once(options_, std::get<once_plan>(planned), std::get<store>(opened),
             std::get<guardian>(std::move(started)), options_.no_output ? nullptr : &tap, desk,
             std::move(what));
}

}  // namespace

std::unique_ptr<command> make_once_command() {
    return std::make_unique<once_command>();
}

}  // namespace trinco::program
