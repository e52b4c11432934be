#include "apps/trinco/doctor/etcd_facts.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <map>
#include <set>
#include <utility>

#include "apps/trinco/command_line/duration.hpp"
#include "apps/trinco/doctor/etcd_versions.hpp"
#include "apps/trinco/doctor/outage.hpp"
#include "apps/trinco/doctor/tls_advice.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/bytes_text.hpp"
#include "core/quoted.hpp"

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t text_shown = 300;
constexpr std::int64_t default_quota = 2LL * 1024 * 1024 * 1024;  // bytes, when nothing was said
constexpr std::int64_t worth_defragmenting = 64LL * 1024 * 1024;
constexpr const char* how_to_reach =
    "is etcd running, and does it listen there (--listen-client-urls, port, firewall)?";
constexpr trinco::detail::server_words words{"etcd", "etcd"};

std::string shown(std::string_view foreign) {
    return trinco::detail::quoted(foreign, text_shown);
}

std::string counted(std::size_t n, std::string_view what) {
    return std::to_string(n) + " " + std::string(what) + (n == 1 ? "" : "s");
}

std::string joined(const std::vector<std::string>& all) {
    std::string text;
    for (const auto& one : all) text += (text.empty() ? "" : ", ") + one;
    return text;
}

std::string hex(std::uint64_t id) {
    std::array<char, 16> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), id, 16).ptr;
    return {digits.data(), end};
}

std::string name_of(const etcd_member& one) {
    return one.name.empty() ? hex(one.id) : shown(one.name);
}

std::string name_of(std::uint64_t id, const std::vector<etcd_member>& all) {
    const auto at =
        std::find_if(all.begin(), all.end(), [&](const etcd_member& m) { return m.id == id; });
    return at == all.end() ? hex(id) : name_of(*at);
}

// ---- members -----------------------------------------------------------------------------------

constexpr const char* one_cluster_alone =
    "name the members of one cluster alone: what is locked in the one is free in the other";

// Whether it was said that those of the URL are of several clusters.
bool differ_in_cluster(const std::vector<etcd_status>& asked, examination& to) {
    std::map<std::uint64_t, std::vector<std::string>> clusters;
    for (const etcd_status& one : asked) {
        if (has_answered(one)) clusters[one.cluster].push_back(one.endpoint);
    }
    if (clusters.size() < 2) return false;
    std::string text = "the URL names members of " + counted(clusters.size(), "cluster");
    for (const auto& [id, endpoints] : clusters) {
        text +=
            (id == clusters.begin()->first ? ": " : "; ") + joined(endpoints) + " of " + hex(id);
    }
    to.code = exit_usage;
    to.bad("members", text, one_cluster_alone);
    return true;
}

std::set<std::uint64_t> ids_of(const std::vector<etcd_member>& all) {
    std::set<std::uint64_t> ids;
    for (const etcd_member& one : all) ids.insert(one.id);
    return ids;
}

// Whether it was said that they list other members: one of them went on by itself.
bool differ_in_members(const std::vector<etcd_status>& asked,
                       const std::vector<std::vector<etcd_member>>& told, examination& to) {
    std::size_t first = told.size();
    for (std::size_t i = 0; i < told.size(); ++i) {
        if (told[i].empty()) continue;
        if (first == told.size()) first = i;
        if (ids_of(told[i]) == ids_of(told[first])) continue;
        const auto says = [&](std::size_t who) {
            std::vector<std::string> names;
            for (const etcd_member& one : told[who]) names.push_back(name_of(one));
            return asked[who].endpoint + " lists " + counted(names.size(), "member") + " (" +
                   joined(names) + ")";
        };
        to.bad("members", "the members do not agree who they are: " + says(first) + ", " + says(i),
               "ask again in a moment, in case one is being added or removed; when it stays so, "
               "they are two clusters that were one (--force-new-cluster, a restored snapshot): " +
                   std::string(one_cluster_alone));
        return true;
    }
    return false;
}

std::vector<std::string> those_not_in(const std::vector<etcd_status>& asked,
                                      const std::vector<etcd_member>& all) {
    const auto ids = ids_of(all);
    std::vector<std::string> others;
    for (const etcd_status& one : asked) {
        if (has_answered(one) && !ids.contains(one.member)) others.push_back(one.endpoint);
    }
    return others;
}

