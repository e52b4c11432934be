// One store for all users of a machine: a group, a folder that is theirs, and a configuration that
// names the file in it.
//
//   group    trinco, by groupadd, when there is none
//   folder   /var/lib/trinco, root:trinco, mode 2770: what is made in it belongs to the group
//   file     /var/lib/trinco/local.db and what lies beside it (-wal, -shm, -gate, -live),
//            root:trinco, mode 0660. Whoever makes a file beside it gives it the database's mode
//   setting  breakers.store and locks.store in /etc/trinco.toml
//
// Repeatable: what is as it should be is left alone. The setting is looked at first and written
// last, so that a conflict there changes nothing and nobody is sent to a store that is not there.
// What members of the group may have put into the folder is not trusted: links are not followed.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

struct machine_setup {
    std::filesystem::path root = "/";  // of the system to set up: an image in a folder
    bool dry_run = false;
    // Told of each step: "made the folder ..."; with dry_run "would make ...".
    std::function<void(const std::string&)> tell;
};

// Needs root. Nothing when all is done.
[[nodiscard]] std::optional<problem> set_up_machine(const machine_setup& how);

}  // namespace trinco::program
