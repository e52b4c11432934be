#include "apps/trinco/locks/lock_break.hpp"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/locks/owner_words.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/watching/waiting_room.hpp"
#include "core/quoted.hpp"
#include "trinco/error.hpp"

namespace trinco::program {
namespace {

using namespace std::chrono_literals;
using detail::boot_clock;
using std::chrono::milliseconds;
using how_t = broken_holder::how_t;

constexpr auto patience = 5s;
constexpr auto look_every = 200ms;
// Of looks and answers: a lease that runs out is seen to do so, and not deleted in that moment.
constexpr auto expiry_slack = 300ms;
constexpr std::size_t owner_shown = 256;

milliseconds whole(boot_clock::duration d) {
    return std::max(std::chrono::ceil<milliseconds>(d), 0ms);
}

class breaking {
public:
    breaking(const locks_scene& in, const lock_row& row, const break_order& order, ending_wish& end)
        : in_(in), order_(order), end_(end), began_(boot_clock::now()), looked_(began_) {
        for (const auto& e : row.holders) all_.push_back({e, how_t::asked, 0ms});
        until_ = began_ + longest_left() + expiry_slack;
    }

    std::variant<std::vector<broken_holder>, problem> run() {
        if (!order_.at_once) {
            if (auto bad = unknown_end()) return *std::move(bad);
            if (auto bad = evict_all(false)) return std::move(*bad);
            if (auto bad = wait()) return std::move(*bad);
        }
        if (auto bad = evict_all(true)) return std::move(*bad);
        return std::move(all_);
    }

private:
    [[nodiscard]] bool is_over() const {
        return std::none_of(all_.begin(), all_.end(),
                            [](const auto& h) { return h.how == how_t::asked; });
    }
    void settle(broken_holder& h, how_t how) const {
        h.how = how;
        h.after = whole(boot_clock::now() - began_);
    }
    [[nodiscard]] milliseconds longest_left() const {
        milliseconds longest{0};
        for (const auto& h : all_) {
            if (h.how == how_t::asked) longest = std::max(longest, h.what.left);
        }
        return longest;
    }

    // Who is asked has its TTL for an answer. Where that is not known nobody could tell when the
    // holder is at its end, and it would be deleted while it works.
    [[nodiscard]] std::optional<problem> unknown_end() const {
        for (const auto& h : all_) {
            if (!h.what.left_is_whole || h.what.left > 0ms) continue;
            return problem{exit_denied,
                           "how long " + owner_words(h.what, owner_shown) +
                               " may go on is not known, since its session may not be read "
                               "(session:read on the node of its agent), so that it is not asked; "
                               "--force deletes its entry at once"};
        }
        return std::nullopt;
    }
    // Why a holder could not be asked.
    [[nodiscard]] problem not_asked(const broken_holder& h, std::error_code error) const {
        constexpr const char* way_out = "; --force deletes its entry without asking";
        if (error == errc::not_supported) {
            return {exit_usage, owner_words(h.what, owner_shown) +
                                    " cannot be asked: it is the leader of an election, or a "
                                    "program that is not Trinco's" +
                                    way_out};
        }
        auto bad = store_problem(in_.at, "ask the holder", error);
        // A full database takes no word for a holder, and lets entries be deleted.
        if (error == errc::busy || error == errc::unknown_outcome) bad.sentence += way_out;
        return bad;
    }

    // Of those who still hold it.
    std::optional<problem> evict_all(bool now) {
        for (auto& h : all_) {
            if (h.how != how_t::asked) continue;
            const auto did = ask_locks<int>(
                in_.at, patience, [&](detail::lock_store& locks, detail::deadline by, auto done) {
                    return locks.evict(h.what, now, order_.who, order_.why, by, std::move(done));
                });
            // Another entry by now, or none: this one has been given back.
            const bool gone = did.error == errc::lost || did.error == errc::conflict;
            if (did.error && !gone) {
                if (now) return store_problem(in_.at, "delete the holder", did.error);
                return not_asked(h, did.error);
            }
            if (gone) settle(h, how_t::released);
            if (!gone && now) settle(h, how_t::deleted);
        }
        return std::nullopt;
    }

