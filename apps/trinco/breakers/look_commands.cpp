// `trinco breakers ls` and `show`.
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/breakers/measured.hpp"
#include "apps/trinco/breakers/report_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program {
namespace {

class ls_command final : public command {
public:
    void declare(arguments& to) override {
        to.positionals("NAME", names_, "only these; NAME* is all that begin so",
                       arguments::need::optional);
        to.output_option(format_);
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "NAME", where_);
    }

    int run(std::span<const std::string>) override {
        const auto opened = open_breakers(where_, names_);
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const auto& in = std::get<breakers_place>(opened);
        const store& at = in.at;
        const auto read = read_reports(in, names_, "list breakers");
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        const auto& all = std::get<std::vector<report>>(read);
        for (const std::string& name : names_) {
            if (!name.ends_with('*') && !contains(all, name)) {
                return complain(no_such_breaker(in, name));
            }
        }
        if (format_ == "json") return print(json(at, all));
        if (format_ == "name") return print(names(all));
        if (all.empty()) {
            say("the store " + std::string(at.url()) + " has no " +
                (names_.empty() ? "breakers" : "such breakers") + " in the namespace " +
                std::string(at.name_space()));
        }
        const auto size = size_of_terminal(STDOUT_FILENO);
        return print(table_of(all, size ? std::optional(size->columns) : std::nullopt));
    }

private:
    static bool contains(const std::vector<report>& all, const std::string& name) {
        for (const report& r : all) {
            if (r.breaker == name) return true;
        }
        return false;
    }

    static std::string json(const store& at, const std::vector<report>& all) {
        json_array breakers;
        for (const report& r : all) breakers.add_raw(json_of(r).text());
        return json_head(at).add_raw("breakers", breakers.text()).text() + "\n";
    }

    static std::string names(const std::vector<report>& all) {
        std::string text;
        for (const report& r : all) text += r.breaker + "\n";
        return text;
    }

    std::vector<std::string> names_;
    std::string format_ = "table";
    store_flags where_;
};

class show_command final : public command {
public:
    void declare(arguments& to) override {
        to.positional("NAME", name_, "the breaker");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "NAME", where_);
    }

    int run(std::span<const std::string>) override {
        const auto opened = open_breakers(where_, {&name_, 1});
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const auto& in = std::get<breakers_place>(opened);
        const auto read = read_report(in, name_, "show the breaker " + name_);
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        const auto& found = std::get<std::optional<report>>(read);
        if (!found) return complain(no_such_breaker(in, name_));
        if (format_ == "name") return print(found->breaker + "\n");
        const measured_reads reads = measure_reads(in.at, name_);
        if (format_ == "table") return print(page_of(*found) + text_of(reads));
        json_object breaker = full_json_of(*found);
        breaker.add_raw("measured", json_text_of(reads));
        return print(json_head(in.at).add_raw("breaker", breaker.text()).text() + "\n");
    }

private:
    std::string name_;
    std::string format_ = "table";
    store_flags where_;
};

}  // namespace

std::unique_ptr<command> make_breakers_ls() {
    return std::make_unique<ls_command>();
}

std::unique_ptr<command> make_breakers_show() {
    return std::make_unique<show_command>();
}

}  // namespace trinco::program
