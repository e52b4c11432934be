#include "apps/trinco/elect/elect_command.hpp"

#include <cstdlib>
#include <utility>
#include <variant>

#include "apps/trinco/elect/elect_observe.hpp"
#include "apps/trinco/elect/elect_options.hpp"
#include "apps/trinco/elect/elect_run.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/lock/outset.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

class elect_command final : public command {
public:
    void declare(arguments& to) override { declare_elect_options(to, options_); }
    [[nodiscard]] bool only_looks() const override { return options_.observe; }
    int run(std::span<const std::string> words) override;

private:
    [[nodiscard]] int stand(const settings& with, std::span<const std::string> words) const;

    elect_options options_;
};

int elect_command::run(std::span<const std::string> words) {
    const auto loaded = settings_for(options_.as_lock.where, {needs::locks});
    if (const auto* bad = std::get_if<problem>(&loaded)) return complain(*bad);
    const auto& with = std::get<settings>(loaded);
    if (!options_.observe) return stand(with, words);
    const auto name = observed_name(options_, with.prefix);
    if (const auto* bad = std::get_if<problem>(&name)) return complain(*bad);
    if (const auto bad = check_lock_name_at(with.locks_url, std::get<std::string>(name))) {
        return complain({exit_usage, "no election of the store " +
                                         detail::shown_url(with.locks_url) +
                                         " is called so: " + *bad});
    }
    return observe_election(with, std::get<std::string>(name), options_.format);
}

int elect_command::stand(const settings& with, std::span<const std::string> words) const {
    const auto planned = plan_of(options_, with, words.front());
    if (const auto* bad = std::get_if<problem>(&planned)) return complain(*bad);
    signal_desk desk;
    // One of an outer lock says nothing about this one.
    ::unsetenv("TRINCO_TOKEN");
    auto begun =
        set_out(words, guardian::commands::several, [&] { return open_store(with, needs::locks); });
    if (const auto* bad = std::get_if<problem>(&begun)) return complain(*bad);
    auto& all = std::get<outset>(begun);
    run_while_leading(options_, std::get<lock_plan>(planned), all.at, std::move(all.over), desk,
                      all.what);
}

}  // namespace

std::unique_ptr<command> make_elect_command() {
    return std::make_unique<elect_command>();
}

}  // namespace trinco::program