// Whether the member says of itself that it listens there.
bool is_at(const etcd_member& one, const std::string& endpoint) {
    return std::any_of(one.client_urls.begin(), one.client_urls.end(), [&](const auto& url) {
        return url == "http://" + endpoint || url == "https://" + endpoint;
    });
}

// The places of the URL that do not answer: as members, of which one may be named twice, and those
// that no member gives as its own, each of which counts as another one.
struct silence {
    std::set<std::uint64_t> members;
    std::size_t others = 0;
};

silence silence_of(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all) {
    silence out;
    for (const etcd_status& one : asked) {
        if (has_answered(one)) continue;
        const auto at = std::find_if(all.begin(), all.end(),
                                     [&](const etcd_member& m) { return is_at(m, one.endpoint); });
        at == all.end() ? static_cast<void>(++out.others)
                        : static_cast<void>(out.members.insert(at->id));
    }
    return out;
}

// How many members the URL names.
std::size_t named_by(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all) {
    auto [ids, others] = silence_of(asked, all);
    for (const etcd_status& one : asked) {
        if (has_answered(one)) ids.insert(one.member);
    }
    return ids.size() + others;
}

// How many of those with a vote are known to be away: who is not named was not asked.
std::size_t away_of(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all) {
    auto unheard = ids_of(all);
    for (const etcd_member& one : all) {
        if (one.learner) unheard.erase(one.id);
    }
    for (const etcd_status& one : asked) {
        if (has_answered(one)) unheard.erase(one.member);
    }
    const auto [members, others] = silence_of(asked, all);
    const auto silent = std::count_if(members.begin(), members.end(),
                                      [&](std::uint64_t id) { return unheard.contains(id); });
    return std::min(static_cast<std::size_t>(silent) + others, unheard.size());
}

// "3 members (n0, n1, n2); 1 may be lost"
std::string count_text(const std::vector<std::string>& voters, std::size_t away,
                       std::size_t spare) {
    const std::string may = spare == 0 ? "none" : std::to_string(spare);
    const auto all = counted(voters.size(), "member");
    if (away == 0) return all + " (" + joined(voters) + "); " + may + " may be lost";
    const std::size_t here = voters.size() - away;
    return std::to_string(here) + " of " + all + (here == 1 ? " answers: " : " answer: ") + may +
           " more may be lost";
}

// ---- space -------------------------------------------------------------------------------------

bool is_space_alarm(std::string_view error) {
    return error.find("NOSPACE") != std::string_view::npos;
}

void say_full(const std::string& text, const std::string& endpoints, examination& to) {
    finding one{level::bad,
                "space",
                text + ": the alarm NOSPACE is raised, no lock can be taken",
                "raise --quota-backend-bytes, or compact and defragment, and disarm the alarm",
                {}};
    const std::string ctl = "etcdctl --endpoints=" + endpoints + " ";
    one.commands = {ctl + "compact \"$(" + ctl +
                        "endpoint status -w json | grep -o '\"revision\":[0-9]*' | head -1 | cut "
                        "-d: -f2)\"",
                    ctl + "defrag", ctl + "alarm disarm"};
    to.add(std::move(one));
}

}  // namespace

bool has_answered(const etcd_status& one) noexcept {
    return !one.version.empty();
}

void judge_reach(const std::vector<etcd_status>& asked, examination& to) {
    const auto well = static_cast<std::size_t>(
        std::count_if(asked.begin(), asked.end(), [](const auto& s) { return has_answered(s); }));
    for (const etcd_status& one : asked) {
        if (has_answered(one)) continue;
        const std::string why =
            one.errors.empty() ? one.endpoint + ": does not answer" : one.errors.front();
        const auto of_tls = tls_advice(why, words);
        std::string advice = of_tls.empty() ? how_to_reach : of_tls;
        if (well != 0) {
            advice = of_tls.empty()
                         ? "start it again, or take it out of the URL; while it is away one member "
                           "less may be lost"
                         : "until it can be used one member less may be lost: " + of_tls;
        }
        well == 0 ? to.bad("connect", why, advice) : to.warn("connect", why, advice);
    }
    if (asked.empty()) to.bad("connect", "no member has answered in time", how_to_reach);
    if (well == 0) return;
    std::vector<std::string> names;
    for (const etcd_status& one : asked) {
        if (has_answered(one)) names.push_back(one.endpoint);
    }
    to.good("connect", joined(names) + (well == 1 ? " answers" : " answer"));
}

