#include "apps/trinco/demo/leader_story.hpp"

#include <poll.h>

#include <algorithm>
#include <functional>
#include <sstream>
#include <utility>
#include <variant>

#include "apps/trinco/demo/cast.hpp"
#include "apps/trinco/demo/etcd_nodes.hpp"
#include "apps/trinco/demo/gateway_server.hpp"
#include "apps/trinco/demo/lock_users.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::microseconds;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

constexpr const char* lock_name = "deploy";
constexpr auto for_reading = 700ms;
constexpr auto answer_limit = 10s;

struct user {
    std::string name;
    cast process;
    bool holds = false;
    bool done = false;
};

// When the probe was granted its lock, and how long it was not.
class grant_times {
public:
    explicit grant_times(cast probe) : probe_(std::move(probe)) {}

    void hear() {
        while (const auto line = probe_.next_line()) {
            std::istringstream words(*line);
            std::string word;
            std::int64_t at = 0;
            if (words >> word >> at && word == "granted") all_.emplace_back(at);
        }
    }
    // The first one after that moment may have been asked for, and decided, before it.
    [[nodiscard]] bool asked_and_granted_after(microseconds moment) const {
        return all_.size() > 1 && all_[all_.size() - 2] > moment;
    }
    // The longest time without one that ended after that moment.
    [[nodiscard]] std::optional<milliseconds> longest_after(microseconds moment) const {
        std::optional<milliseconds> longest;
        for (std::size_t i = 1; i < all_.size(); ++i) {
            if (all_[i] < moment) continue;
            const auto gap = std::chrono::round<milliseconds>(all_[i] - all_[i - 1]);
            longest = std::max(longest.value_or(0ms), gap);
        }
        return longest;
    }
    [[nodiscard]] std::size_t count() const noexcept { return all_.size(); }
    [[nodiscard]] int descriptor() const noexcept { return probe_.descriptor(); }

private:
    cast probe_;
    std::vector<microseconds> all_;
};

class cluster_play {
public:
    cluster_play(const stage& on, etcd_nodes nodes)
        : on_(on), nodes_(std::move(nodes)), url_(nodes_.url()) {}

    std::optional<problem> play(leader_outcome& to) {
        if (auto why = begin()) return why;
        if (!line_up()) return failure_;
        to.before = queue();
        on_.to.tell("queue", "Service 1 holds the lock deploy; 2, 3 and 4 wait, in this order.");
        if (!on_.let_read(for_reading) || !kill_leader(to)) return failure_;
        wait_until([&] { return !(to.after = queue()).empty(); });
        on_.to.tell("queue", to.after == to.before
                                 ? "The same holder, the same queue: nobody was granted it."
                                 : "The queue is another one.");
        to.early = held_at_once() > 1;
        if (on_.let_read(for_reading)) hand_on(to);
        to.no_grant = probe_->longest_after(killed_at_);
        to.grants = probe_->count();
        return failure_;
    }

private:
    std::optional<problem> begin() {
        auto probe = cast::start(grants_role(url_, on_.scratch / "errors"));
        if (auto* why = std::get_if<problem>(&probe)) return std::move(*why);
        probe_.emplace(std::move(std::get<cast>(probe)));
        return std::nullopt;
    }

    // Service 1 holds, the others queue up one after the other.
    bool line_up() {
        for (std::size_t i = 0; i <= leader_waiters; ++i) {
            const std::string name = "service-" + std::to_string(i + 1);
            auto started = cast::start(holder_role(lock_name, name, url_, on_.scratch / "errors"));
            if (auto* why = std::get_if<problem>(&started)) {
                failure_ = std::move(*why);
                return false;
            }
            users_.push_back({name, std::move(std::get<cast>(started))});
            const bool in_place = wait_until([&] { return queue().size() == i + 1; });
            if (!in_place) return false;
        }
        return wait_until([&] { return users_.front().holds && probe_->count() > 0; });
    }

    bool kill_leader(leader_outcome& to) {
        std::optional<std::size_t> leads;
        if (!wait_until([&] { return (leads = nodes_.leader()).has_value(); })) return false;
        json_object figures;
        figures.add("node", *leads + 1);
        nodes_.kill(*leads);
        killed_at_ = moment_now();
        to.killed = true;
        node_killed_ = leads;
        on_.to.tell("leader_killed",
                    "kill -9 of node " + std::to_string(*leads + 1) + ", which leads.", figures);
        const bool back = wait_until([&] { return probe_->asked_and_granted_after(killed_at_); });
        if (!back) return false;
        const auto gap = probe_->longest_after(killed_at_).value_or(0ms);
        on_.to.tell(
            "grants_again",
            "Two nodes go on. No lock was granted for " + std::to_string(gap.count()) + " ms.",
            json_object().add("no_grant_ms", gap.count()));
        return true;
    }

    // Each lets go when it has had it, and the next one in line gets it.
    void hand_on(leader_outcome& to) {
        for (std::size_t i = 0; i < users_.size() && !on_.over(); ++i) {
            user* const holder = wait_for_holder();
            if (holder == nullptr) return;
            to.granted.push_back(holder->name);
            to.tokens.push_back(token_);
            if (i > 0) {
                on_.to.tell("handed_on", "Service " + std::to_string(i + 1) + " has it, token " +
                                             std::to_string(token_) + ".");
            }
            to.early = to.early || held_at_once() > 1;
            holder->process.say("go");
            const bool well = wait_until([&] { return holder->process.ended().has_value(); }) &&
                              holder->process.ended() == exit_ok;
            if (i == 0) to.holder_kept = well;
            holder->holds = false;
            holder->done = true;
        }
    }

