#include "apps/trinco/demo/invoice_story.hpp"

#include <poll.h>
#include <signal.h>

#include <array>
#include <sstream>
#include <utility>
#include <variant>

#include "apps/trinco/demo/cast.hpp"
#include "apps/trinco/demo/invoice_worker.hpp"
#include "apps/trinco/demo/provider.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;
using way = invoice_worker::way;
using stand = invoice_worker::stand;

constexpr auto for_reading = 600ms;

// Runs workers one after the other, and shows what they do.
class office {
public:
    office(const stage& on, std::filesystem::path folder)
        : on_(on), folder_(std::move(folder)), at_(folder_) {}

    // A worker that is killed where it stands, and one that tries again.
    paid_invoice pay(const std::string& invoice, way by, stand killed) {
        paid_invoice all;
        by_ = by;
        invoice_ = invoice;
        if (!run(killed, all)) return all;
        on_.to.tell("killed", killed == stand::after
                                  ? "kill -9: it is charged, and nobody has recorded that."
                                  : "kill -9, before it has charged anything.");
        if (!on_.let_read(for_reading)) return all;
        const auto began = steady::now();
        all.finished = run(stand::nowhere, all);
        all.took = std::chrono::duration_cast<milliseconds>(steady::now() - began);
        all.charges = at_.charges(invoice);
        show("");
        return all;
    }

    // Somebody who asks again, when all is done.
    std::string ask_later() {
        paid_invoice all;
        run(stand::nowhere, all);
        show("");
        return all.receipt;
    }

    [[nodiscard]] std::size_t charges(const std::string& invoice) const {
        return at_.charges(invoice);
    }
    [[nodiscard]] std::optional<problem> failure() const { return failure_; }

private:
    // Until it stands still, and then kills it; otherwise until it has ended. Whether it went so.
    bool run(stand where, paid_invoice& all) {
        auto started = cast::start(
            worker_role({by_, where, invoice_, folder_, on_.locks_url, on_.scratch / "errors"}));
        if (auto* why = std::get_if<problem>(&started)) {
            failure_ = std::move(*why);
            return false;
        }
        auto& worker = std::get<cast>(started);
        doing_ = by_ == way::lock ? "waits for the lock" : "waits";
        colour_ = tone::plain;
        const bool is_second = where == stand::nowhere;
        while (!on_.over()) {
            show(by_ == way::lock ? "trinco lock invoice/42 -- charge" : "trinco::once");
            std::array<::pollfd, 2> fds{::pollfd{on_.interruption, POLLIN, 0},
                                        ::pollfd{worker.descriptor(), POLLIN, 0}};
            ::poll(fds.data(), fds.size(), static_cast<int>(on_.moment().count()));
            while (const auto line = worker.next_line()) {
                if (!hear(*line, is_second, all)) continue;
                worker.signal(SIGKILL);
                become("KILLED", tone::bad);
                show("");
                return worker.ended(5s).has_value();
            }
            if (worker.silent()) return is_second && worker.ended(5s) == exit_ok;
        }
        return false;
    }

    // Whether it stands still.
    bool hear(const std::string& line, bool is_second, paid_invoice& all) {
        std::istringstream words(line);
        std::string word;
        std::string what;
        words >> word >> what;
        if (word == "stands") return true;
        if (word == "charged") {
            (is_second ? all.second_run : all.killed_run) = what;
            become("has charged it, records that", tone::busy);
            on_.to.tell("charged", (is_second ? "The retry" : "A worker") +
                                       std::string(" has the provider charge invoice ") + invoice_ +
                                       ".");
        } else if (word == "asks") {
            all.asked = what;
            become("asks the provider", tone::busy);
            on_.to.tell("asks", "The retry asks the provider: run " + what.substr(0, 8) +
                                    ", was it charged?");
        } else if (word == "hears") {
            all.heard = what;
            on_.to.tell("hears", what == "done" ? "The provider: yes. So that is the result."
                                                : "The provider: no. So it runs, under that id.");
        } else if (word == "recorded" || word == "told") {
            all.receipt = what;
            become(word + " " + what, tone::good);
        } else if (word == "failed") {
            failure_ = problem{exit_unavailable, "a worker " + line};
        }
        return false;
    }

    void become(std::string doing, tone colour) {
        doing_ = std::move(doing);
        colour_ = colour;
    }

