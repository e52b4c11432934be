#include "apps/trinco/demo/rush.hpp"

#include <poll.h>
#include <signal.h>

#include <algorithm>
#include <map>
#include <random>
#include <sstream>
#include <utility>

#include "apps/trinco/demo/household.hpp"
#include "apps/trinco/demo/service.hpp"
#include "apps/trinco/demo/shop.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

enum class state : std::uint8_t { idle, waiting, selling, stopped, done };

struct service {
    cast process;
    state now = state::idle;
    ::pid_t wrapper = -1;
    std::uint64_t token = 0;  // of the sale under way
};

// A mishap under way.
struct victim {
    mishap* about;
    std::size_t service;
    ::pid_t wrapper;
    ::pid_t guardian;
    ::pid_t command;
    steady::time_point since;
    bool goes_on = false;  // was continued
};

// Signals what was stopped; nobody may be left stopped, however the play ends.
class stopped_ones {
public:
    stopped_ones() = default;
    stopped_ones(const stopped_ones&) = delete;
    stopped_ones& operator=(const stopped_ones&) = delete;
    ~stopped_ones() {
        for (const ::pid_t pid : pids_) ::kill(pid, SIGKILL);
    }
    void stop(::pid_t pid) {
        if (::kill(pid, SIGSTOP) == 0) pids_.push_back(pid);
    }
    void go_on(::pid_t pid) {
        if (std::erase(pids_, pid) > 0) ::kill(pid, SIGCONT);
    }

private:
    std::vector<::pid_t> pids_;
};

class rush {
public:
    rush(const stage& on, const std::string& folder, bool locked)
        : on_(on), folder_(on.scratch / folder), at_(folder_), locked_(locked), random_(on.seed) {}

    rush_outcome play() {
        outcome_.failure = begin();
        const auto began = steady::now();
        while (!outcome_.failure && !on_.over() && !all_silent()) {
            wait();
            for (std::size_t i = 0; i < services_.size(); ++i) {
                while (const auto line = services_[i].process.next_line()) hear(i, *line);
            }
            show();
        }
        outcome_.took = std::chrono::duration_cast<milliseconds>(steady::now() - began);
        count();
        return std::move(outcome_);
    }

private:
    std::optional<problem> begin() {
        if (const auto error = at_.open(rush_tickets)) {
            return problem{exit_unavailable,
                           "the demo's folder could not be written: " + error.message()};
        }
        if (locked_) choose_mishaps();
        services_.reserve(rush_services);
        for (int number = 1; number <= rush_services; ++number) {
            service_settings of{folder_, "service-" + std::to_string(number),
                                static_cast<std::uint32_t>(random_())};
            of.errors = on_.scratch / "errors";
            if (locked_) {
                of.locks = on_.locks_url;
                for (const mishap& one : outcome_.mishaps) of.parts.push_back({one.kind, one.at});
            }
            auto started = cast::start(service_role(of));
            if (auto* why = std::get_if<problem>(&started)) return std::move(*why);
            services_.push_back({std::move(std::get<cast>(started))});
        }
        return std::nullopt;
    }

    void choose_mishaps() {
        const auto between = [&](int low, int high) {
            return std::uniform_int_distribution<int>(low, high)(random_);
        };
        outcome_.mishaps = {
            {"killed", between(75, 85)}, {"paused", between(45, 60)}, {"frozen", between(15, 30)}};
    }

    [[nodiscard]] bool all_silent() const {
        return std::all_of(services_.begin(), services_.end(),
                           [](const service& one) { return one.process.silent(); });
    }

    void wait() const {
        std::vector<::pollfd> all = {{on_.interruption, POLLIN, 0}};
        for (const service& one : services_) {
            if (!one.process.silent()) all.push_back({one.process.descriptor(), POLLIN, 0});
        }
        ::poll(all.data(), all.size(), static_cast<int>(on_.moment().count()));
    }

