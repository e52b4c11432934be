#include "apps/trinco/doctor/server_facts.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "core/quoted.hpp"

namespace trinco::program::doctor {
namespace {

constexpr unsigned lowest_major = 6;
constexpr std::uint64_t nearly_full = 90;  // percent
constexpr std::string_view comes_back =
    "running processes bring states, overrides and options back; counts of the window, probes "
    "under way and totals are lost";

std::string in_mebibytes(std::uint64_t bytes) {
    constexpr std::uint64_t mebibyte = 1024 * 1024;
    return std::to_string((bytes + mebibyte / 2) / mebibyte) + " MiB";
}

// "7" of "7.0.15".
unsigned major_of(std::string_view version) {
    unsigned n = 0;
    std::from_chars(version.data(), version.data() + version.size(), n);
    return n;
}

bool is_yes(const std::optional<std::string>& text) {
    return text == "yes" || text == "1";
}

std::string foreign(std::string_view text) {
    return detail::quoted(text, 60);
}

}  // namespace

void server_facts::read_info(std::string_view text) {
    while (!text.empty()) {
        const auto end = std::min(text.find('\n'), text.size());
        std::string_view line = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        if (line.ends_with('\r')) line.remove_suffix(1);
        const auto colon = line.find(':');
        if (line.starts_with('#') || colon == std::string_view::npos || colon == 0) continue;
        said_.insert_or_assign(std::string(line.substr(0, colon)),
                               std::string(line.substr(colon + 1)));
    }
}

void server_facts::set_config(std::string key, std::string value) {
    said_.insert_or_assign(std::move(key), std::move(value));
}

std::optional<std::string> server_facts::text(const std::string& key) const {
    const auto found = said_.find(key);
    if (found == said_.end()) return std::nullopt;
    return found->second;
}

std::optional<std::uint64_t> server_facts::number(const std::string& key) const {
    const auto found = said_.find(key);
    if (found == said_.end()) return std::nullopt;
    std::uint64_t n = 0;
    const char* const end = found->second.data() + found->second.size();
    const auto read = std::from_chars(found->second.data(), end, n);
    if (read.ec != std::errc() || read.ptr != end) return std::nullopt;
    return n;
}

void judge_version(const server_facts& facts, examination& to) {
    const auto valkey = facts.text("valkey_version");
    const auto redis = facts.text("redis_version");
    if (!valkey && !redis) return;
    const std::string what = valkey ? "Valkey " + foreign(*valkey) : "Redis " + foreign(*redis);
    // Valkey says for which Redis it stands in.
    if (redis && major_of(*redis) < lowest_major) {
        return to.bad("version", what + "; its scripts need Redis 6.0 or later",
                      "install Redis from 6.0 on, or Valkey");
    }
    to.good("version", what);
}

void judge_role(const server_facts& facts, examination& to) {
    const auto role = facts.text("role");
    if (!role) return;
    if (*role == "master") return to.good("role", "a primary: it takes writes");
    const auto host = facts.text("master_host");
    const auto port = facts.text("master_port");
    const std::string of =
        host && port ? " of " + foreign(*host + ":" + *port) : std::string(" of another server");
    to.bad("role", "a replica" + of + ": it refuses what breakers write",
           "name the primary, or the Sentinels that know it: redis+sentinel://HOST,HOST/NAME");
}

void judge_memory(const server_facts& facts, examination& to) {
    const auto policy = facts.text("maxmemory-policy") ? facts.text("maxmemory-policy")
                                                       : facts.text("maxmemory_policy");
    const auto limit = facts.number("maxmemory");
    const auto used = facts.number("used_memory");
    if (policy && *policy != "noeviction") {
        const std::string when =
            limit == 0 ? "no maxmemory is set, but once it is" : "when the memory is used up";
        to.warn("eviction",
                "maxmemory-policy is " + foreign(*policy) + ": " + when +
                    ", records of breakers are thrown away, since all of them have a time to live",
                "CONFIG SET maxmemory-policy noeviction, here and in its file; or give breakers a "
                "server of their own");
    } else if (policy) {
        to.good("eviction", "maxmemory-policy is noeviction: nothing is thrown away");
    }
    if (!limit || !used) return;
    if (*limit == 0) return to.good("memory", in_mebibytes(*used) + " used; no limit is set");
    const std::string text = in_mebibytes(*used) + " of " + in_mebibytes(*limit) + " used";
    if (*used / (*limit / 100 + 1) < nearly_full) return to.good("memory", text);
    to.warn("memory", text + ": when it is full breakers decide without it",
            "raise maxmemory, or find out what fills it: MEMORY STATS");
}

void judge_persistence(const server_facts& facts, examination& to) {
    const auto appended =
        facts.text("appendonly") ? facts.text("appendonly") : facts.text("aof_enabled");
    if (!appended) return;
    if (is_yes(appended)) {
        const auto synced = facts.text("appendfsync").value_or("everysec");
        return to.good("persistence", "appendonly is on, appendfsync " + foreign(synced) +
                                          ": a crash loses " +
                                          (synced == "always"     ? "nothing"
                                           : synced == "everysec" ? "about a second"
                                                                  : "what the kernel had not "
                                                                    "written"));
    }
    const auto saved = facts.text("save");
    if (!saved) {
        return to.good("persistence", "no appendonly; what a restart loses it does not tell: " +
                                          std::string(comes_back));
    }
    if (saved->empty()) {
        return to.warn("persistence",
                       "none: a restart begins with an empty database; " + std::string(comes_back),
                       "appendonly yes, unless processes that use the breakers always run");
    }
    to.good("persistence", "snapshots (save " + foreign(*saved) +
                               "): a crash goes back to the last one; " + std::string(comes_back));
}

void judge_replicas(const server_facts& facts, examination& to) {
    if (facts.text("role") != "master") return;
    const auto there = facts.number("connected_slaves");
    if (!there) return;
    const std::uint64_t needed = facts.number("min-replicas-to-write").value_or(0);
    const std::uint64_t well = facts.number("min_slaves_good_slaves").value_or(*there);
    const std::string number = std::to_string(*there) + (*there == 1 ? " replica" : " replicas");
    if (needed > well) {
        return to.bad("replicas",
                      number + ", " + std::to_string(well) +
                          " of them well, and it takes no "
                          "writes with fewer than " +
                          std::to_string(needed) + " (NOREPLICAS)",
                      "start a replica, or lower min-replicas-to-write");
    }
    if (*there == 0) {
        return to.good("replicas",
                       "none: while it is away each process decides by itself, with the state that "
                       "it last heard");
    }
    to.good("replicas",
            number + (needed == 0 ? "; min-replicas-to-write is 0, so a fail-over may "
                                    "go back a moment: " +
                                        std::string(comes_back)
                                  : "; min-replicas-to-write is " + std::to_string(needed)));
}

}  // namespace trinco::program::doctor
