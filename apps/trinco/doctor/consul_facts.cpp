#include "apps/trinco/doctor/consul_facts.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/doctor/outage.hpp"
#include "apps/trinco/doctor/tls_advice.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"
#include "store/consul/consul_locks.hpp"
#include "store/consul/consul_wire.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t text_shown = 300;
constexpr std::uint64_t of_one_process = 48 + 96;  // connections: requests, and watches
constexpr auto default_take_over = 15s;            // of servers with a raft_multiplier of 5
constexpr const char* how_to_reach =
    "is an agent of Consul running there, and is this its HTTP port (client_addr, ports.http, "
    "firewall)?";
constexpr const char* how_to_reach_servers =
    "the agent runs, but no server answers it: start the servers, or connect them again (ports "
    "8300 and 8301)";
constexpr trinco::detail::server_words words{"Consul", "consul"};

std::string shown(std::string_view foreign) {
    return trinco::detail::quoted(foreign, text_shown);
}

std::string counted(std::size_t n, std::string_view what) {
    return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

template <class Words>
std::string joined(const Words& all) {
    std::string text;
    for (const auto& one : all) text += (text.empty() ? "" : ", ") + one;
    return text;
}

// Names that others have given.
std::string named(const std::vector<std::string>& foreign) {
    std::vector<std::string> names;
    for (const auto& one : foreign) names.push_back(shown(one));
    return joined(names);
}

bool has_answered(const consul_status& one) {
    return one.why.empty();
}

// What it tells only those with a right to it.
bool is_known(const consul_status& one) {
    return has_answered(one) && !one.version.empty();
}

std::vector<const consul_status*> known_of(const std::vector<consul_status>& asked) {
    std::vector<const consul_status*> known;
    for (const consul_status& one : asked) {
        if (is_known(one)) known.push_back(&one);
    }
    return known;
}

std::set<std::string> servers_of(const consul_status& one) {
    return {one.peers.begin(), one.peers.end()};
}

// How many servers are known to be away: where only servers are named, who is silent is one, too.
std::size_t away_of(const std::vector<consul_status>& asked, std::size_t servers) {
    std::size_t silent = 0;
    std::size_t here = 0;
    for (const consul_status& one : asked) {
        if (!has_answered(one)) {
            ++silent;
            continue;
        }
        if (!one.server) return 0;
        ++here;
    }
    return std::min(silent, servers - std::min(servers, here));
}

// What the servers say of each other, from whoever was told; else nothing. A leader that has just
// begun knows none of them well yet: it would not lead without a majority.
const consul_status* health_of(const std::vector<consul_status>& asked, std::size_t may_be_away) {
    const auto told = std::find_if(asked.begin(), asked.end(), [&](const consul_status& one) {
        return has_answered(one) && one.may_be_lost.has_value() && one.unwell.size() <= may_be_away;
    });
    return told == asked.end() ? nullptr : &*told;
}

// 1.14.3 -> 1014; 0: it is no version.
unsigned number_of(std::string_view version) {
    unsigned major = 0;
    unsigned minor = 0;
    const auto* const end = version.data() + version.size();
    const auto first = std::from_chars(version.data(), end, major);
    if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return 0;
    if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return 0;
    return major * 1'000 + minor;
}

}  // namespace

void judge_consul_reach(const std::vector<consul_status>& asked, examination& to) {
    std::vector<std::string> well;
    for (const consul_status& one : asked) {
        if (has_answered(one)) well.push_back(one.address);
    }
    for (const consul_status& one : asked) {
        if (has_answered(one)) continue;
        // Of itself it could tell something.
        const auto* const how = one.version.empty() ? how_to_reach : how_to_reach_servers;
        const auto of_tls = tls_advice(one.why, words);
        if (well.empty()) {
            to.bad("connect", one.why, of_tls.empty() ? how : of_tls);
            continue;
        }
        to.warn("connect", one.why,
                of_tls.empty() ? "start it again, or take it out of the URL; while it is away the "
                                 "others are all there is"
                               : "until it can be used the others are all there is: " + of_tls);
    }
    if (asked.empty()) to.bad("connect", "no address has answered in time", how_to_reach);
    if (well.empty()) return;
    to.good("connect", joined(well) + (well.size() == 1 ? " answers" : " answer"));
}

void judge_consul_leader(const std::vector<consul_status>& asked, examination& to) {
    std::set<std::string> leaders;
    std::vector<std::string> without;
    for (const consul_status& one : asked) {
        if (!has_answered(one)) continue;
        if (one.leader.empty()) without.push_back(one.address);
        if (!one.leader.empty()) leaders.insert(one.leader);
    }
    if (leaders.empty()) {
        return to.bad("leader",
                      "there is none, by the word of " + joined(without) +
                          ": no lock can be taken or renewed",
                      "start the other servers, or connect them again; more than half of all must "
                      "see each other");
    }
    if (!without.empty()) {
        return to.warn("leader",
                       joined(without) + (without.size() == 1 ? " knows" : " know") +
                           " none, while others follow " + shown(*leaders.begin()) +
                           ": cut off, or just started",
                       "look at its connection to the other servers (ports 8300 and 8301)");
    }
    if (leaders.size() > 1) {
        return to.warn("leader", "the agents do not agree who leads: " + joined(leaders),
                       "ask again in a moment; when it stays so, they are of several clusters");
    }
    to.good("leader", shown(*leaders.begin()));
}