    void hear(std::size_t from, const std::string& line) {
        service& who = services_[from];
        std::istringstream words(line);
        std::string word;
        words >> word;
        if (word == "starts") {
            words >> who.wrapper;
            who.now = state::waiting;
        } else if (word == "reads") {
            int left = 0;
            ::pid_t pid = -1;
            who.token = 0;
            words >> left >> pid >> who.token;
            who.now = state::selling;
            if (locked_) next_holds(from, who.token);
        } else if (word == "part") {
            std::string kind;
            ::pid_t pid = -1;
            words >> kind >> pid;
            happen(kind, from, pid);
        } else if (word == "sold") {
            ++sold_;
            who.now = state::idle;
            late_write(from, false);
        } else if (word == "refused") {
            late_write(from, true);
        } else if (word == "sold-out") {
            who.now = state::done;
        } else if (word == "ends") {
            int code = 0;
            words >> code;
            ends(from, code);
        }
    }

    void happen(const std::string& kind, std::size_t to, ::pid_t command) {
        const auto about = std::find_if(outcome_.mishaps.begin(), outcome_.mishaps.end(),
                                        [&](const mishap& one) { return one.kind == kind; });
        if (about == outcome_.mishaps.end() || victim_) return;
        service& who = services_[to];
        const ::pid_t guardian = parent_of(command);
        // Nobody but the processes of this very sale gets a signal.
        if (who.wrapper <= 1 || guardian <= 1 || parent_of(guardian) != who.wrapper) return;
        about->happened = true;
        about->token = who.token;
        victim_ = {&*about, to, who.wrapper, guardian, command, steady::now()};
        const std::string name = "Service " + std::to_string(to + 1);
        if (kind == "killed") {
            ::kill(who.wrapper, SIGKILL);
            tell_mishap(kind, name + " holds the lock; its trinco lock gets kill -9.");
        } else if (kind == "paused") {
            stopped_.stop(who.wrapper);
            who.now = state::stopped;
            tell_mishap(kind, name + " holds the lock; its trinco lock is paused (SIGSTOP).");
        } else {
            stopped_.stop(who.wrapper);
            stopped_.stop(guardian);
            stopped_.stop(command);
            who.now = state::stopped;
            tell_mishap(kind, name + " and all around it freeze, as a paused machine does.");
        }
    }

    void tell_mishap(std::string_view event, const std::string& sentence) {
        const mishap& about = *victim_->about;
        json_object figures;
        figures.add("at", about.at).add("token", about.token).add("service", victim_->service + 1);
        on_.to.tell(event, sentence, figures);
    }

    // Another one holds the lock now.
    void next_holds(std::size_t who, std::uint64_t token) {
        if (!victim_ || victim_->goes_on || is_victim(who)) return;
        victim_->goes_on = true;
        mishap& about = *victim_->about;
        about.next_token = token;
        about.handed_on = std::chrono::duration_cast<milliseconds>(steady::now() - victim_->since);
        about.command_ended = parent_of(victim_->command) != victim_->guardian;
        const std::string after = std::to_string(about.handed_on->count()) + " ms";
        tell_mishap("handed_on",
                    "Service " + std::to_string(who + 1) + " has the lock " + after + " later.");
        if (about.kind == "paused") stopped_.go_on(victim_->wrapper);
        if (about.kind == "frozen") stopped_.go_on(victim_->command);
        leave_victim();
    }

    // A service goes on selling with other processes.
    [[nodiscard]] bool is_victim(std::size_t who) const {
        return services_[who].wrapper == victim_->wrapper;
    }

    // Once the next one holds and the victim's process has ended, in whichever order.
    void leave_victim() {
        if (victim_->goes_on && victim_->about->exit_code) victim_.reset();
    }

    void late_write(std::size_t who, bool refused) {
        if (!victim_ || !is_victim(who) || !victim_->goes_on) return;
        mishap& about = *victim_->about;
        (refused ? about.refused : about.wrote_after) = true;
        if (refused) {
            tell_mishap("refused",
                        "It wakes and writes with its old token: the ledger refuses it.");
        }
        wake_all();
    }

    void wake_all() {
        for (const ::pid_t pid : {victim_->command, victim_->guardian, victim_->wrapper}) {
            stopped_.go_on(pid);
        }
    }