    user* wait_for_holder() {
        user* found = nullptr;
        wait_until([&] {
            for (user& one : users_) {
                if (one.holds) found = &one;
            }
            return found != nullptr;
        });
        return found;
    }

    [[nodiscard]] std::size_t held_at_once() const {
        return static_cast<std::size_t>(
            std::count_if(users_.begin(), users_.end(), [](const user& one) { return one.holds; }));
    }

    // Hears and shows meanwhile. False when the act is over first, or nothing comes.
    bool wait_until(const std::function<bool()>& is_so) {
        const auto end = steady::now() + answer_limit;
        while (!on_.over() && steady::now() < end) {
            hear();
            show();
            if (is_so()) return true;
            ::pollfd readable{on_.interruption, POLLIN, 0};
            ::poll(&readable, 1, 10);
        }
        return false;
    }

    void hear() {
        probe_->hear();
        for (user& one : users_) {
            while (const auto line = one.process.next_line()) {
                std::istringstream words(*line);
                std::string word;
                words >> word >> token_;
                if (word == "holds") one.holds = true;
            }
        }
    }

    // As `trinco locks show` lists it; empty while the store does not answer.
    [[nodiscard]] std::vector<std::string> queue() const {
        auto started = cast::start(
            {.words = {"locks", "show", lock_name, "-o", "name", "--config", "/dev/null"},
             .environment = {{"TRINCO_LOCKS", url_}},
             .errors = on_.scratch / "errors"});
        std::vector<std::string> all;
        auto* const look = std::get_if<cast>(&started);
        if (look == nullptr) return all;
        const auto end = steady::now() + answer_limit;
        while (!look->silent() && !on_.over() && steady::now() < end) {
            if (auto line = look->next_line(on_.moment())) all.push_back(std::move(*line));
        }
        return look->ended(1s) == exit_ok ? all : std::vector<std::string>();
    }

    void show() const {
        std::vector<cell> nodes;
        for (std::size_t i = 0; i < etcd_node_count; ++i) {
            const std::string number = std::to_string(i + 1);
            const bool killed = node_killed_ == i;
            nodes.push_back(
                {number + (killed ? " KILLED" : " runs"), killed ? tone::bad : tone::good});
        }
        std::vector<cell> services;
        for (const user& one : users_) {
            const auto number = one.name.substr(one.name.size() - 1);
            services.push_back({number + (one.done    ? " done"
                                          : one.holds ? " holds"
                                                      : " waits"),
                                one.holds  ? tone::good
                                : one.done ? tone::dim
                                           : tone::plain});
        }
        std::vector<view_row> rows;
        rows.push_back({.label = "etcd", .cells = std::move(nodes)});
        rows.push_back({.label = "lock", .cells = {{"trinco lock deploy -- ..."}}});
        rows.push_back({.label = "services", .cells = std::move(services)});
        rows.push_back({.label = "probe",
                        .cells = {{std::to_string(probe_->count()) + " grants of another lock"}}});
        on_.to.show(std::move(rows));
    }

    const stage& on_;
    etcd_nodes nodes_;
    const std::string url_;
    std::optional<grant_times> probe_;
    std::vector<user> users_;
    std::uint64_t token_ = 0;  // of who was granted it last
    std::optional<std::size_t> node_killed_;
    microseconds killed_at_{0};
    std::optional<problem> failure_;
};

std::string list(const std::vector<std::string>& names) {
    json_array all;
    for (const auto& name : names) all.add(name);
    return all.text();
}

}  // namespace

act_result judge_leader(const leader_outcome& seen) {
    act_result all;
    const std::size_t users = leader_waiters + 1;
    const bool all_queued = seen.before.size() == users;
    const bool rising = std::adjacent_find(seen.tokens.begin(), seen.tokens.end(),
                                           std::greater_equal<>()) == seen.tokens.end();
    const std::string gap =
        seen.no_grant ? std::to_string(seen.no_grant->count()) + " ms" : std::string("ever");
    all.claims.push_back(
        {"same_holder",
         seen.killed && all_queued && seen.before == seen.after && seen.holder_kept && !seen.early,
         "leader killed (kill -9): the same holder, nobody beside it"});
    all.claims.push_back({"same_order",
                          seen.killed && all_queued && seen.granted == seen.before && rising &&
                              seen.tokens.size() == users,
                          "the three waiters got it in their order, with higher tokens"});
    all.claims.push_back({"grants_again", seen.killed && seen.no_grant.has_value(),
                          "no lock could be granted for " + gap + ", then two nodes went on"});
    json_array tokens;
    for (const auto token : seen.tokens) tokens.add_raw(std::to_string(token));
    all.figures.add("nodes", etcd_node_count)
        .add_raw("queue_before", list(seen.before))
        .add_raw("queue_after", list(seen.after))
        .add_raw("granted", list(seen.granted))
        .add_raw("tokens", tokens.text());
    seen.no_grant ? all.figures.add("no_grant_ms", seen.no_grant->count())
                  : all.figures.add_null("no_grant_ms");
    all.figures.add("probe_grants", seen.grants);
    return all;
}

act_result leader_story(const stage& on) {
    act_result none;
    on.to.tell("scene", "Three nodes of etcd start on this machine.");
    auto started = etcd_nodes::start(on);
    if (auto* why = std::get_if<problem>(&started)) {
        if (!on.interrupted()) none.failure = std::move(*why);
        return none;
    }
    leader_outcome seen;
    cluster_play all(on, std::move(std::get<etcd_nodes>(started)));
    none.failure = all.play(seen);
    if (none.failure || on.interrupted()) return none;
    return judge_leader(seen);
}

}  // namespace trinco::program::demo
