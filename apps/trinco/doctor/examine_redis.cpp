#include "apps/trinco/doctor/examine_redis.hpp"

#include <algorithm>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include "apps/trinco/doctor/key_types.hpp"
#include "apps/trinco/doctor/redis_rights.hpp"
#include "apps/trinco/doctor/redis_way.hpp"
#include "apps/trinco/doctor/script_costs.hpp"
#include "core/quoted.hpp"
#include "store/redis/redis_slot.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::program::doctor {
namespace {

using trinco::detail::redis_target;
using trinco::detail::resp_reply;
using trinco::detail::stream_address;

constexpr std::size_t most_primaries = 32;  // of a cluster, looked at one after the other

std::string counted(std::size_t n, std::string_view what) {
    return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

bool writes_are_taken(const server_facts& facts) {
    return facts.text("role").value_or("master") == "master";
}

// All that is asked of the server that carries the load.
void examine_server(redis_way& way, const redis_target& target, const stream_address& where,
                    const named_breakers& of, examination& to) {
    const bool in_cluster = target.kind == redis_target::kind_t::cluster;
    const auto talk = way.walk(where, target.login, target.database, false, to);
    if (!talk) return;
    check_round_trip(*talk, to);
    const server_facts facts = read_facts(*talk);
    if (facts.empty()) {
        to.good("info",
                "this user may not use INFO: version, memory and persistence are not known");
    }
    judge_version(facts, to);
    judge_role(facts, to);
    const auto listening = way.another(where, target.login);
    check_rights(*talk, *listening, target.login.user, {of.name_space, target.database},
                 in_cluster ? server_kind::node : server_kind::alone, to);
    const write_refusal refusal =
        writes_are_taken(facts) ? check_script_costs(*talk, to) : write_refusal::none;
    check_key_types(*talk, {target, where, of.words}, of.name_space, to);
    judge_memory(facts, refusal == write_refusal::memory, to);
    judge_persistence(facts, refusal == write_refusal::disk, to);
    judge_replicas(facts, to);
    check_clock(*talk, to);
    const bool is_cluster = facts.text("redis_mode") == "cluster";
    if (is_cluster && target.kind == redis_target::kind_t::single) {
        to.bad("mode", "the server is a node of a cluster, and holds a part of the breakers only",
               "name the cluster: redis+cluster://HOST,HOST");
    }
}

// ---- Sentinel ----------------------------------------------------------------------------------

struct sentinels_told {
    std::size_t asked = 0;
    std::size_t answered = 0;
    std::vector<stream_address> primaries = {};  // what they name, each once
    bool has_quorum = true;
    std::string no_quorum = {};
};

std::optional<stream_address> address_in(const resp_reply& reply, const redis_target& target) {
    if (!reply.is(resp_reply::kind_t::array) || reply.elements.size() != 2) return std::nullopt;
    int port = 0;
    for (const char c : reply.elements[1].text) {
        if (c < '0' || c > '9' || port > 65'535) return std::nullopt;
        port = port * 10 + (c - '0');
    }
    if (port == 0 || port > 65'535) return std::nullopt;
    auto where = stream_address::tcp(reply.elements[0].text, static_cast<std::uint16_t>(port));
    where.tls = target.tls;
    return where;
}

sentinels_told ask_sentinels(redis_way& way, const redis_target& target, examination& to) {
    sentinels_told all;
    for (const stream_address& where : target.nodes) {
        ++all.asked;
        examination aside;
        const auto talk = way.walk(where, target.sentinel_login, 0, true, aside);
        if (!talk) {
            for (finding& one : aside.all) {
                one.how = level::warn;
                one.check = "sentinel";
                to.add(std::move(one));
            }
            continue;
        }
        ++all.answered;
        const told named = talk->ask({"SENTINEL", "GET-MASTER-ADDR-BY-NAME", target.primary});
        const auto primary = named.good() ? address_in(named.reply, target) : std::nullopt;
        if (!primary) continue;
        const bool is_known =
            std::find(all.primaries.begin(), all.primaries.end(), *primary) != all.primaries.end();
        if (!is_known) all.primaries.push_back(*primary);
        const told quorum = talk->ask({"SENTINEL", "CKQUORUM", target.primary});
        if (quorum.reply.is(resp_reply::kind_t::error)) {
            all.has_quorum = false;
            all.no_quorum = quorum.reply.text;
        }
    }
    return all;
}

void examine_sentinels(redis_way& way, const redis_target& target, const named_breakers& of,
                       examination& to) {
    const sentinels_told seen = ask_sentinels(way, target, to);
    const std::string name = trinco::detail::quoted(target.primary);
    if (seen.answered == 0) {
        return to.bad("sentinels", "none of " + counted(seen.asked, "Sentinel") + " answers",
                      "are they running, and does the URL name them?");
    }
    const std::string number =
        std::to_string(seen.answered) + " of " + counted(seen.asked, "Sentinel");
    if (seen.primaries.empty()) {
        return to.bad("sentinels",
                      number + " answered, and none knows a primary by the name " + name,
                      "name it as their files do: sentinel monitor NAME ...");
    }
    if (seen.primaries.size() > 1) {
        to.warn("sentinels",
                "they name different servers for " + name +
                    ": a fail-over is under "
                    "way, or some of them are cut off",
                "ask again in a minute; then look at SENTINEL MASTER " + target.primary);
    } else if (!seen.has_quorum) {
        to.warn("sentinels",
                "they cannot fail over: " + trinco::detail::quoted(seen.no_quorum, 160),
                "start enough Sentinels, at least three on three machines");
    } else if (seen.asked < 3) {
        to.warn("sentinels", number + " answered; the URL names fewer than three",
                "name all of them, so that one may be away");
    } else {
        to.good("sentinels", number + " answered, and can fail over; the primary is " +
                                 trinco::detail::text_of(seen.primaries.front()));
    }
    examine_server(way, target, seen.primaries.front(), of, to);
}

// ---- cluster -----------------------------------------------------------------------------------

// What CLUSTER SLOTS tells.
struct cluster_told {
    std::vector<stream_address> primaries = {};  // each once; first who has the trial's slot
    std::int64_t served = 0;                     // slots
};

cluster_told read_slots(const resp_reply& slots, const redis_target& target,
                        const stream_address& asked) {
    const auto of_trial =
        static_cast<std::int64_t>(trinco::detail::slot_of_key(key_of_script_trial()));
    cluster_told all;
    for (const resp_reply& range : slots.elements) {
        if (range.elements.size() < 3 || range.elements[2].elements.size() < 2) continue;
        const resp_reply& node = range.elements[2];
        // A node that does not know its own name says nothing: it is the one that was asked.
        const std::string host = node.elements[0].text.empty() ? asked.host : node.elements[0].text;
        auto where =
            stream_address::tcp(host, static_cast<std::uint16_t>(node.elements[1].integer));
        where.tls = target.tls;
        const std::int64_t first = range.elements[0].integer;
        const std::int64_t last = range.elements[1].integer;
        all.served += last - first + 1;
        auto known = std::find(all.primaries.begin(), all.primaries.end(), where);
        if (known == all.primaries.end()) {
            known = all.primaries.insert(known, std::move(where));
        }
        if (first <= of_trial && of_trial <= last) {
            std::rotate(all.primaries.begin(), known, known + 1);
        }
    }
    return all;
}

// `state`: what CLUSTER INFO tells; empty: the user need not have the right to it.
void check_cluster_state(const cluster_told& seen, const server_facts& state, examination& to) {
    const auto slots = static_cast<std::int64_t>(trinco::detail::redis_slots);
    const auto served = std::min<std::int64_t>(
        seen.served, static_cast<std::int64_t>(
                         state.number("cluster_slots_ok").value_or(trinco::detail::redis_slots)));
    std::string text = counted(seen.primaries.size(), "primary node") + ", " +
                       std::to_string(served) + " of " + std::to_string(slots) +
                       " slots are served";
    if (state.empty()) {
        text += "; this user may not use CLUSTER INFO: its state is not known";
    }
    const std::string word = state.text("cluster_state").value_or("ok");
    if (word == "ok" && served == slots) return to.good("cluster", std::move(text));
    if (word != "ok") text += "; its state is " + word;
    to.bad("cluster", std::move(text), "look at CLUSTER NODES, and bring the nodes that fail back");
}

// Of the other primaries only what is not well.
void examine_other_primary(redis_way& way, const redis_target& target, const stream_address& where,
                           const named_breakers& of, examination& to) {
    examination aside;
    if (const auto talk = way.walk(where, target.login, 0, true, aside)) {
        check_key_types(*talk, {target, where, of.words}, of.name_space, aside);
        const server_facts facts = read_facts(*talk);
        judge_version(facts, aside);
        judge_memory(facts, false, aside);
        judge_persistence(facts, false, aside);
        judge_replicas(facts, aside);
    }
    for (finding& one : aside.all) {
        if (one.how == level::good) continue;
        one.sentence = trinco::detail::text_of(where) + ": " + one.sentence;
        to.add(std::move(one));
    }
}

void examine_cluster(redis_way& way, const redis_target& target, const named_breakers& of,
                     examination& to) {
    std::unique_ptr<server_talk> talk;
    const stream_address* reached = nullptr;
    examination failures;
    for (const stream_address& where : target.nodes) {
        talk = way.walk(where, target.login, 0, true, failures);
        reached = &where;
        if (talk) break;
    }
    for (finding& one : failures.all) {
        if (talk) one.how = level::warn;
        to.add(std::move(one));
    }
    to.code = failures.code;
    if (!talk) return;
    const told slots = talk->ask({"CLUSTER", "SLOTS"});
    if (slots.refusal() == "NOPERM") return say_map_is_denied(*talk, of.name_space, to);
    if (!slots.good()) {
        return to.bad("cluster", trinco::detail::text_of(*reached) + " is no node of a cluster",
                      "name it as one server: redis://HOST");
    }
    server_facts state;
    if (const told info = talk->ask({"CLUSTER", "INFO"}); info.good()) {
        state.read_info(info.reply.text);
    }
    const cluster_told seen = read_slots(slots.reply, target, *reached);
    check_cluster_state(seen, state, to);
    const auto& primaries = seen.primaries;
    if (primaries.empty()) return;
    examine_server(way, target, primaries.front(), of, to);
    for (std::size_t i = 1; i < std::min(primaries.size(), most_primaries); ++i) {
        examine_other_primary(way, target, primaries[i], of, to);
    }
}

}  // namespace

void examine_redis(std::string_view url, const named_breakers& of, examination& to) {
    const auto parsed = trinco::detail::parse_redis_url(url);
    if (const auto* const why = std::get_if<std::string>(&parsed)) {
        to.code = exit_usage;
        return to.bad("url", *why, "'trinco help urls' shows how they are written");
    }
    auto target = std::get<redis_target>(parsed);
    for (stream_address& node : target.nodes) node.tls = target.tls;
    redis_way way;
    switch (target.kind) {
        case redis_target::kind_t::single:
            return examine_server(way, target, target.nodes.front(), of, to);
        case redis_target::kind_t::sentinel: return examine_sentinels(way, target, of, to);
        case redis_target::kind_t::cluster: return examine_cluster(way, target, of, to);
    }
}

}  // namespace trinco::program::doctor