    std::optional<problem> wait() {
        if (is_over()) return std::nullopt;
        say_that_it_waits();
        waiting_room room(end_, waiting_room::reader::not_needed);
        const listening to_holder = ring_at_changes(in_, room.door());
        while (!is_over() && boot_clock::now() < until_) {
            const auto left = until_ - boot_clock::now();
            show(left);
            if (room.wait(std::min(look_every, whole(left))) == waiting_room::reason::signal) {
                show_nothing();
                return problem{exit_signal + end_.signal(),
                               "interrupted; the lock " +
                                   detail::quoted(in_.scope.beginning, owner_shown) +
                                   " stays asked back from its holder"};
            }
            if (auto bad = look()) return bad;
        }
        show_nothing();
        return std::nullopt;
    }

    std::optional<problem> look() {
        const auto listed = list_locks(in_.at, in_.scope);
        if (const auto* const bad = std::get_if<problem>(&listed)) return *bad;
        const auto& rows = std::get<std::vector<lock_row>>(listed);
        const auto now = boot_clock::now();
        for (auto& h : all_) {
            if (h.how != how_t::asked) continue;
            const auto* const seen = find(rows, h.what.handle);
            if (seen != nullptr) {
                // A listing that reads entries and leases one after the other finds the lease of
                // who gave back in between gone: that it had run out nobody has seen.
                const auto left = std::max(h.what.left - whole(now - looked_), 0ms);
                h.what = *seen;
                if (h.what.left == 0ms) h.what.left = left;
            } else {
                const bool ran_out = h.what.left <= whole(now - looked_) + expiry_slack;
                settle(h, h.what.left_is_whole ? how_t::gone
                          : ran_out            ? how_t::expired
                                               : how_t::released);
            }
        }
        looked_ = now;
        // A renewal shows how long the lease really is.
        until_ = std::max(until_, began_ + longest_left() + expiry_slack);
        return std::nullopt;
    }

    static const detail::entry* find(const std::vector<lock_row>& rows, const std::string& handle) {
        for (const auto& row : rows) {
            for (const auto& e : row.holders) {
                if (e.handle == handle) return &e;
            }
        }
        return nullptr;
    }

    void say_that_it_waits() const {
        const auto& first = all_.front().what;
        const auto more = all_.size() - 1;
        say("asked " + detail::quoted(first.info, owner_shown) +
            (more > 0 ? " and " + std::to_string(more) + " more" : "") + " to give the lock " +
            detail::quoted(in_.scope.beginning, owner_shown) + " back; waiting for it up to its " +
            "TTL, about " +
            duration_words(std::chrono::ceil<std::chrono::seconds>(longest_left())));
    }
    void show(boot_clock::duration left) const {
        if (!live_) return;
        const auto seconds = std::chrono::ceil<std::chrono::seconds>(left);
        static_cast<void>(
            write_all(STDERR_FILENO, "\r\x1b[Kwaiting, " + std::to_string(seconds.count()) + " s"));
    }
    void show_nothing() const {
        if (live_) static_cast<void>(write_all(STDERR_FILENO, "\r\x1b[K"));
    }

    const locks_scene& in_;
    const break_order& order_;
    ending_wish& end_;
    const bool live_ = is_live_terminal(STDERR_FILENO);
    const boot_clock::time_point began_;
    boot_clock::time_point looked_;
    boot_clock::time_point until_;
    std::vector<broken_holder> all_;
};

}  // namespace

std::variant<std::vector<broken_holder>, problem> break_lock(const locks_scene& in,
                                                             const lock_row& row,
                                                             const break_order& order,
                                                             ending_wish& end) {
    return breaking(in, row, order, end).run();
}

std::string_view outcome_word(how_t how) noexcept {
    switch (how) {
        case how_t::asked: return "asked";
        case how_t::released: return "released";
        case how_t::gone: return "gone";
        case how_t::expired: return "expired";
        case how_t::deleted: return "deleted";
    }
    return "";
}

}  // namespace trinco::program
