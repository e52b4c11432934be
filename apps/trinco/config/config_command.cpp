#include "apps/trinco/config/config_command.hpp"

#include <optional>
#include <string>

#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/json.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/table.hpp"
#include "trinco/store.hpp"
#if TRINCO_LOCAL
#include "store/local/local_machine.hpp"
#endif

namespace trinco::program {
namespace {

// Where "local:" is kept, which depends on the user; nothing for every other value, and where the
// user has no home. Makes no folder.
std::optional<std::string> file_of(const setting& one) {
    const bool is_store = one.key == "locks.store" || one.key == "breakers.store";
    if (!is_store || one.value != "local:") return std::nullopt;
#if TRINCO_LOCAL
    try {
        return detail::default_local_name().string();
    } catch (const open_error&) {
        return std::nullopt;
    }
#else
    return std::nullopt;
#endif
}

std::string as_table(const settings& with) {
    table rows({"KEY", "VALUE", "SOURCE"});
    for (const setting& one : with.all) {
        const auto file = file_of(one);
        rows.row({one.key, one.value + (file ? " (" + *file + ")" : ""), one.source});
    }
    return rows.text();
}

std::string as_json(const settings& with) {
    json_array rows;
    for (const setting& one : with.all) {
        json_object row;
        row.add("key", one.key).add("value", one.value).add("source", one.source);
        if (const auto file = file_of(one)) row.add("file", *file);
        rows.add_raw(row.text());
    }
    return json_object().add("schema", 1).add_raw("settings", rows.text()).text() + "\n";
}

std::string as_names(const settings& with) {
    std::string names;
    for (const setting& one : with.all) names += one.key + "\n";
    return names;
}

// Says what is wrong with the policies, as 'trinco call' would.
bool are_policies_sound(const settings& with) {
    for (const policy_problem& wrong : with.policy_problems) say(wrong.sentence);
    bool are_sound = with.policy_problems.empty();
    for (const auto& [breaker, entries] : with.policies) {
        const auto rules = call_flags().rules(entries);
        const auto* const wrong = std::get_if<problem>(&rules);
        if (wrong == nullptr) continue;
        say(wrong->sentence);
        are_sound = false;
    }
    return are_sound;
}

class config_show final : public command {
public:
    void declare(arguments& to) override {
        to.output_option(format_);
        to.store_options(flags_, arguments::stores::both);
    }
    int run(std::span<const std::string>) override {
        const auto loaded = load_settings(flags_);
        if (const auto* const wrong = std::get_if<problem>(&loaded)) return complain(*wrong);
        const auto& with = std::get<settings>(loaded);
        for (const std::string& warning : with.warnings) say(warning);
        if (!are_policies_sound(with)) return exit_usage;
        if (format_ == "json") return print(as_json(with));
        return print(format_ == "name" ? as_names(with) : as_table(with));
    }

private:
    std::string format_ = "table";
    store_flags flags_;
};

}  // namespace

std::unique_ptr<command> make_config_show() {
    return std::make_unique<config_show>();
}

}  // namespace trinco::program