void judge_members(const std::vector<etcd_status>& asked,
                   const std::vector<std::vector<etcd_member>>& told, examination& to) {
    if (differ_in_cluster(asked, to) || differ_in_members(asked, told, to)) return;
    const auto known =
        std::find_if(told.begin(), told.end(), [](const auto& list) { return !list.empty(); });
    if (known == told.end()) return;
    std::vector<std::string> voters;
    std::vector<std::string> learners;
    for (const etcd_member& one : *known) {
        (one.learner ? learners : voters).push_back(name_of(one));
    }
    const std::size_t away = away_of(asked, *known);
    const std::size_t majority = voters.size() / 2 + 1;
    const std::size_t spare = std::max(voters.size() - away, majority) - majority;
    std::string text = count_text(voters, away, spare);
    if (!learners.empty()) text += "; learning " + joined(learners);
    auto figures = json_object().add("voters", voters.size()).add("may_be_lost", spare);
    const auto add = [&](std::string sentence, std::string advice) {
        to.add(
            {level::warn, "members", std::move(sentence), std::move(advice), std::move(figures)});
    };
    const auto removed = those_not_in(asked, *known);
    if (!removed.empty()) {
        return add(text + "; " + joined(removed) + (removed.size() == 1 ? " is" : " are") +
                       " none of them: removed, or not yet added",
                   "take it out of the URL, or add it to the cluster");
    }
    const std::size_t named = named_by(asked, *known);
    if (named < asked.size()) {
        text += "; " + std::to_string(asked.size()) + " places of the URL are " +
                counted(named, "member");
    }
    if (named < voters.size()) {
        return add(text + "; the URL names " + std::to_string(named) +
                       " of them, and without those nobody finds the others",
                   "name all of them: etcd://HOST,HOST,HOST");
    }
    if (away > 0) {
        return add(text,
                   "start those that are away, or find out why they cannot be reached from "
                   "here");
    }
    if (voters.size() == 1) return add(text + nothing_without_it, three_survive_one);
    if (voters.size() % 2 == 0) {
        return add(text + ": as few as with one member less",
                   "add a member, or remove one: an odd number survives more");
    }
    to.good("members", text, std::move(figures));
}

void judge_leader(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all,
                  examination& to) {
    std::set<std::uint64_t> leaders;
    std::set<std::uint64_t> terms;
    std::vector<std::string> without;
    for (const etcd_status& one : asked) {
        if (!has_answered(one)) continue;
        if (one.leader == 0) without.push_back(one.endpoint);
        if (one.leader != 0) leaders.insert(one.leader);
        terms.insert(one.term);
    }
    if (leaders.empty()) {
        return to.bad("leader",
                      "there is none: " + joined(without) +
                          (without.size() == 1 ? " has" : " have") +
                          " lost the majority, and no lock can be taken or renewed",
                      "start the other members, or connect them again; more than half of all must "
                      "see each other");
    }
    if (!without.empty()) {
        return to.warn("leader",
                       joined(without) + (without.size() == 1 ? " has none" : " have none") +
                           " while others follow " + name_of(*leaders.begin(), all) +
                           ": cut off, or just started",
                       "look at its connection to the other members (--listen-peer-urls, port "
                       "2380)");
    }
    if (leaders.size() > 1 || terms.size() > 1) {
        return to.warn("leader", "the members do not agree who leads: an election is under way",
                       "ask again in a moment; when it stays so, look at disks and network of the "
                       "members");
    }
    to.good("leader", name_of(*leaders.begin(), all) + ", term " + std::to_string(*terms.begin()),
            json_object().add("term", *terms.begin()));
}

