// Who this process is to a store, when the program does not say.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>

namespace trinco::detail {

// Where the machine says who it is; tests bring their own.
struct identity_sources {
    std::filesystem::path machine_id = "/etc/machine-id";
    std::filesystem::path boot_id = "/proc/sys/kernel/random/boot_id";
    std::filesystem::path cgroup = "/proc/self/cgroup";
    std::filesystem::path mountinfo = "/proc/self/mountinfo";
};

// A name for this process that no other one has or had: host:pid:8 random hex digits. The host's
// name is cut to what names allow. Throws std::system_error when the system gives no randomness.
[[nodiscard]] std::string make_instance_name();

// The failure domain: the machine's id, and ".<12 hex digits>" of the container's where this
// process is in one, because two containers of a machine may well fail apart (limits, images,
// networks). Without a machine id the id of this boot, which all processes of the machine share as
// well. Two machines cloned with their id look like one voter: TRINCO_INSTANCE is for that.
[[nodiscard]] std::string find_voter(const identity_sources& from = {});

// The id of the container as its runtime wrote it into the cgroup path, or, where that is hidden by
// a cgroup namespace, into the source of the mounts it makes (hostname, resolv.conf).
[[nodiscard]] std::optional<std::string> container_id(std::string_view cgroup,
                                                      std::string_view mountinfo);

}  // namespace trinco::detail