void judge_servers(const std::vector<consul_status>& asked, examination& to) {
    std::vector<const consul_status*> told;
    for (const consul_status& one : asked) {
        if (has_answered(one) && !one.peers.empty()) told.push_back(&one);
    }
    if (told.empty()) return;
    const auto servers = servers_of(*told.front());
    for (const auto* const one : told) {
        if (servers_of(*one) == servers) continue;
        return to.bad("servers",
                      "the agents do not agree who the servers are: " + told.front()->address +
                          " lists " + joined(servers) + ", " + one->address + " lists " +
                          joined(servers_of(*one)),
                      "ask again in a moment, in case one is being added or removed; when it stays "
                      "so, name agents of one datacenter alone: what is locked in the one is free "
                      "in the other");
    }
    const std::size_t majority = servers.size() / 2 + 1;
    const auto* const health = health_of(asked, servers.size() - majority);
    const std::size_t unwell = health != nullptr ? health->unwell.size() : 0;
    const std::size_t away = std::max(unwell, away_of(asked, servers.size()));
    std::size_t spare = std::max(servers.size() - away, majority) - majority;
    if (health != nullptr) spare = std::min<std::size_t>(spare, *health->may_be_lost);
    const std::string may = spare == 0 ? "none" : std::to_string(spare);
    auto figures = json_object().add("servers", servers.size()).add("may_be_lost", spare);
    const auto all = counted(servers.size(), "server");
    const auto add = [&](std::string sentence, std::string advice) {
        to.add(
            {level::warn, "servers", std::move(sentence), std::move(advice), std::move(figures)});
    };
    if (away > 0) {
        const std::size_t here = servers.size() - away;
        const std::string which = unwell == 0 ? ""
                                              : " (" + named(health->unwell) +
                                                    (unwell == 1 ? " is" : " are") +
                                                    " not well, by the word of the servers)";
        return add(std::to_string(here) + " of " + all + (here == 1 ? " answers" : " answer") +
                       which + ": " + may + " more may be lost",
                   "start those that are away, or find out why they cannot be reached from here");
    }
    const std::string text = all + " (" + joined(servers) + "); " + may + " may be lost";
    if (servers.size() == 1) return add(text + nothing_without_it, three_survive_one);
    if (servers.size() % 2 == 0) {
        return add(text + ": as few as with one server less",
                   "add a server, or remove one: an odd number survives more");
    }
    to.good("servers", text, std::move(figures));
}

void judge_datacenter(const std::vector<consul_status>& asked, const std::string& wanted,
                      examination& to) {
    std::set<std::string> names;
    for (const auto* const one : known_of(asked)) names.insert(one->datacenter);
    if (names.empty()) return;
    if (names.size() > 1 && wanted.empty()) {
        to.code = exit_usage;
        return to.bad(
            "datacenter",
            "the URL names agents of " + counted(names.size(), "datacenter") + ": " + joined(names),
            "name agents of one, or say with dc= whose locks they shall be: what is "
            "locked in the one is free in the other");
    }
    const std::string& meant = wanted.empty() ? *names.begin() : wanted;
    const bool is_far = names != std::set<std::string>{meant};
    to.good("datacenter", shown(meant) + ", whose locks no other datacenter knows" +
                              (is_far ? "; the agents are of " + joined(names) +
                                            ", so each call goes from there to it"
                                      : ""));
}

