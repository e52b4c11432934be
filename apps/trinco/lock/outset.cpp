#include "apps/trinco/lock/outset.hpp"

#include <utility>

#include "apps/trinco/lock/ending_signals.hpp"

namespace trinco::program {

std::variant<outset, problem> set_out(std::span<const std::string> words, guardian::commands many,
                                      const std::function<std::variant<store, problem>()>& open) {
    auto started = guardian::start(many);
    if (auto* const bad = std::get_if<problem>(&started)) return std::move(*bad);
    command_spec what;
    what.words.assign(words.begin(), words.end());
    std::variant<store, problem> opened;
    {
        const ending_signals_allowed meanwhile;
        opened = open();
    }
    if (auto* const bad = std::get_if<problem>(&opened)) return std::move(*bad);
    return outset{std::get<guardian>(std::move(started)), std::move(what),
                  std::get<store>(std::move(opened))};
}

}  // namespace trinco::program