void judge_etcd_version(const std::vector<etcd_status>& asked, const std::vector<etcd_member>& all,
                        examination& to) {
    std::set<std::string> versions;
    std::vector<std::string> wrong;
    bool is_old = false;
    bool is_34 = false;
    for (const etcd_status& one : asked) {
        if (!has_answered(one)) continue;
        versions.insert(one.version);
        const auto v = etcd_version_of(one.version);
        if (!v) continue;
        is_old = is_old || *v < etcd_version{3, 4, 0};
        is_34 = is_34 || (v->major == 3 && v->minor == 4);
        for (const auto what : faults_of(*v, all.size() == 1)) {
            const bool is_new = std::find(wrong.begin(), wrong.end(), what) == wrong.end();
            if (is_new) wrong.emplace_back(what);
        }
    }
    if (versions.empty()) return;
    std::vector<std::string> names;
    for (const auto& one : versions) names.push_back(shown(one));
    const std::string text = "etcd " + joined(names);
    if (is_old) {
        return to.bad("version", text + "; locks need 3.4 or later", "install a later version");
    }
    if (is_34) {
        wrong.emplace_back(
            "'etcdctl lock' of 3.4 and the server's own Lock service grant to a waiter whose lease "
            "has ended; Trinco's own waiters do not rely on it");
    }
    if (wrong.empty()) {
        if (names.size() == 1) return to.good("version", text);
        return to.warn("version", text + ": the members differ", "finish the upgrade");
    }
    std::string list;
    for (const auto& one : wrong) list += (list.empty() ? ": " : "; ") + one;
    to.warn("version", text + list, "install 3.5.23, 3.6.5 or later");
}

void judge_space(const std::vector<etcd_status>& asked, examination& to) {
    std::int64_t size = 0;
    std::int64_t used = 0;
    bool is_full = false;
    std::string endpoints;
    std::vector<std::string> others;
    for (const etcd_status& one : asked) {
        if (!has_answered(one)) continue;
        size = std::max(size, one.size);
        used = std::max(used, one.size_in_use);
        endpoints += (endpoints.empty() ? "" : ",") + one.endpoint;
        for (const std::string& error : one.errors) {
            const bool is_leaderless = error.find("no leader") != std::string::npos;
            is_full = is_full || is_space_alarm(error);
            if (!is_space_alarm(error) && !is_leaderless) others.push_back(shown(error));
        }
    }
    if (size == 0) return;
    const auto bytes = [](std::int64_t n) { return bytes_text(static_cast<std::uint64_t>(n)); };
    const std::string text = bytes(size) + ", " + bytes(used) + " of it in use";
    for (const std::string& other : others) {
        to.bad("alarm", "the server complains: " + other,
               "look at 'etcdctl alarm list' and at its log before anything is trusted to it");
    }
    if (is_full) return say_full(text, endpoints, to);
    auto figures = json_object().add("bytes", size).add("bytes_in_use", used);
    if (size >= default_quota / 10 * 8) {
        finding one{level::warn, "space",
                    text +
                        ": at its quota, 2 GiB unless --quota-backend-bytes says more, etcd "
                        "takes no lock any more",
                    "etcdctl --endpoints=" + endpoints +
                        " defrag, and let it compact by itself (--auto-compaction-retention)",
                    std::move(figures)};
        return to.add(std::move(one));
    }
    if (used > 0 && size >= worth_defragmenting && size / 4 > used) {
        finding one{level::warn, "space", text + ": the rest is free, and kept for nothing",
                    "etcdctl --endpoints=" + endpoints + " defrag, one member after another",
                    std::move(figures)};
        return to.add(std::move(one));
    }
    to.good("space", text + "; no alarm", std::move(figures));
}

void judge_least_ttl(seconds granted, seconds ours, examination& to) {
    const std::string text = "a lease lives " + duration_words(granted) + " or longer";
    auto figures = json_object().add("least_ttl_s", granted.count());
    if (granted > ours) {
        finding one{level::warn, "ttl",
                    text + ": more than the TTL of " + duration_words(ours) +
                        " that locks ask for, so that the lock of who died stays taken for so long",
                    "lower --election-timeout of etcd: the least TTL is 1.5 times as long",
                    std::move(figures)};
        return to.add(std::move(one));
    }
    to.good("ttl", text + " (1.5 election timeouts); a new leader lets all of them begin anew",
            std::move(figures));
}

void judge_outage(seconds least_ttl, examination& to) {
    // Two thirds of the least TTL are the election timeout.
    judge_outage(least_ttl,
                 {milliseconds(least_ttl) * 2 / 3 * 2,
                  "give locks a longer --ttl, or lower etcd's --election-timeout"},
                 to);
}

}  // namespace trinco::program::doctor
