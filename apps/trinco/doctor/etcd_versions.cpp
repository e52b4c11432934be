#include "apps/trinco/doctor/etcd_versions.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>

namespace trinco::program::doctor {
namespace {

// Of 3.`minor`: from 3.`minor`.`since` on, until it was fixed.
struct spell {
    int minor = 0;
    int since = 0;
    int fixed = 0;
};

struct fault {
    std::string_view what;
    std::array<spell, 3> in;  // what is not used has since == fixed
    bool alone = false;       // of a cluster of one member only
};

// From CHANGELOG-3.4.md, -3.5.md and -3.6.md of etcd and the threads that are named; the first two
// from its Documentation/postmortems/v3.5-data-inconsistency.md, too.
constexpr std::array faults{
    fault{"a member that is killed under load may lack what the others have (etcd#13766), so that "
          "two may hold one lock",
          {spell{5, 0, 3}}},
    fault{"the only member may forget what it has confirmed when it is killed (etcd#14370): a "
          "granted lock, a record of once",
          {spell{4, 0, 21}, {5, 0, 5}},
          true},
    fault{"a member that is killed while it is defragmented may differ from the others from then "
          "on (etcd#14733)",
          {spell{5, 0, 6}}},
    fault{"a member that is added where users are asked for may lack what the others have "
          "(etcd#14571)",
          {spell{4, 20, 22}, {5, 5, 6}}},
    fault{"a leader that was paused revokes leases that live (etcd#15247): a lock may be lost "
          "without a cause",
          {spell{4, 0, 31}, {5, 0, 13}, {6, 0, 0}}},
    fault{"a renewal may be answered well although the lease was just revoked (etcd#20616): a "
          "holder may learn of its loss one renewal late",
          {spell{4, 0, 38}, {5, 0, 23}, {6, 0, 5}}},
    fault{"an event of a watch may be lost after a compaction: who waits for a lock finds out "
          "by looking, some seconds late",
          {spell{4, 0, 31}, {5, 0, 13}, {6, 0, 0}}},
    fault{"a deletion may be lost to a watch that begins where was compacted (etcd#19179), with "
          "the same effect",
          {spell{4, 0, 36}, {5, 0, 18}, {6, 0, 0}}},
};

bool has(const fault& one, const etcd_version& v) {
    return std::any_of(one.in.begin(), one.in.end(), [&](const spell& in) {
        const etcd_version fixed{3, in.minor, in.fixed};
        return v.major == 3 && v.minor == in.minor && v.patch >= in.since && v < fixed;
    });
}

}  // namespace

std::optional<etcd_version> etcd_version_of(std::string_view text) {
    etcd_version v;
    for (int* const part : {&v.major, &v.minor, &v.patch}) {
        if (part != &v.major && !text.starts_with('.')) return std::nullopt;
        if (part != &v.major) text.remove_prefix(1);
        const auto read = std::from_chars(text.data(), text.data() + text.size(), *part);
        if (read.ec != std::errc()) return std::nullopt;
        text.remove_prefix(static_cast<std::size_t>(read.ptr - text.data()));
    }
    constexpr std::array<std::string_view, 4> candidates{"-alpha", "-beta", "-rc", "-pre"};
    const bool is_candidate =
        std::any_of(candidates.begin(), candidates.end(),
                    [&](std::string_view one) { return text.starts_with(one); });
    if (is_candidate) v.of = etcd_version::stage::candidate;
    return v;
}

std::vector<std::string_view> faults_of(const etcd_version& v, bool alone) {
    std::vector<std::string_view> all;
    for (const fault& one : faults) {
        if (has(one, v) && (alone || !one.alone)) all.push_back(one.what);
    }
    return all;
}

}  // namespace trinco::program::doctor
