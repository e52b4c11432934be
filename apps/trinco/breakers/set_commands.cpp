// `trinco breakers set` and `unset`.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/breakers/mirrored_word.hpp"
#include "apps/trinco/breakers/operator.hpp"
#include "apps/trinco/breakers/option_words.hpp"
#include "apps/trinco/breakers/report_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::control_request;
using trinco::detail::control_verb;
using trinco::detail::option_row;

constexpr std::chrono::milliseconds longest = 24h * 30;  // also the default

// What a set changes: the options that it names, over those that govern.
struct changes {
    breaker_options after;
    std::vector<const option_row*> named;
};

std::optional<std::string> add_pair(const std::string& text, changes& to) {
    const auto pair = split_pair(text);
    if (!pair) {
        return detail::quoted(text) + " is no option; write KEY=VALUE, as in window=20s";
    }
    if (auto bad = assign_option(pair->key, pair->value, to.after)) return bad;
    const option_row* const option = detail::find_option(pair->key);
    if (!is_shared_option(*option)) {
        return "the option " + std::string(pair->key) +
               " is each process's own and cannot be set for all";
    }
    if (std::find(to.named.begin(), to.named.end(), option) != to.named.end()) {
        return "the option " + std::string(pair->key) + " is given twice";
    }
    to.named.push_back(option);
    return std::nullopt;
}

std::variant<changes, problem> read_changes(const std::vector<std::string>& pairs,
                                            std::string_view governing) {
    changes all{options_of_text(governing), {}};
    for (const std::string& text : pairs) {
        if (auto bad = add_pair(text, all)) return problem{exit_usage, std::move(*bad)};
    }
    if (const auto bad = validate(all.after)) return problem{exit_usage, bad->message()};
    return all;
}

std::string wire_text(const changes& all) {
    std::string text;
    for (const option_row* option : all.named) {
        text += (text.empty() ? "" : " ") + on_wire(*option, all.after);
    }
    return text;
}

// What completion offers: the value is the user's to say.
std::vector<std::string> shared_keys() {
    std::vector<std::string> keys;
    for (const option_shown& o : shared_options({})) keys.push_back(std::string(o.key) + "=");
    return keys;
}

// What set and unset have in common: the breaker, the store, and the answer.
class options_command : public command {
public:
    void declare(arguments& to) override {
        to.positional("NAME", name_, "the breaker");
        declare_own(to);
        to.output_option(format_);
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "NAME", where_);
    }

    int run(std::span<const std::string>) override {
        const auto opened = open_breakers(where_, {&name_, 1});
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const auto& in = std::get<breakers_place>(opened);
        const std::string action = std::string(doing()) + " the breaker " + name_;
        mirrored_word mirrored(in.with, name_);
        mirrored.before(in);
        const auto read = read_report(in, name_, action);
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        const auto& before = std::get<std::optional<report>>(read);
        if (!before && !may_create()) return complain(no_such_breaker(in, name_));
        auto what = request(before ? before->options : std::string());
        if (const auto* why = std::get_if<problem>(&what)) return complain(*why);
        auto& sent = std::get<control_request>(what);
        sent.breaker = name_;
        const auto done = operate(in, sent, action);
        if (const auto* why = std::get_if<problem>(&done)) return complain(*why);
        mirrored.after(in, sent, std::get<detail::view>(done));
        return answer(in, before && before->options_set);
    }

protected:
    virtual void declare_own(arguments&) {}
    [[nodiscard]] virtual bool may_create() const { return false; }
    [[nodiscard]] virtual std::variant<control_request, problem> request(
        const std::string& governing) const = 0;
    // "set options of", for what is said when it fails.
    [[nodiscard]] virtual std::string_view doing() const = 0;
    // The first line of the answer, after the name. `were_set`: options were set before.
    [[nodiscard]] virtual std::string said(bool were_set) const = 0;

private:
    // What governs now is read again, because others may set options, too.
    [[nodiscard]] int answer(const breakers_place& in, bool were_set) const {
        const auto read = read_report(in, name_, "show what governs the breaker " + name_);
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        const auto& after = std::get<std::optional<report>>(read);
        if (!after) return complain(no_such_breaker(in, name_));
        if (format_ == "name") return print(name_ + "\n");
        if (format_ == "json") {
            return print(json_head(in.at).add_raw("breaker", full_json_of(*after).text()).text() +
                         "\n");
        }
        return print(name_ + ": " + said(were_set) + "\n" + page_of(*after));
    }

    std::string name_;
    std::string format_ = "table";
    store_flags where_;
};

class set_command final : public options_command {
private:
    void declare_own(arguments& to) override {
        to.positionals("KEY=VALUE", pairs_, "options, as 'trinco help options' lists them");
        to.complete_with("KEY=VALUE", shared_keys);
        to.optional_duration("--for", lasts_, {1ms, longest},
                             "how long they govern, and with them what was set before; default "
                             "30 days");
        to.flag("--create", may_create_, "also when no process has used the breaker yet");
    }
    [[nodiscard]] bool may_create() const override { return may_create_; }
    [[nodiscard]] std::string_view doing() const override { return "set options of"; }

    [[nodiscard]] std::variant<control_request, problem> request(
        const std::string& governing) const override {
        auto all = read_changes(pairs_, governing);
        if (auto* const why = std::get_if<problem>(&all)) return std::move(*why);
        control_request what;
        what.verb = control_verb::set;
        what.options = wire_text(std::get<changes>(all));
        what.expires = lasts_.value_or(0ms);
        return what;
    }

    [[nodiscard]] std::string said(bool were_set) const override {
        std::string text;
        for (const std::string& pair : pairs_) text += (text.empty() ? "" : " ") + pair;
        return text + " governs for " + duration_words(lasts_.value_or(longest)) +
               (were_set ? ", as does now what was set before" : "") +
               ", whatever processes are configured with; 'trinco breakers unset' ends that";
    }

    std::vector<std::string> pairs_;
    std::optional<std::chrono::milliseconds> lasts_;
    bool may_create_ = false;
};

class unset_command final : public options_command {
private:
    [[nodiscard]] std::string_view doing() const override { return "unset the options of"; }
    [[nodiscard]] std::variant<control_request, problem> request(
        const std::string&) const override {
        control_request what;
        what.verb = control_verb::unset;
        return what;
    }
    [[nodiscard]] std::string said(bool were_set) const override {
        return std::string(were_set ? "" : "nothing was set; ") +
               "what processes are configured with governs";
    }
};

}  // namespace

std::unique_ptr<command> make_breakers_set() {
    return std::make_unique<set_command>();
}
std::unique_ptr<command> make_breakers_unset() {
    return std::make_unique<unset_command>();
}

}  // namespace trinco::program
