// `trinco locks watch`.
#include <chrono>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/lock_changes.hpp"
#include "apps/trinco/locks/lock_show.hpp"
#include "apps/trinco/locks/locks_commands.hpp"
#include "apps/trinco/locks/locks_scene.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/utc_time.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/watching/waiting_room.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

std::string line_of(const lock_change& change, const std::string& format) {
    if (format == "name") return change.name + "\n";
    if (format != "json") return utc_now() + "  " + change_words(change) + "\n";
    return json_object()
               .add("schema", 1)
               .add("at", utc_now())
               .add("change", event_word(change.kind))
               .add("name", change.name)
               .add_raw("entry", entry_json(change.what).text())
               .text() +
           "\n";
}

std::string store_line(bool is_away, const std::string& reason) {
    json_object o;
    o.add("schema", 1).add("at", utc_now()).add("change", is_away ? "store_lost" : "store_back");
    reason.empty() ? o.add_null("reason") : o.add("reason", reason);
    return o.add_null("name").add_null("entry").text() + "\n";
}

class locks_watch final : public command {
public:
    void declare(arguments& to) override {
        to.positional("NAME|PREFIX*", what_, what_is_meant, arguments::need::optional);
        to.duration("--every", every_, {10ms, 1h},
                    "how often to look; in between only a change of the named lock's holder is "
                    "noticed");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::locks);
        complete_locks(to, "NAME|PREFIX*", where_);
    }
    int run(std::span<const std::string>) override;

private:
    int follow(const locks_scene& in, ending_wish& end);
    int look(const locks_scene& in, ending_wish& end);
    int tell_store(const store& at, const problem* why);

    std::string what_;
    milliseconds every_ = 500ms;
    std::string format_ = "table";
    store_flags where_;
    lock_changes changes_;
    bool has_looked_ = false;
    bool is_away_ = false;  // the store, when it was asked last
};

// That the store does not answer any more, or does again: said once.
int locks_watch::tell_store(const store& at, const problem* why) {
    if ((why != nullptr) == is_away_) return exit_ok;
    is_away_ = !is_away_;
    const auto reason = is_away_ ? locks_reason(at, why->error) : std::string();
    const auto sentence = is_away_ ? "the store does not answer: " + reason +
                                         "; what changes meanwhile is told when it is back"
                                   : std::string("the store answers again");
    if (format_ == "json") return print(store_line(is_away_, reason));
    if (format_ == "table") return print(utc_now() + "  " + sentence + "\n");
    say(sentence);
    return exit_ok;
}

int locks_watch::look(const locks_scene& in, ending_wish& end) {
    const auto listed = list_locks(in.at, in.scope, [&end] { return end.signal() != 0; });
    if (end.signal() != 0) return exit_ok;
    const auto* const bad = std::get_if<problem>(&listed);
    if (bad != nullptr && (!has_looked_ || bad->code != exit_unavailable)) return complain(*bad);
    has_looked_ = true;
    if (const int failed = tell_store(in.at, bad); failed != exit_ok || bad != nullptr) {
        return failed;
    }
    std::string lines;
    for (const auto& change : changes_.look(std::get<std::vector<lock_row>>(listed))) {
        lines += line_of(change, format_);
    }
    return lines.empty() ? exit_ok : print(lines);
}

int locks_watch::follow(const locks_scene& in, ending_wish& end) {
    waiting_room room(end, waiting_room::reader::needed);
    const listening to_holder = ring_at_changes(in, room.door());
    for (;;) {
        if (const int failed = look(in, end); failed != exit_ok || end.signal() != 0) return failed;
        switch (room.wait(every_)) {
            case waiting_room::reason::signal: return exit_ok;
            case waiting_room::reason::unread: return exit_output;
            case waiting_room::reason::time:
            case waiting_room::reason::change: break;
        }
    }
}

int locks_watch::run(std::span<const std::string>) {
    ending_wish end;
    const auto scene = open_scene(where_, scope_of(what_));
    if (const auto* const bad = std::get_if<problem>(&scene)) return complain(*bad);
    return follow(std::get<locks_scene>(scene), end);
}

}  // namespace

std::unique_ptr<command> make_locks_watch() {
    return std::make_unique<locks_watch>();
}

}  // namespace trinco::program
