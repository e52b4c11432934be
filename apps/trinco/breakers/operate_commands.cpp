// `trinco breakers trip|reset|force-open|disable|observe|resume|forget`.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/breakers/operator.hpp"
#include "apps/trinco/breakers/report_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/command_line/confirmation.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::control_request;
using trinco::detail::control_verb;

constexpr std::chrono::milliseconds longest_override = 24h * 30;

// How the verbs differ.
struct verb_words {
    control_verb verb;
    std::string_view lasting;  // help of --for; empty: it does not last
    bool may_create;
};
constexpr verb_words trip{control_verb::trip, "how long it is open; default: its open_for", true};
constexpr verb_words force_open{control_verb::force_open, "when it ends by itself; default 24h",
                                true};
constexpr verb_words disable{control_verb::disable, "when it ends by itself; default 24h", true};
constexpr verb_words observe{control_verb::observe, "when it ends by itself; default 24h", true};
constexpr verb_words reset{control_verb::reset, "", false};
constexpr verb_words resume{control_verb::resume, "", false};

class operate_command : public command {
public:
    explicit operate_command(const verb_words& words) : words_(words) {}

    void declare(arguments& to) override {
        to.positional("NAME", name_, "the breaker");
        to.text("--reason", reason_, "TEXT", "why, for everybody who looks: one line");
        if (!words_.lasting.empty()) {
            to.optional_duration("--for", lasts_, {1ms, longest_override}, words_.lasting);
        }
        if (words_.may_create) {
            to.flag("--create", may_create_, "also when no process has used the breaker yet");
        }
        to.output_option(format_);
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "NAME", where_);
    }

    int run(std::span<const std::string>) override {
        if (const auto bad = check_reason(reason_)) return complain(*bad);
        const auto opened = open_breakers(where_, {&name_, 1});
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const store& at = std::get<store>(opened);
        const auto read = read_report(at, name_);
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        const bool is_known = std::get<std::optional<report>>(read).has_value();
        if (!is_known && !may_create_ && !also_unknown(at)) {
            return complain(no_such_breaker(at, name_));
        }
        control_request what;
        what.breaker = name_;
        what.verb = words_.verb;
        what.reason = reason_;
        what.expires = lasts_.value_or(0ms);
        const auto done = operate(at, std::move(what));
        if (const auto* why = std::get_if<problem>(&done)) return complain(*why);
        return answer(at, std::get<detail::view>(done));
    }

protected:
    [[nodiscard]] const std::string& name() const { return name_; }
    [[nodiscard]] virtual bool also_unknown(const store&) const { return false; }

private:
    [[nodiscard]] int answer(const store& at, const detail::view& after) const {
        if (format_ == "name") return print(name_ + "\n");
        if (format_ == "table") return print(sentence_of(name_, after) + "\n");
        json_object all = json_head(at);
        all.add("name", name_);
        add_view(all, after);
        return print(all.text() + "\n");
    }

    verb_words words_;
    std::string name_;
    std::string reason_;
    std::optional<std::chrono::milliseconds> lasts_;
    bool may_create_ = false;
    std::string format_ = "table";
    store_flags where_;
};

// Takes away what nothing brings back, so it wants to be meant; and is the way out of a record that
// cannot be read.
class forget_command final : public operate_command {
public:
    forget_command() : operate_command({control_verb::forget, "", false}) {}

    void declare(arguments& to) override {
        operate_command::declare(to);
        to.optional_text("--confirm", confirmed_, "NAME",
                         "the breaker's name again, instead of the question");
    }

    int run(std::span<const std::string> words) override {
        const confirmation asked{"this closes the breaker " + detail::quoted(name()) +
                                     " and takes its totals, its override and what was set away",
                                 name(), false, confirmed_};
        if (const auto bad = not_confirmed(asked)) return complain(*bad);
        return operate_command::run(words);
    }

private:
    [[nodiscard]] bool also_unknown(const store& at) const override {
        return is_unreadable(at, name());
    }

    std::optional<std::string> confirmed_;
};

}  // namespace

std::unique_ptr<command> make_breakers_trip() {
    return std::make_unique<operate_command>(trip);
}
std::unique_ptr<command> make_breakers_reset() {
    return std::make_unique<operate_command>(reset);
}
std::unique_ptr<command> make_breakers_force_open() {
    return std::make_unique<operate_command>(force_open);
}
std::unique_ptr<command> make_breakers_disable() {
    return std::make_unique<operate_command>(disable);
}
std::unique_ptr<command> make_breakers_observe() {
    return std::make_unique<operate_command>(observe);
}
std::unique_ptr<command> make_breakers_resume() {
    return std::make_unique<operate_command>(resume);
}
std::unique_ptr<command> make_breakers_forget() {
    return std::make_unique<forget_command>();
}

}  // namespace trinco::program
