// `trinco locks break`.
#include "apps/trinco/breakers/operator.hpp"  // who_operates, check_reason
#include "apps/trinco/command_line/confirmation.hpp"
#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/lock_break.hpp"
#include "apps/trinco/locks/locks_commands.hpp"
#include "apps/trinco/locks/locks_scene.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/output/json.hpp"
#include "apps/trinco/output/print.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using how_t = broken_holder::how_t;

constexpr std::size_t shown = 256;

std::string owners_text(const lock_row& row) {
    const auto& first = row.holders.front();
    std::string text = owner_words(first, shown);
    if (row.holders.size() > 1) text += " and " + std::to_string(row.holders.size() - 1) + " more";
    return text + ", held" + age_words(first);
}

std::string outcome_text(const broken_holder& h, bool at_once) {
    const std::string owner = owner_words(h.what, shown);
    const std::string after = " after " + duration_words(h.after);
    switch (h.how) {
        case how_t::asked:
        case how_t::released: return "released by " + owner + after;
        case how_t::gone:
            return "free after " + duration_words(h.after) + ": " + owner +
                   " gave it back, or its session ended, which this store does not tell apart";
        case how_t::expired: return "free: the lease of " + owner + " ran out" + after;
        case how_t::deleted: break;
    }
    return (at_once ? "deleted at once: "
                    : "deleted: within its TTL, that is" + after + ", it was not released by ") +
           owner + (at_once ? " held it and" : ", which") + " may still work";
}

std::string result_json(const std::string& name, const std::vector<broken_holder>& all) {
    json_array holders;
    for (const auto& h : all) {
        json_object o;
        o.add("owner", h.what.info.empty() ? h.what.lease_label : h.what.info);
        if (h.what.token != 0) o.add("token", h.what.token);
        o.add("outcome", outcome_word(h.how)).add("after_ms", h.after.count());
        holders.add_raw(o.text());
    }
    return json_object()
               .add("schema", 1)
               .add("name", name)
               .add_raw("holders", holders.text())
               .text() +
           "\n";
}

class locks_break final : public command {
public:
    void declare(arguments& to) override {
        to.positional("NAME", name_, "the lock");
        to.text("--reason", order_.why, "TEXT", "why, for its holder; one line");
        to.flag("--force", order_.at_once, "deletes it at once, without asking its holder");
        to.optional_text("--confirm", confirmed_, "NAME",
                         "the lock's name again, instead of the question");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
        complete_locks(to, "NAME", where_);
    }
    int run(std::span<const std::string>) override;

private:
    int show(const std::vector<broken_holder>& all) const;

    std::string name_;
    break_order order_;
    std::optional<std::string> confirmed_;
    std::string format_ = "table";
    store_flags where_;
};

int locks_break::show(const std::vector<broken_holder>& all) const {
    if (format_ == "json") return print(result_json(name_, all));
    std::string lines;
    for (const auto& h : all) {
        lines += name_ + (format_ == "name" ? "" : ": " + outcome_text(h, order_.at_once)) + "\n";
        if (format_ == "name") break;
    }
    return print(lines);
}

int locks_break::run(std::span<const std::string>) {
    if (const auto bad = check_reason(order_.why)) return complain(*bad);
    order_.who = who_operates();
    const auto scene = open_scene(where_, {.beginning = name_, .whole_name = true});
    if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
    const auto& in = std::get<locks_scene>(scene);
    const auto listed = list_locks(in.at, in.scope);
    if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
    const auto& rows = std::get<std::vector<lock_row>>(listed);
    if (rows.empty() || rows.front().holders.empty()) {
        say("nobody holds the lock " + detail::quoted(name_, shown) + " in the store " +
            std::string(in.at.url()));
        return format_ == "json" ? show({}) : exit_ok;
    }
    const std::string does =
        order_.at_once ? "this deletes the holder of the lock " : "this takes the lock ";
    const std::string from = order_.at_once ? " at once, which may still work: " : " from ";
    const confirmation asked{does + detail::quoted(name_, shown) + from + owners_text(rows.front()),
                             name_, order_.at_once, confirmed_};
    if (const auto bad = not_confirmed(asked)) return complain(*bad);
    ending_wish end;
    const auto did = break_lock(in, rows.front(), order_, end);
    if (const auto* const bad = std::get_if<problem>(&did)) return complain(*bad);
    return show(std::get<std::vector<broken_holder>>(did));
}

}  // namespace

std::unique_ptr<command> make_locks_break() {
    return std::make_unique<locks_break>();
}

}  // namespace trinco::program
