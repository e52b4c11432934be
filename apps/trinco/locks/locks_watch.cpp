// `trinco locks watch`.
#include <chrono>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/lock_changes.hpp"
#include "apps/trinco/locks/lock_show.hpp"
#include "apps/trinco/locks/locks_commands.hpp"
#include "apps/trinco/locks/locks_scene.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/utc_time.hpp"
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

    std::string what_;
    milliseconds every_ = 500ms;
    std::string format_ = "table";
    store_flags where_;
};

int locks_watch::follow(const locks_scene& in, ending_wish& end) {
    waiting_room room(end, waiting_room::reader::needed);
    const listening to_holder = ring_at_changes(in, room.door());
    lock_changes changes;
    for (;;) {
        const auto listed = list_locks(in.at, in.scope);
        if (const auto* const bad = std::get_if<problem>(&listed)) return complain(*bad);
        std::string lines;
        for (const auto& change : changes.look(std::get<std::vector<lock_row>>(listed))) {
            lines += line_of(change, format_);
        }
        if (!lines.empty()) {
            if (const int failed = print(lines); failed != exit_ok) return failed;
        }
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
