// What a local store asks of the machine: where its file is, who the machine is, which life of it
// this is, and whether the file lies on a disk of its own.
#pragma once

#include <chrono>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>

namespace trinco::detail {

// Gathered once, at opening; tests bring their own.
struct local_settings {
    std::filesystem::path file;  // absolute
    // A life of the machine's kernel, the same in all of its containers. Never empty.
    std::string boot_id;
    // Of the installation; may be empty in a container. Compared across lives only.
    std::string machine_id;
    // Offsets of the boot clock of this time namespace: processes with different ones have
    // different clocks.
    std::string clock_offsets;
    // Whether the folder lies on a file system that other machines may write to as well.
    std::function<bool(const std::filesystem::path& folder)> is_shared_by_machines;
    // The boot clock, as all who share the file see it. Any thread.
    std::function<std::chrono::microseconds()> boot_time;
};

// The machine this process runs on. Throws open_error when it does not say who it is.
[[nodiscard]] local_settings local_settings_for(std::filesystem::path file);

// The default: /var/lib/trinco/local.db for root, .local/state/trinco/local.db in the home that the
// password database names for everybody else. Never from the environment, which a caller may have
// changed (sudo, cron, a service manager) without meaning another store. Both throw open_error; the
// second makes the folder.
[[nodiscard]] std::filesystem::path default_local_name();
[[nodiscard]] std::filesystem::path default_local_file();

// By the kind of file system, as statfs names it. Everything on FUSE counts as shared: nothing
// tells sshfs from a disk there.
[[nodiscard]] bool is_shared_file_system(long kind) noexcept;
[[nodiscard]] bool lies_on_shared_file_system(const std::filesystem::path& folder);

}  // namespace trinco::detail
