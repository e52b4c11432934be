// `trinco locks ls` and `trinco locks show`.
#include <unistd.h>

#include <chrono>
#include <optional>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/lock_show.hpp"
#include "apps/trinco/locks/locks_commands.hpp"
#include "apps/trinco/locks/locks_scene.hpp"
#include "apps/trinco/locks/look_often.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;

class locks_ls final : public command {
public:
    void declare(arguments& to) override {
        to.positional("NAME|PREFIX*", what_, what_is_meant, arguments::need::optional);
        to.optional_duration("--for", for_, {100ms, 1h},
                             "look again and again for so long, and show USED, how much of that "
                             "time it was held, and P99-WAIT, how long who used it had to wait");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
        complete_locks(to, "NAME|PREFIX*", where_);
    }
    int run(std::span<const std::string>) override {
        const auto scene = open_scene(where_, scope_of(what_));
        if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
        const auto& in = std::get<locks_scene>(scene);
        if (for_) return look_for_a_while(in);
        const auto listed = list_locks(in.at, in.scope);
        if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
        const auto& rows = std::get<std::vector<lock_row>>(listed);
        if (format_ == "json") return print(locks_json(rows));
        if (format_ == "name") return print(lock_names(rows));
        if (rows.empty()) say(nothing_there(in));
        return print(locks_table(rows));
    }

private:
    int look_for_a_while(const locks_scene& in) const {
        if (::isatty(STDERR_FILENO) == 1) say("looking for " + duration_words(*for_));
        const auto looked = look_often(in.at, in.scope, *for_);
        if (const auto* const bad = std::get_if<problem>(&looked)) return complain(*bad);
        const auto& seen = std::get<looked_often>(looked);
        const auto all = seen.use.locks();
        if (format_ == "json") return print(locks_json(seen));
        if (format_ == "name") {
            std::string names;
            for (const auto& one : all) names += one.name + "\n";
            return print(names);
        }
        if (all.empty()) say(nothing_there(in));
        return print(locks_table(seen));
    }

    std::string what_;
    std::optional<std::chrono::milliseconds> for_;
    std::string format_ = "table";
    store_flags where_;
};

class locks_show final : public command {
public:
    void declare(arguments& to) override {
        to.positional("NAME", name_, "the lock");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
        complete_locks(to, "NAME", where_);
    }
    int run(std::span<const std::string>) override {
        const auto scene = open_scene(where_, {.beginning = name_, .whole_name = true});
        if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
        const auto& in = std::get<locks_scene>(scene);
        auto listed = list_locks(in.at, in.scope);
        if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
        auto& rows = std::get<std::vector<lock_row>>(listed);
        const bool free = rows.empty();
        if (free) rows.push_back({name_, {}, {}, lists_waiters(in.at)});
        const int printed = show(rows.front());
        if (format_ == "table" && !rows.front().lists_waiters) {
            say("who waits for it is not known: this store keeps no list of them");
        }
        if (!free || printed != exit_ok) return printed;
        if (format_ == "table") say(nothing_there(in));
        return exit_nothing;
    }

private:
    [[nodiscard]] int show(const lock_row& row) const {
        if (format_ == "json") return print(lock_json(row));
        return print(format_ == "name" ? lock_owners(row) : lock_table(row));
    }

    std::string name_;
    std::string format_ = "table";
    store_flags where_;
};

}  // namespace

std::unique_ptr<command> make_locks_ls() {
    return std::make_unique<locks_ls>();
}

std::unique_ptr<command> make_locks_show() {
    return std::make_unique<locks_show>();
}

}  // namespace trinco::program
