#include "apps/trinco/demo/ticket_story.hpp"

#include <string>

#include "apps/trinco/demo/last_ticket.hpp"
#include "apps/trinco/demo/rush.hpp"
#include "apps/trinco/demo/service.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

std::string number(std::integral auto value) {
    return std::to_string(value);
}

void claim_last_ticket(const last_ticket_outcome& seen, act_result& to) {
    to.claims.push_back({"last_ticket_sold_twice_without_lock", seen.sold_without_lock > 1,
                         "no lock: the last ticket is sold twice (" +
                             number(seen.sold_without_lock) + " receipts)"});
    to.claims.push_back({"last_ticket_sold_once_with_lock",
                         seen.sold_with_lock == 1 && seen.told_sold_out,
                         "trinco lock: once, and the other buyer is told (" +
                             number(seen.sold_with_lock) + " receipt)"});
    to.figures.add_raw("last_ticket", json_object()
                                          .add("sold_without_lock", seen.sold_without_lock)
                                          .add("sold_with_lock", seen.sold_with_lock)
                                          .add("other_buyer_told_sold_out", seen.told_sold_out)
                                          .text());
}

void claim_open_rush(const rush_outcome& seen, act_result& to) {
    to.claims.push_back({"oversold_without_lock", seen.sold > rush_tickets,
                         "no lock: 8 services sell " + number(seen.sold) + " of 100 tickets, " +
                             number(seen.sold_more_than_once) + " of them more than once"});
    to.figures.add_raw("without_lock", json_object()
                                           .add("tickets", rush_tickets)
                                           .add("sold", seen.sold)
                                           .add("sold_more_than_once", seen.sold_more_than_once)
                                           .text());
}

// What must be true of each mishap, and how it is said.
claim claim_of(const mishap& one, bool on_server) {
    const bool higher = one.next_token && *one.next_token > one.token;
    const bool handed_on = one.happened && higher && !one.wrote_after;
    if (one.kind == "killed") {
        const std::string after =
            one.handed_on ? number(one.handed_on->count()) + " ms later" : std::string("never");
        // This machine knows its dead, and does not wait for the TTL. A server does, and notices
        // some moments later.
        const auto limit = on_server ? 2 * ttl_shown + 2s : ttl_shown;
        return {"killed_holder", handed_on && *one.handed_on < limit,
                "holder killed (kill -9): the next one had the lock " + after};
    }
    if (one.kind == "paused") {
        return {"paused_wrapper", handed_on && one.command_ended && one.exit_code == exit_lost,
                "holder paused: its command was ended before the next one held"};
    }
    return {"stale_token_refused", handed_on && one.refused,
            "holder frozen with all its processes: its late write was refused"};
}

std::string json_of(const mishap& one) {
    json_object all;
    all.add("at", one.at).add("happened", one.happened).add("token", one.token);
    one.next_token ? all.add("next_token", *one.next_token) : all.add_null("next_token");
    one.handed_on ? all.add("handed_on_ms", one.handed_on->count()) : all.add_null("handed_on_ms");
    one.exit_code ? all.add("exit_code", *one.exit_code) : all.add_null("exit_code");
    all.add("command_ended_before_next", one.command_ended)
        .add("wrote_after_loss", one.wrote_after)
        .add("late_write_refused", one.refused);
    return all.text();
}

void claim_locked_rush(const rush_outcome& seen, bool on_server, act_result& to) {
    const bool exact = seen.sold == rush_tickets && seen.left == 0 && seen.sold_more_than_once == 0;
    to.claims.push_back({"sold_exactly_once_each", exact,
                         "trinco lock: they sell " + number(seen.sold) + " of 100, " +
                             number(seen.sold_more_than_once) + " of them more than once"});
    to.claims.push_back({"tokens_increase",
                         seen.sold > 0 && seen.tokens_increase &&
                             seen.tokens.size() == static_cast<std::size_t>(seen.sold),
                         "every sale has a token, each higher than the one before (" +
                             number(seen.tokens.size()) + ")"});
    json_object figures;
    figures.add("tickets", rush_tickets)
        .add("sold", seen.sold)
        .add("sold_more_than_once", seen.sold_more_than_once)
        .add("left", seen.left)
        .add("tokens", seen.tokens.size())
        .add("tokens_increase", seen.tokens_increase)
        .add("took_ms", seen.took.count());
    for (const mishap& one : seen.mishaps) {
        to.claims.push_back(claim_of(one, on_server));
        figures.add_raw(one.kind, json_of(one));
    }
    to.figures.add_raw("with_lock", figures.text());
}

}  // namespace

act_result ticket_story(const stage& on) {
    act_result all;
    const last_ticket_outcome last = play_last_ticket(on);
    all.failure = last.failure;
    if (all.failure || on.interrupted()) return all;
    claim_last_ticket(last, all);

    const rush_outcome open = play_rush_without_lock(on);
    all.failure = open.failure;
    if (all.failure || on.interrupted()) return all;
    claim_open_rush(open, all);

    const rush_outcome locked = play_rush_with_lock(on);
    all.failure = locked.failure;
    if (all.failure || on.interrupted()) return all;
    claim_locked_rush(locked, on.locks_on_server(), all);
    return all;
}

}  // namespace trinco::program::demo
