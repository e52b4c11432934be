#include "apps/trinco/doctor/server_facts.hpp"

#include <algorithm>
#include <charconv>
#include <utility>

#include "apps/trinco/output/bytes_text.hpp"
#include "core/quoted.hpp"

namespace trinco::program::doctor {
namespace {

constexpr unsigned lowest_major = 6;
constexpr std::uint64_t nearly_full = 90;  // percent
constexpr std::string_view full =
    "the server refuses what breakers write (OOM), and they decide without it";
constexpr std::string_view comes_back =
    "running processes bring states, overrides and options back; counts of the window, probes "
    "under way and totals are lost";

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

// Without quotes, for what is to be copied.
std::string foreign_word(std::string_view text) {
    const std::string shown = foreign(text);
    return shown.substr(1, shown.size() - 2);
}

// As a URL has it: an address of IPv6 in brackets.
std::string url_host(const std::string& host) {
    const std::string word = foreign_word(host);
    return host.find(':') == std::string::npos ? word : "[" + word + "]";
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
    const std::string primary =
        host && port ? ", redis://" + url_host(*host) + ":" + foreign_word(*port) : "";
    std::string text = "a replica" + of + ": it refuses what breakers write";
    if (facts.text("master_link_status").value_or("up") != "up") {
        text += "; its connection to the primary is down";
    }
    to.bad("role", std::move(text),
           "name the primary" + primary +
               ", or the Sentinels that know it: redis+sentinel://HOST,HOST/NAME");
}

void judge_memory(const server_facts& facts, bool writes_refused, examination& to) {
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
    const std::string advice =
        "raise maxmemory (CONFIG SET maxmemory BYTES, and in its file), or find out what fills it: "
        "MEMORY STATS";
    if (!limit || !used) {
        if (!writes_refused) return;
        return to.bad("memory", "all that maxmemory allows is used: " + std::string(full), advice);
    }
    // Buffers of replicas and of the file may exceed the limit.
    const auto not_counted = std::min(*used, facts.number("mem_not_counted_for_evict").value_or(0));
    if (*limit == 0) return to.good("memory", bytes_text(*used) + " used; no limit is set");
    const std::string text = bytes_text(*used) + " of " + bytes_text(*limit) + " used";
    if (writes_refused || (policy == "noeviction" && *used - not_counted > *limit)) {
        return to.bad("memory", text + ": " + std::string(full), advice);
    }
    if (*used / (*limit / 100 + 1) < nearly_full) return to.good("memory", text);
    to.warn("memory", text + ": when it is full breakers decide without it", advice);
}

void judge_persistence(const server_facts& facts, bool writes_refused, examination& to) {
    if (writes_refused) {
        return to.bad(
            "persistence",
            "it cannot save to its disk, and refuses all writes until it can (MISCONF)",
            "free space in its folder (CONFIG GET dir); its log says what failed, LASTSAVE "
            "when it last saved. CONFIG SET stop-writes-on-bgsave-error no lets it go on "
            "unsaved");
    }
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
