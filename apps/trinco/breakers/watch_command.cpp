// `trinco breakers watch`: the state of each breaker, and then every change of it.
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/breakers/breakers_commands.hpp"
#include "apps/trinco/breakers/report_words.hpp"
#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/breakers/view_words.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/utc_time.hpp"
#include "apps/trinco/watching/listening.hpp"
#include "apps/trinco/watching/waiting_room.hpp"

namespace trinco::program {
namespace {

using trinco::detail::notice;
using trinco::detail::view;

// Notices on their way from the store's thread to ours.
class mailbox {
public:
    explicit mailbox(std::shared_ptr<bell> door) : door_(std::move(door)) {}

    void put(const notice& n) {
        {
            const std::lock_guard hold(m_);
            all_.push_back(n);
        }
        door_->ring();
    }
    [[nodiscard]] std::vector<notice> take() {
        const std::lock_guard hold(m_);
        return std::exchange(all_, {});
    }

private:
    const std::shared_ptr<bell> door_;
    std::mutex m_;
    std::vector<notice> all_;
};

// What differs between two views of a breaker, as one word; empty: nothing that is worth a line.
// A probe that is granted or settled changes the view as well.
std::string_view difference(const view& before, const view& after) {
    if (before.over != after.over) return "override";
    if (before.over != override_kind::none && before.reason != after.reason) return "override";
    if (before.era != after.era) return "state";
    if (before.options_stamp != after.options_stamp) return "options";
    return "";
}

class watch_command final : public command {
public:
    void declare(arguments& to) override {
        to.positionals("NAME", names_, "only these; NAME* is all that begin so",
                       arguments::need::optional);
        to.output_option(format_);
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "NAME", where_);
    }

    int run(std::span<const std::string>) override {
        ending_wish end;
        const auto opened = open_breakers(where_, names_);
        if (const auto* why = std::get_if<problem>(&opened)) return complain(*why);
        const store& at = std::get<store>(opened);
        waiting_room room(end, waiting_room::reader::needed);
        const auto box = std::make_shared<mailbox>(room.door());
        const listening to_changes(at, [box](detail::lock_store*, detail::breaker_store* breakers) {
            return breakers->subscribe([box](const notice& n) { box->put(n); });
        });
        if (const int code = read_all(at); code != exit_ok) return code;
        while (true) {
            switch (room.wait(std::nullopt)) {
                case waiting_room::reason::signal: return exit_ok;
                case waiting_room::reason::unread: return exit_output;
                case waiting_room::reason::time:
                case waiting_room::reason::change: break;
            }
            for (const notice& n : box->take()) {
                if (const int code = hear(at, n); code != exit_ok) return code;
            }
        }
    }

private:
    [[nodiscard]] bool is_watched(const std::string& name) const {
        if (names_.empty()) return true;
        for (const std::string& word : names_) {
            const bool fits = word.ends_with('*')
                                  ? name.starts_with(word.substr(0, word.size() - 1))
                                  : name == word;
            if (fits) return true;
        }
        return false;
    }

    // All there is: at the beginning, and when changes were missed.
    int read_all(const store& at) {
        const auto read = read_reports(at, names_);
        if (const auto* why = std::get_if<problem>(&read)) return complain(*why);
        for (const report& r : std::get<std::vector<report>>(read)) {
            if (const int code = tell(r.breaker, r.now.fleet); code != exit_ok) return code;
        }
        return exit_ok;
    }

    int hear(const store& at, const notice& n) {
        switch (n.kind) {
            case notice::kind_t::changed:
                return is_watched(n.breaker) ? tell(n.breaker, n.fleet) : exit_ok;
            case notice::kind_t::flush: return exit_ok;  // a question to those who count
            case notice::kind_t::gap:
            case notice::kind_t::new_server: break;
        }
        return read_all(at);
    }

    int tell(const std::string& name, const view& v) {
        const auto known = known_.find(name);
        std::string_view what = "begin";
        if (known != known_.end()) {
            if (!v.newer_than(known->second)) return exit_ok;
            what = difference(known->second, v);
        }
        known_[name] = v;
        if (what.empty()) return exit_ok;
        if (format_ == "name") return print(name + "\n");
        if (format_ == "json") return print(json(name, v, what));
        const std::string of = what == "options" ? "other options govern; " : "";
        return print(utc_now() + "  " + of + sentence_of(name, v) + "\n");
    }

    static std::string json(const std::string& name, const view& v, std::string_view what) {
        json_object all;
        all.add("schema", 1).add("at", utc_now()).add("change", what).add("name", name);
        add_view(all, v);
        return all.text() + "\n";
    }

    std::vector<std::string> names_;
    std::string format_ = "table";
    store_flags where_;
    std::map<std::string, view> known_;
};

}  // namespace

std::unique_ptr<command> make_breakers_watch() {
    return std::make_unique<watch_command>();
}

}  // namespace trinco::program
