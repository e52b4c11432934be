// `trinco breakers trip|reset|force-open|disable|observe|resume|forget`.
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/breakers/mirrored_word.hpp"
#include "apps/trinco/breakers/operator.hpp"
#include "apps/trinco/breakers/report_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/command_line/confirmation.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "core/quoted.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using trinco::detail::control_request;
using trinco::detail::control_verb;

constexpr std::chrono::milliseconds longest_override = 24h * 30;

// How the verbs differ.
struct verb_words {
    std::string_view doing;  // "trip", for what is said when it fails
    control_verb verb;
    std::string_view lasting;  // help of --for; empty: it does not last
    bool may_create;
    // Of a breaker as it is before: what is missing for the verb to have an effect; may be null.
    std::string_view (*lacks)(const report& before) = nullptr;
};
constexpr verb_words trip{"trip", control_verb::trip, "how long it is open; default: its open_for",
                          true};
constexpr verb_words force_open{"force open", control_verb::force_open,
                                "when it ends by itself; default 24h", true};
constexpr verb_words disable{"disable", control_verb::disable,
                             "when it ends by itself; default 24h", true};
constexpr verb_words observe{"observe", control_verb::observe,
                             "when it ends by itself; default 24h", true};
constexpr verb_words reset{"reset", control_verb::reset, "", false};

std::string_view lacks_an_override(const report& before) {
    return before.now.fleet.over == override_kind::none ? "had no override to end" : "";
}
constexpr verb_words resume{"resume", control_verb::resume, "", false, lacks_an_override};

std::string_view lacks_all(const report& before) {
    const detail::view& v = before.now.fleet;
    const bool is_fresh = v.state == breaker_state::closed && v.over == override_kind::none &&
                          !before.options_set && before.totals == counts{};
    return is_fresh ? "had nothing to forget" : "";
}
constexpr verb_words forget{"forget", control_verb::forget, "", false, lacks_all};

class operate_command : public command {
public:
    explicit operate_command(const verb_words& words) : words_(words) {}

    void declare(arguments& to) override {
        to.positional("NAME", name_, "the breaker");
        to.optional_text("--reason", reason_, "TEXT", "why, for everybody who looks: one line");
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
        if (const auto bad = check_given_reason()) return complain(*bad);
        // First, as another executable may be needed, which would ask again.
        const auto loaded = settings_for(where_, {needs::breakers});
        if (const auto* why = std::get_if<problem>(&loaded)) return complain(*why);
        const auto& with = std::get<settings>(loaded);
        if (const auto why = is_not_meant()) return complain(*why);
        const auto opened = open_breakers(with, {&name_, 1});
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const auto& in = std::get<breakers_place>(opened);
        const std::string action = std::string(words_.doing) + " the breaker " + name_;
        mirrored_word mirrored(with, name_);
        mirrored.before(in);
        if (const auto why = prepare(in, action)) return complain(*why);
        const std::string_view lack = lack_before(in, action);
        control_request what;
        what.breaker = name_;
        what.verb = words_.verb;
        what.reason = reason_.value_or("");
        what.expires = lasts_.value_or(0ms);
        const auto done = operate(in, what, action);
        if (const auto* why = std::get_if<problem>(&done)) return complain(*why);
        const auto& now = std::get<detail::view>(done);
        mirrored.after(in, what, now);
        return answer(in.at, now, lack);
    }

protected:
    [[nodiscard]] const std::string& name() const { return name_; }
    // Before anything is opened.
    [[nodiscard]] virtual std::optional<problem> is_not_meant() const { return std::nullopt; }
    // What has to be so before the store is asked; the problem: it is not.
    [[nodiscard]] virtual std::optional<problem> prepare(const breakers_place& in,
                                                         std::string_view action) const {
        if (may_create_) return std::nullopt;
        const auto read = read_report(in, name_, action);
        if (const auto* why = std::get_if<problem>(&read)) return *why;
        if (std::get<std::optional<report>>(read)) return std::nullopt;
        return no_such_breaker(in, name_);
    }

private:
    [[nodiscard]] std::optional<problem> check_given_reason() const {
        if (!reason_) return std::nullopt;
        if (reason_->find_first_not_of(' ') == std::string::npos) {
            return problem{exit_usage, "the reason is empty; say why, or leave --reason out"};
        }
        return check_reason(*reason_);
    }