    void ends(std::size_t who, int code) {
        if (services_[who].now != state::done) services_[who].now = state::idle;
        if (!victim_ || !is_victim(who)) return;
        victim_->about->exit_code = code;
        if (code == exit_lost) {
            tell_mishap("lost", "Its trinco lock goes on, sees the loss, and ends with 76.");
        }
        leave_victim();
    }

    void show() {
        std::map<state, int> number;
        std::vector<cell> cells;
        for (std::size_t i = 0; i < services_.size(); ++i) {
            ++number[services_[i].now];
            cells.push_back(cell_of(i));
        }
        std::vector<view_row> rows;
        const int left = std::max(at_.left(), 0);
        rows.push_back({.label = "lock",
                        .cells = {{locked_ ? "trinco lock tickets --ttl 2s -- sell" : "none",
                                   locked_ ? tone::good : tone::bad}}});
        rows.push_back({.label = "stock",
                        .filled = static_cast<double>(left) / rush_tickets,
                        .cells = {{std::to_string(left) + " left of 100"}}});
        const bool over = sold_ > rush_tickets;
        rows.push_back(
            {.label = "receipts",
             .filled = static_cast<double>(sold_) / rush_tickets,
             .bar = over ? tone::bad : tone::good,
             .cells = {{std::to_string(sold_) + " sold", over ? tone::bad : tone::plain}}});
        rows.push_back({.label = "services", .cells = std::move(cells)});
        if (locked_) {
            const int holds = number[state::selling] + (victim_ && !victim_->goes_on ? 1 : 0);
            rows.push_back({.label = "queue",
                            .cells = {{std::to_string(holds) + " holds"},
                                      {std::to_string(number[state::waiting]) + " wait"},
                                      {"token " + std::to_string(last_token())}}});
        }
        on_.to.show(std::move(rows));
    }

    [[nodiscard]] cell cell_of(std::size_t i) const {
        const std::string number = std::to_string(i + 1);
        switch (services_[i].now) {
            case state::idle: return {number + " idle", tone::dim};
            case state::waiting: return {number + " wait", tone::plain};
            case state::selling: return {number + " sell", tone::good};
            case state::stopped: return {number + " STOP", tone::bad};
            case state::done: break;
        }
        return {number + " done", tone::dim};
    }

    [[nodiscard]] std::uint64_t last_token() const {
        std::uint64_t last = 0;
        for (const service& one : services_) last = std::max(last, one.token);
        return last;
    }

    void count() {
        std::map<int, int> sold;
        for (const shop::receipt& one : at_.receipts()) {
            ++outcome_.sold;
            ++sold[one.ticket];
        }
        for (const auto& [ticket, times] : sold) outcome_.sold_more_than_once += times > 1 ? 1 : 0;
        outcome_.left = at_.left();
        outcome_.tokens = at_.tokens();
        outcome_.tokens_increase =
            std::adjacent_find(outcome_.tokens.begin(), outcome_.tokens.end(),
                               std::greater_equal<>()) == outcome_.tokens.end();
    }

    const stage& on_;
    const std::filesystem::path folder_;
    const shop at_;
    const bool locked_;
    std::mt19937 random_;
    std::vector<service> services_;
    stopped_ones stopped_;
    std::optional<victim> victim_;
    int sold_ = 0;
    rush_outcome outcome_;
};

}  // namespace

rush_outcome play_rush_without_lock(const stage& on) {
    on.to.tell("scene", "8 services sell 100 tickets from a file. No lock.");
    rush_outcome seen = rush(on, "rush-open", false).play();
    if (on.interrupted()) return seen;
    on.to.tell("oversold", "Sold " + std::to_string(seen.sold) + " of 100; " +
                               std::to_string(seen.sold_more_than_once) +
                               " tickets were sold more than once.");
    on.let_read(1s);
    return seen;
}

rush_outcome play_rush_with_lock(const stage& on) {
    on.to.tell("scene", "The same, each sale under: trinco lock tickets --ttl 2s -- sell");
    rush_outcome seen = rush(on, "rush-locked", true).play();
    if (on.interrupted()) return seen;
    on.to.tell("sold", "Sold " + std::to_string(seen.sold) + " of 100 in " +
                           std::to_string(seen.took.count() / 1000) + " s.");
    return seen;
}

}  // namespace trinco::program::demo
