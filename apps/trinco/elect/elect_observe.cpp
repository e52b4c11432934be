#include "apps/trinco/elect/elect_observe.hpp"

#include <chrono>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/json.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/output/utc_time.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/watching/listening.hpp"
#include "apps/trinco/watching/waiting_room.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::entry;

constexpr auto look_every = 3s;  // whether the store answers, which a watch does not tell
constexpr auto answer_within = 5s;
constexpr std::size_t value_shown = 256;

using leader_seen = std::optional<entry>;

// What the store's thread tells.
class told_leaders {
public:
    explicit told_leaders(std::shared_ptr<bell> door) : door_(std::move(door)) {}
    void add(leader_seen who) {
        const std::lock_guard hold(mutex_);
        all_.push_back(std::move(who));
        door_->ring();
    }
    [[nodiscard]] std::deque<leader_seen> take() {
        const std::lock_guard hold(mutex_);
        return std::exchange(all_, {});
    }

private:
    const std::shared_ptr<bell> door_;
    std::mutex mutex_;
    std::deque<leader_seen> all_;
};

enum class change : std::uint8_t { leader, store_lost, store_back };

std::string_view word_of(change what) {
    switch (what) {
        case change::leader: return "leader";
        case change::store_lost: return "store_lost";
        case change::store_back: break;
    }
    return "store_back";
}

class observer {
public:
    observer(const store& at, std::string name, std::string format, ending_wish& end)
        : at_(at), name_(std::move(name)), format_(std::move(format)), end_(end) {}

    int run();

private:
    struct answer {
        std::error_code error;
        leader_seen leader;
    };
    [[nodiscard]] answer ask() const;
    int look();
    int heard(leader_seen who);
    int say_leader();
    [[nodiscard]] std::string leader_line() const;
    [[nodiscard]] std::string json_line(change what, const std::string& reason) const;
    int store_line(change what, const std::string& reason) const;

    const store& at_;
    const std::string name_;
    const std::string format_;
    ending_wish& end_;
    std::optional<leader_seen> last_;  // that the watch has told
    bool is_said_ = true;              // of `last_`
    bool is_away_ = false;             // the store, when it was asked
};

// Two leaders may have the same value; the handle is of one.
bool is_same(const leader_seen& a, const leader_seen& b) {
    return a && b ? a->handle == b->handle && a->info == b->info : !a && !b;
}

observer::answer observer::ask() const {
    auto asked = ask_locks<detail::entries>(
        at_, answer_within,
        [this](detail::lock_store& locks, auto by, auto done) {
            return locks.list(name_, "", 1, by, std::move(done));
        },
        [this] { return end_.signal() != 0; });
    answer out{asked.error, std::nullopt};
    if (asked.value.name_is_hidden) out.error = errc::denied;
    for (auto& e : asked.value.rows) {
        if (e.name == name_ && e.holds) out.leader = std::move(e);
    }
    return out;
}

std::string observer::json_line(change what, const std::string& reason) const {
    json_object o;
    o.add("schema", 1).add("at", utc_now()).add("change", word_of(what)).add("election", name_);
    const bool is_known = what == change::leader && last_ && *last_;
    if (is_known) {
        json_object who;
        who.add("value", (*last_)->info);
        const auto token = (*last_)->token;
        token == 0 ? who.add_null("token") : who.add("token", token);
        o.add_raw("leader", who.text());
    } else {
        o.add_null("leader");
    }
    reason.empty() ? o.add_null("reason") : o.add("reason", reason);
    return o.text() + "\n";
}

std::string observer::leader_line() const {
    const auto& who = *last_;
    if (format_ == "name") return (who ? who->info : "") + "\n";
    if (format_ == "json") return json_line(change::leader, "");
    const std::string begin = utc_now() + "  " + name_;
    if (!who) return begin + " has no leader\n";
    return begin + " is led by " + detail::quoted(who->info, value_shown) +
           (who->token == 0 ? "" : ", token " + std::to_string(who->token)) + "\n";
}

// While the store does not answer a watch may tell what a member without a majority believes.
int observer::heard(leader_seen who) {
    if (last_ && is_same(*last_, who)) return exit_ok;
    last_ = std::move(who);
    is_said_ = false;
    return is_away_ ? exit_ok : say_leader();
}

int observer::say_leader() {
    is_said_ = true;
    return print(leader_line());
}

int observer::store_line(change what, const std::string& reason) const {
    const std::string sentence =
        what == change::store_lost
            ? "the store does not answer: " + reason + "; who leads is not known"
            : "the store answers again";
    if (format_ == "json") return print(json_line(what, reason));
    if (format_ == "table") return print(utc_now() + "  " + name_ + ": " + sentence + "\n");
    say(name_ + ": " + sentence);
    return exit_ok;
}

int observer::look() {
    const auto [error, leader] = ask();
    if (end_.signal() != 0) return exit_ok;
    if (error == errc::denied && !last_) {
        return complain(store_problem(at_, "look at the election", error));
    }
    if (static_cast<bool>(error) != is_away_) {
        is_away_ = !is_away_;
        if (is_away_) {
            is_said_ = false;
            return store_line(change::store_lost, locks_reason(at_, error));
        }
        const int printed = store_line(change::store_back, "");
        if (printed != exit_ok) return printed;
    }
    // What the watch told before an outage may be over: it is said again once the store agrees.
    const bool is_due = !is_away_ && !is_said_ && last_ && is_same(*last_, leader);
    return is_due ? say_leader() : exit_ok;
}

int observer::run() {
    const auto error = ask().error;
    if (end_.signal() != 0) return exit_ok;
    if (error) return complain(store_problem(at_, "be asked", error));
    waiting_room room(end_, waiting_room::reader::needed);
    const auto told = std::make_shared<told_leaders>(room.door());
    const listening to_store(at_, [told, name = name_](detail::lock_store* locks, void*) {
        return locks->observe(name, [told](leader_seen who) { told->add(std::move(who)); });
    });
    auto next_look = std::chrono::steady_clock::now() + look_every;
    for (;;) {
        const auto left = next_look - std::chrono::steady_clock::now();
        const auto why = room.wait(std::max(std::chrono::ceil<std::chrono::milliseconds>(left),
                                            std::chrono::milliseconds(0)));
        if (why == waiting_room::reason::signal) return exit_ok;
        if (why == waiting_room::reason::unread) return exit_output;
        for (auto& who : told->take()) {
            if (const int failed = heard(std::move(who)); failed != exit_ok) return failed;
        }
        if (std::chrono::steady_clock::now() < next_look) continue;
        if (const int failed = look(); failed != exit_ok || end_.signal() != 0) return failed;
        next_look = std::chrono::steady_clock::now() + look_every;
    }
}

}  // namespace

int observe_election(const settings& with, const std::string& name, const std::string& format) {
    ending_wish end;
    const auto opened = open_store(with, needs::locks);
    if (const auto* const bad = std::get_if<problem>(&opened)) return complain(*bad);
    return observer(std::get<store>(opened), name, format, end).run();
}

}  // namespace trinco::program