    // What makes the verb one without effect; empty: nothing.
    [[nodiscard]] std::string_view lack_before(const breakers_place& in,
                                               std::string_view action) const {
        if (words_.lacks == nullptr) return {};
        const auto read = read_report(in, name_, action);
        const auto* const before = std::get_if<std::optional<report>>(&read);
        return before != nullptr && *before ? words_.lacks(**before) : std::string_view();
    }

    [[nodiscard]] int answer(const store& at, const detail::view& after,
                             std::string_view lack) const {
        if (format_ == "name") return print(name_ + "\n");
        if (format_ == "table") {
            const std::string first = lack.empty() ? "" : name_ + " " + std::string(lack) + ": ";
            return print(first + sentence_of(name_, after) + "\n");
        }
        return print(json_head(at).add_raw("breaker", json_of(name_, after).text()).text() + "\n");
    }

    verb_words words_;
    std::string name_;
    std::optional<std::string> reason_;
    std::optional<std::chrono::milliseconds> lasts_;
    bool may_create_ = false;
    std::string format_ = "table";
    store_flags where_;
};

// Takes away what nothing brings back, so it wants to be meant; and is the way out of a record that
// cannot be read.
class forget_command final : public operate_command {
public:
    forget_command() : operate_command(forget) {}

    void declare(arguments& to) override {
        operate_command::declare(to);
        to.optional_text("--confirm", confirmed_, "NAME",
                         "the breaker's name again, instead of the question");
        to.flag("--force", removes_others_,
                "also removes what is no breaker from under its keys in Redis, whatever it is");
    }

private:
    [[nodiscard]] std::optional<problem> is_not_meant() const override {
        const std::string breaker = detail::quoted(name());
        return not_confirmed(
            {removes_others_ ? "this closes the breaker " + breaker +
                                   ", takes all that is known of it away, and removes what is no "
                                   "breaker from under its keys, whatever it is"
                             : "this closes the breaker " + breaker +
                                   " and takes its totals, its override and what was set away",
             name(), false, confirmed_});
    }

    [[nodiscard]] std::optional<problem> prepare(const breakers_place& in,
                                                 std::string_view action) const override {
        if (removes_others_) {
            const auto removed = remove_others(in.with);
            if (const auto* const why = std::get_if<problem>(&removed)) return *why;
            if (std::get<std::size_t>(removed) > 0) return std::nullopt;
        }
        const auto read = read_report(in, name(), action);
        if (const auto* const why = std::get_if<problem>(&read)) return *why;
        if (std::get<std::optional<report>>(read)) return std::nullopt;
        // A damaged record is begun anew.
        if (unreadable(in.at, name()) == errc::unavailable) return std::nullopt;
        return no_such_breaker(in, name());
    }

    // How many keys.
    [[nodiscard]] std::variant<std::size_t, problem> remove_others(const settings& with) const {
        const server_store* const server = server_of(with.breakers_url);
        if (server == nullptr || server->remove_foreign == nullptr) return std::size_t{0};
        auto gone = server->remove_foreign(with, name());
        if (auto* const why = std::get_if<problem>(&gone)) return std::move(*why);
        const auto& keys = std::get<std::vector<std::string>>(gone);
        for (const std::string& key : keys) {
            say("removed the key " + key + ", which was no breaker's");
        }
        return keys.size();
    }

    std::optional<std::string> confirmed_;
    bool removes_others_ = false;
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
