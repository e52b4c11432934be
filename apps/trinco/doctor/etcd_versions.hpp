// Versions of etcd, and what is known to be wrong with each where it matters to locks. Pure.
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

namespace trinco::program::doctor {

// A candidate comes before its release: 3.6.0-rc.1 before 3.6.0.
struct etcd_version {
    enum class stage : std::uint8_t { candidate, release };
    int major = 0;
    int minor = 0;
    int patch = 0;
    stage of = stage::release;
    auto operator<=>(const etcd_version&) const = default;
};

// "3.5.16", "3.6.0-rc.1"; what else is behind a release, as in "3.5.9-rke2r1", is its packager's.
[[nodiscard]] std::optional<etcd_version> etcd_version_of(std::string_view text);

// What to know of it, a clause each. `alone`: it is the only member of its cluster.
[[nodiscard]] std::vector<std::string_view> faults_of(const etcd_version& v, bool alone);

}  // namespace trinco::program::doctor