void judge_consul_version(const std::vector<consul_status>& asked, examination& to) {
    std::set<std::string> versions;
    bool is_old = false;
    for (const auto* const one : known_of(asked)) {
        versions.insert(shown(one->version));
        const auto number = number_of(one->version);
        is_old = is_old || (number != 0 && number < 1'014);
    }
    if (versions.empty()) {
        return to.good("version", "not known: the token may not read it (agent:read)");
    }
    const std::string text = "Consul " + joined(versions);
    if (is_old) {
        return to.warn("version", text + "; Trinco is tested with 1.14 and relies on what it does",
                       "install a later version");
    }
    if (versions.size() > 1) {
        return to.warn("version", text + ": the agents differ", "finish the upgrade");
    }
    to.good("version", text);
}

void judge_agents(const std::vector<consul_status>& asked, examination& to) {
    std::vector<std::string> nodes;
    std::vector<std::string> leaving;
    std::vector<std::string> removed;
    for (const auto* const one : known_of(asked)) {
        const auto name = shown(one->node);
        nodes.push_back(name + (one->server ? ", a server" : ", no server"));
        if (one->leaves_when_ended) leaving.push_back(name);
        if (one->server && one->removes_dead_servers && one->peers.size() > 1) {
            removed.push_back(name);
        }
    }
    const std::string sentence =
        "a session, and with it its locks, ends with the node of the agent that it was made at";
    if (nodes.empty()) return to.good("agent", sentence);
    if (!leaving.empty()) {
        to.warn("agent",
                sentence + ": " + joined(leaving) +
                    " leaves when it is ended by TERM, as a restart by systemd does, and then all "
                    "locks taken there are lost at once, though their owners are well",
                "set leave_on_terminate = false there");
    }
    if (!removed.empty()) {
        to.warn("agent",
                sentence + ": " + joined(removed) +
                    " is removed when it is dead, and then all locks taken there are lost, though "
                    "their owners are well",
                "name the agents of the machines that lock, which are no servers, in the URL; or "
                "set autopilot { cleanup_dead_servers = false }");
    }
    if (!leaving.empty() || !removed.empty()) return;
    to.good("agent", sentence + " (" + joined(nodes) + "): it stays when the agent is restarted");
}

void judge_connections(const std::vector<consul_status>& asked, examination& to) {
    std::uint64_t least = 0;
    for (const auto* const one : known_of(asked)) {
        if (one->connections == 0) continue;
        least = least == 0 ? one->connections : std::min(least, one->connections);
    }
    if (least == 0) return;
    auto figures = json_object().add("of_one_host", least);
    const std::string text = "the agent takes " + std::to_string(least) +
                             " of one machine, of all its processes together; each name that is "
                             "held or waited for keeps one";
    if (least >= of_one_process) return to.good("connections", text, std::move(figures));
    to.add({level::warn, "connections",
            text + ", and one process takes up to " + std::to_string(of_one_process),
            "raise limits.http_max_conns_per_client of the agent", std::move(figures)});
}

std::optional<seconds> least_ttl_in(std::string_view refusal) {
    constexpr std::string_view mark = "must be between [";
    const auto at = refusal.find(mark);
    if (at == std::string_view::npos) return std::nullopt;
    const auto rest = refusal.substr(at + mark.size());
    const auto least = trinco::detail::consul::duration_of(rest.substr(0, rest.find('=')));
    if (!least) return std::nullopt;
    return std::chrono::ceil<seconds>(*least);
}

void judge_session_ttl(seconds least, seconds asked, examination& to) {
    auto figures = json_object().add("least_ttl_s", least.count());
    const seconds ours = trinco::detail::consul_locks::shortest_ttl;
    const seconds needed = std::max(least, ours);
    const std::string text = "a session lives " + duration_words(needed) + " or longer" +
                             (least < ours ? ", as Trinco asks for them" : "");
    if (needed > asked) {
        finding one{level::warn, "ttl",
                    text + (least < ours ? "" : " (session_ttl_min)") + ": more than the TTL of " +
                        duration_words(asked) +
                        " that locks ask for, so that one without a longer --ttl is refused",
                    "write ttl = \"" + std::to_string(needed.count()) +
                        "s\" or more under [locks] of trinco.toml" +
                        (least > ours ? ", or lower session_ttl_min of the servers" : ""),
                    std::move(figures)};
        return to.add(std::move(one));
    }
    to.good("ttl",
            text +
                "; Consul ends it between one TTL and two after its last renewal, and a new leader "
                "lets all of them begin anew",
            std::move(figures));
}

void judge_lock_delay(examination& to) {
    const auto ours = trinco::detail::consul_locks_settings().lock_delay;
    to.good("lock-delay",
            "when a holder is lost that did not give its lock back, Consul keeps it from everybody "
            "for " +
                duration_words(ours) + " more (15 s after 'consul lock')",
            json_object().add("ours_s", ours.count()));
}

void judge_consul_outage(const std::vector<consul_status>& asked, seconds least, examination& to) {
    leader_change change{
        0ms, "give locks a longer --ttl, or lower raft_multiplier of the servers", {}};
    std::size_t servers = 0;
    for (const consul_status& one : asked) {
        if (!has_answered(one)) continue;
        servers = std::max(servers, one.peers.size());
        // Until the others miss it, choose, and the chosen one has caught up.
        if (one.server)
            change.takes = std::max<milliseconds>(change.takes, one.election_timeout * 3);
    }
    if (servers < 2) {
        change.takes = 0ms;
    } else if (change.takes == 0ms) {
        change.remark = "; a new leader may take " + duration_words(default_take_over) +
                        " where the servers have the default raft_multiplier of 5";
    }
    judge_outage(least, change, to);
}

}  // namespace trinco::program::doctor