    void show(const std::string& by) {
        if (!by.empty()) shown_ = by;
        const auto count = at_.charges(invoice_);
        std::vector<view_row> rows;
        rows.push_back(
            {.label = "guard", .cells = {{shown_, by_ == way::lock ? tone::bad : tone::good}}});
        rows.push_back({.label = "worker", .cells = {{doing_, colour_}}});
        rows.push_back({.label = "provider",
                        .cells = {{"charges of invoice " + invoice_ + ": " + std::to_string(count),
                                   count > 1 ? tone::bad : tone::plain}}});
        on_.to.show(std::move(rows));
    }

    const stage& on_;
    const std::filesystem::path folder_;
    const provider at_;
    way by_ = way::lock;
    std::string invoice_;
    std::string doing_;
    std::string shown_;
    tone colour_ = tone::plain;
    std::optional<problem> failure_;
};

std::string times(std::size_t n) {
    return n == 1 ? "once" : n == 2 ? "twice" : std::to_string(n) + " times";
}

std::string json_of(const paid_invoice& one) {
    json_object o;
    o.add("charges", one.charges).add("asked_the_provider", !one.heard.empty());
    one.heard.empty() ? o.add_null("provider_said") : o.add("provider_said", one.heard);
    return o
        .add("same_run",
             !one.asked.empty() &&
                 one.asked == (one.second_run.empty() ? one.killed_run : one.second_run))
        .add("retry_ms", one.took.count())
        .text();
}

}  // namespace

act_result judge_invoices(const invoice_outcome& seen) {
    act_result all;
    const auto& lock = seen.by_lock;
    const auto& once = seen.by_once;
    const auto& before = seen.not_charged;
    all.claims.push_back({"lock_alone_charged_twice", lock.finished && lock.charges == 2,
                          "a lock alone: killed between charge and record, the retry charges " +
                              times(lock.charges)});
    all.claims.push_back({"once_charged_once",
                          once.finished && once.charges == 1 && once.heard == "done" &&
                              once.second_run.empty() && once.asked == once.killed_run &&
                              !once.receipt.empty(),
                          "once, which asks the provider: charged " + times(once.charges) +
                              ", recorded " + std::to_string(once.took.count()) + " ms later"});
    all.claims.push_back(
        {"run_again_under_its_id",
         before.finished && before.charges == 1 && before.heard == "not_done" &&
             before.second_run == before.asked && !before.asked.empty(),
         "killed before the charge: it runs again, and charges " + times(before.charges)});
    all.claims.push_back(
        {"told_what_was_recorded",
         !seen.asked_later.empty() && seen.asked_later == once.receipt && seen.charges_later == 1,
         "who asks again is given the receipt, and nothing is charged"});
    all.figures.add_raw("lock", json_of(lock))
        .add_raw("once", json_of(once))
        .add_raw("killed_before_the_charge", json_of(before))
        .add("charges_after_asking_again", seen.charges_later);
    return all;
}

act_result invoice_story(const stage& on) {
    act_result none;
    invoice_outcome seen;
    const auto folder = on.scratch / "office";
    std::error_code error;
    std::filesystem::create_directory(folder, error);
    if (error) {
        none.failure =
            problem{exit_unavailable, "the demo's folder could not be written: " + error.message()};
        return none;
    }
    office by_lock(on, folder);
    on.to.tell("scene", "Charge, then record, under: trinco lock invoice/42 -- charge");
    seen.by_lock = by_lock.pay("42", way::lock, stand::after);
    none.failure = by_lock.failure();
    if (none.failure || on.interrupted()) return none;
    if (seen.by_lock.charges > 1) {
        on.to.tell("charged_twice", "Charged twice: the lock was free, and nothing was recorded.");
    }
    if (!on.let_read(for_reading)) return none;

    office by_once(on, folder);
    on.to.tell("scene", "The same by trinco::once, with a function that asks the provider.");
    seen.by_once = by_once.pay("43", way::once, stand::after);
    if (seen.by_once.charges == 1 && !on.interrupted()) {
        on.to.tell("charged_once", "Charged once.");
    }
    if (!by_once.failure() && !on.over()) {
        seen.asked_later = by_once.ask_later();
        seen.charges_later = by_once.charges("43");
    }
    if (!by_once.failure() && on.let_read(for_reading)) {
        on.to.tell("scene", "Invoice 44: the worker dies before the charge.");
        seen.not_charged = by_once.pay("44", way::once, stand::before);
    }
    none.failure = by_once.failure();
    if (none.failure || on.interrupted()) return none;
    on.let_read(for_reading);
    return judge_invoices(seen);
}

}  // namespace trinco::program::demo
