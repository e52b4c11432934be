#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <string>
#include <system_error>
#include <utility>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/demo/breaker_story.hpp"
#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/demo/interruption.hpp"
#include "apps/trinco/demo/programme.hpp"
#include "apps/trinco/demo/shared_store.hpp"
#include "apps/trinco/demo/summary.hpp"
#include "apps/trinco/demo/ticket_story.hpp"
#include "apps/trinco/demo/voice.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/settings_for.hpp"

namespace trinco::program::demo {
namespace {

constexpr int exit_claim_failed = 1;

constexpr std::array<act, 2> acts = {
    act{"tickets", "The last ticket", "Act 1. Sell the last ticket exactly once.", ticket_story},
    act{"breaker", "The dead gateway", "Act 2. Stop calling a payment gateway that has died.",
        breaker_story},
};

class demo_command final : public command {
public:
    void declare(arguments& to) override {
        static constexpr std::array<std::string_view, 3> which = {"all", "tickets", "breaker"};
        to.number("--seed", seed_, {0, UINT32_MAX}, "repeats think times and victims");
        to.choice("--only", only_, which, "one act instead of both");
        to.flag("--json", json_, "JSON lines; the last one is the result");
        to.flag("--plain", plain_, "lines instead of a live view");
        to.optional_text("--breakers", where_.breakers, "URL",
                         "act 2 alone, its breaker kept in this Redis, in a namespace of its own "
                         "that is removed at the end");
    }

    int run(std::span<const std::string>) override {
        const auto began = std::chrono::steady_clock::now();
        if (where_.breakers && only_ == "tickets") {
            return complain({exit_usage,
                             "act 1 is about locks, which Redis does not keep; "
                             "leave --only tickets or --breakers out"});
        }
        std::variant<settings, problem> loaded;
        if (where_.breakers) loaded = settings_for(where_, {needs::breakers});
        if (const auto* const why = std::get_if<problem>(&loaded)) return complain(*why);
        interruption end;
        programme what{{}, seed_};
        if (where_.breakers) {
            only_ = "breaker";
            auto found = find_shared_store(std::move(std::get<settings>(loaded)));
            if (const auto* const why = std::get_if<problem>(&found)) return complain(*why);
            what.breakers = std::move(std::get<shared_store>(found));
        }
        for (const act& one : acts) {
            if (only_ == "all" || only_ == one.name) what.acts.push_back(&one);
        }
        voice_settings speech;
        speech.as = json_ ? form::json : plain_ ? form::plain : form_for(STDOUT_FILENO);
        speech.colours = speech.as == form::live && wants_colours();
        speech.since = began;
        speech.on_deaf = [&](int error) {
            not_written_ = error;
            end.request(SIGPIPE);
        };
        const auto to = make_voice(speech);
        const programme_result seen = play(what, *to, end, began);
        if (seen.failure) return complain(*seen.failure);
        if (end.signal() == 0) {
            to->print(json_ ? summary_json(what, seen) : summary_text(what, seen, speech.colours));
        }
        return code_of(seen, end.signal());
    }

private:
    [[nodiscard]] int code_of(const programme_result& seen, int signal) const {
        if (signal == SIGPIPE) {
            if (not_written_ == EPIPE) return exit_output;
            return complain({exit_output, "standard output could not be written: " +
                                              std::generic_category().message(not_written_)});
        }
        if (signal != 0) {
            say(seen.nothing_left ? "interrupted; nothing is left behind"
                                  : "interrupted; something could not be removed");
            return exit_signal + signal;
        }
        return seen.held() ? exit_ok : exit_claim_failed;
    }

    std::uint32_t seed_ = 1;
    std::string only_ = "all";
    bool json_ = false;
    bool plain_ = false;
    store_flags where_;
    std::atomic<int> not_written_{0};
};

}  // namespace

std::unique_ptr<command> make_demo() {
    return std::make_unique<demo_command>();
}

}  // namespace trinco::program::demo
