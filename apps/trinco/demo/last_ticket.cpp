#include "apps/trinco/demo/last_ticket.hpp"

#include <poll.h>

#include <array>
#include <sstream>
#include <utility>

#include "apps/trinco/demo/sale.hpp"
#include "apps/trinco/demo/service.hpp"
#include "apps/trinco/demo/shop.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

struct buyer {
    std::string name;
    cast process;
    std::string doing = "comes";
    tone colour = tone::plain;
    bool begun = false;  // has got the lock, if there is one
    bool bought = false;
    bool sold_out = false;
};

class counter_play {
public:
    counter_play(const stage& on, shop at, bool locked)
        : on_(on), at_(std::move(at)), locked_(locked) {}

    std::optional<problem> admit(const std::string& name, milliseconds think,
                                 const std::filesystem::path& folder) {
        std::vector<std::string> words = {"demo-sell",
                                          "--shop",
                                          folder.string(),
                                          "--seller",
                                          name,
                                          "--think",
                                          std::to_string(think.count()) + "ms"};
        if (locked_) {
            words = under_lock("last-ticket", words);
        } else {
            words.push_back("--on-go");
        }
        auto started = cast::start({.words = words,
                                    .environment = {{"TRINCO_LOCKS", on_.locks_url}},
                                    .errors = on_.scratch / "errors"});
        if (auto* why = std::get_if<problem>(&started)) return std::move(*why);
        buyers_.push_back({name, std::move(std::get<cast>(started))});
        return std::nullopt;
    }

    // Both read the stock at the same moment, as far as the machine can.
    void go() {
        for (buyer& one : buyers_) {
            while (!one.process.next_line(on_.moment()) && !one.process.silent() && !on_.over()) {
            }
        }
        for (buyer& one : buyers_) one.process.say("go");
    }

    void run() {
        show();
        while (!on_.over() && !all_silent()) {
            wait();
            for (buyer& one : buyers_) {
                while (const auto line = one.process.next_line()) hear(one, *line);
            }
            show();
        }
    }

    [[nodiscard]] int sold() const { return static_cast<int>(at_.receipts().size()); }
    [[nodiscard]] bool somebody_was_told() const {
        for (const buyer& one : buyers_) {
            if (one.sold_out) return true;
        }
        return false;
    }

private:
    [[nodiscard]] bool all_silent() const {
        for (const buyer& one : buyers_) {
            if (!one.process.silent()) return false;
        }
        return true;
    }

    void wait() const {
        std::vector<::pollfd> all = {{on_.interruption, POLLIN, 0}};
        for (const buyer& one : buyers_) {
            if (!one.process.silent()) all.push_back({one.process.descriptor(), POLLIN, 0});
        }
        ::poll(all.data(), all.size(), static_cast<int>(on_.moment().count()));
    }

    void hear(buyer& who, const std::string& line) {
        std::istringstream words(line);
        std::string word;
        std::string number;
        words >> word >> number;
        who.begun = true;
        if (word == "reads") {
            become(who, "reads: " + number + " left, thinks", tone::busy);
            on_.to.tell("reads", who.name + " reads: " + number + " left, and thinks");
        } else if (word == "sold") {
            who.bought = true;
            become(who, "has bought ticket " + number, tone::good);
            on_.to.tell("sold", who.name + " has bought ticket " + number);
        } else if (word == "sold-out") {
            who.sold_out = true;
            become(who, "is told: sold out", tone::plain);
            on_.to.tell("sold_out", who.name + " reads: 0 left, and is told: sold out");
        }
    }

    static void become(buyer& who, std::string doing, tone colour) {
        who.doing = std::move(doing);
        who.colour = colour;
    }

    void show() const {
        const int count = sold();
        std::vector<view_row> rows;
        rows.push_back({.label = "lock",
                        .cells = {{locked_ ? "trinco lock last-ticket -- sell" : "none",
                                   locked_ ? tone::good : tone::bad}}});
        for (const buyer& one : buyers_) {
            const bool waits = locked_ && !one.begun;
            rows.push_back({.label = one.name,
                            .cells = {{waits ? "waits for the lock" : one.doing, one.colour}}});
        }
        rows.push_back({.label = "receipts",
                        .cells = {{std::to_string(count) + " for 1 ticket",
                                   count > 1 ? tone::bad : tone::plain}}});
        on_.to.show(std::move(rows));
    }

    const stage& on_;
    const shop at_;
    const bool locked_;
    std::vector<buyer> buyers_;
};

constexpr std::array<const char*, 2> names = {"Ann", "Bob"};

struct one_play {
    int sold = 0;
    bool told_sold_out = false;
    std::optional<problem> failure = {};
};

one_play play(const stage& on, const std::string& folder, bool locked, milliseconds think) {
    const std::filesystem::path where = on.scratch / folder;
    const shop at(where);
    if (const auto error = at.open(1)) {
        return {.failure = problem{exit_unavailable,
                                   "the demo's folder could not be written: " + error.message()}};
    }
    counter_play here(on, at, locked);
    for (const char* name : names) {
        if (auto why = here.admit(name, think, where)) return {.failure = std::move(why)};
    }
    if (!locked) here.go();
    here.run();
    return {here.sold(), here.somebody_was_told(), {}};
}

}  // namespace

last_ticket_outcome play_last_ticket(const stage& on) {
    last_ticket_outcome all;
    on.to.tell("scene", "One ticket is left in a file, two buyers come. No lock.");
    // On a machine that is very busy one of them may come too late for the race.
    for (milliseconds think = 700ms; all.sold_without_lock < 2 && think < 3s && !on.over();
         think *= 2) {
        const one_play open = play(on, "open-" + std::to_string(think.count()), false, think);
        if (open.failure) return {.failure = open.failure};
        all.sold_without_lock = open.sold;
    }
    if (all.sold_without_lock > 1 && !on.interrupted()) {
        on.to.tell("sold_twice", "Sold twice: each had read the file before the other wrote it.");
    }
    if (!on.let_read(700ms)) return all;

    on.to.tell("scene", "The same, each under: trinco lock last-ticket -- sell");
    const one_play locked = play(on, "locked", true, 500ms);
    if (locked.failure) return {.failure = locked.failure};
    all.sold_with_lock = locked.sold;
    all.told_sold_out = locked.told_sold_out;
    if (locked.sold == 1 && !on.interrupted()) on.to.tell("sold_once", "Sold exactly once.");
    on.let_read(700ms);
    return all;
}

}  // namespace trinco::program::demo
