// `trinco records ls` and `trinco records show`.
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/records/record_list.hpp"
#include "apps/trinco/records/records_commands.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

std::string nothing_recorded(const records_scene& in) {
    const auto& scope = in.scope;
    const std::string where = " in the store " + std::string(in.at.url());
    if (scope.whole_key) {
        return "nothing is recorded under the key " + detail::quoted(scope.beginning, 256) + where;
    }
    return "nothing is recorded" +
           (scope.beginning.empty()
                ? ""
                : " under keys that begin with " + detail::quoted(scope.beginning, 256)) +
           where;
}

std::string records_json(const std::vector<record_row>& rows) {
    json_array all;
    for (const auto& row : rows) all.add_raw(record_json(row).text());
    return json_object().add("schema", 1).add_raw("records", all.text()).text() + "\n";
}

class records_ls final : public command {
public:
    void declare(arguments& to) override {
        to.positional("KEY|PREFIX*", what_,
                      "that key, or with '*' or '/' at its end what the keys begin with; all "
                      "without",
                      arguments::need::optional);
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
    }
    int run(std::span<const std::string>) override {
        const auto scene = open_records(where_, records_of(what_));
        if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
        const auto& in = std::get<records_scene>(scene);
        const auto listed = list_records(in);
        if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
        const auto& rows = std::get<std::vector<record_row>>(listed);
        if (format_ == "json") return print(records_json(rows));
        if (format_ == "name") {
            std::string names;
            for (const auto& row : rows) names += row.key + "\n";
            return print(names);
        }
        if (rows.empty()) say(nothing_recorded(in));
        return print(records_table(rows));
    }

private:
    std::string what_;
    std::string format_ = "table";
    store_flags where_;
};

class records_show final : public command {
public:
    void declare(arguments& to) override {
        to.positional("KEY", key_, "the key");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
    }
    int run(std::span<const std::string>) override {
        const auto scene = open_records(where_, {.beginning = key_, .whole_key = true});
        if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
        const auto& in = std::get<records_scene>(scene);
        const auto listed = list_records(in);
        if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
        const auto& rows = std::get<std::vector<record_row>>(listed);
        if (format_ == "json") {
            const auto found = rows.empty() ? json_object().add("key", key_).add("state", "absent")
                                            : record_json(rows.front());
            const int printed =
                print(json_object().add("schema", 1).add_raw("record", found.text()).text() + "\n");
            return rows.empty() && printed == exit_ok ? exit_nothing : printed;
        }
        if (rows.empty()) {
            if (format_ == "table") say(nothing_recorded(in));
            return exit_nothing;
        }
        return print(format_ == "name" ? key_ + "\n" : record_table(rows.front()));
    }

private:
    std::string key_;
    std::string format_ = "table";
    store_flags where_;
};

}  // namespace

std::unique_ptr<command> make_records_ls() {
    return std::make_unique<records_ls>();
}

std::unique_ptr<command> make_records_show() {
    return std::make_unique<records_show>();
}

}  // namespace trinco::program
