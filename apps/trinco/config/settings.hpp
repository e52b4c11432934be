// What holds for an invocation: flag > environment > file > default, and for each value its source.
//
//   setting       flag          environment             file                default
//   breakers      --breakers    TRINCO_BREAKERS         breakers.store      local:
//   locks         --locks       TRINCO_LOCKS            locks.store         local:
//   namespace     --namespace   TRINCO_NAMESPACE        breakers.namespace  default
//   prefix        --prefix      TRINCO_LOCKS_PREFIX     locks.prefix        (empty)
//   TTL           --ttl         TRINCO_LOCKS_TTL        locks.ttl           15s
//   instance      --instance    TRINCO_INSTANCE         instance            found by the library
//   mirror        -             TRINCO_BREAKERS_MIRROR  breakers.mirror     local:
//   password      -             TRINCO_BREAKERS_PASSWORD       -                       (none)
//   its file      -             TRINCO_BREAKERS_PASSWORD_FILE  breakers.password_file  (none)
//   [breakers.policies.NAME] ...  policy of `trinco call NAME`; see policy_of
//
// The file is that of --config or TRINCO_CONFIG, which must exist; otherwise what there is of
// /etc/trinco.toml and .config/trinco/trinco.toml in the user's home (passwd), the latter's values
// above. The mirror is where 'trinco call' remembers what a server told it, "none" for nowhere. The
// password is that of the server of the breakers; a command line with one, or with a token of
// Consul, is refused, because every user of the machine can read it. No file of the working
// directory: where a job runs must not decide where its lock is kept. A file that is there and
// cannot be read is a problem, and an unknown key is one that names the nearest known one, with
// file and line. What is wrong within a policy concerns only who uses it: a lock is taken all the
// same. A variable with nearly the name of one above is warned of.
#pragma once

#include <chrono>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "apps/trinco/problem.hpp"

namespace trinco::program {

// As given on the command line.
struct store_flags {
    std::optional<std::string> config, breakers, locks, name_space, prefix, instance;
    // What is only tried has no other place for its URL: there a password may stand in --locks.
    bool only_tries = false;
};

struct setting {
    std::string key;     // "breakers.store"
    std::string value;   // secrets hidden
    std::string source;  // "--breakers", "TRINCO_BREAKERS", "/etc/trinco.toml:3", "default"
};

struct policy_entry {
    std::string key;     // an option's key, as `trinco help options` lists it; or failure_exit ...
    std::string value;   // as written; a list with commas between
    std::string source;  // file:line
};

struct policy_problem {
    std::string breaker;
    std::string sentence;  // with file and line
};

struct settings {
    std::string breakers_url;
    std::string breakers_password;       // not to be shown
    std::string breakers_password_file;  // read when the store is opened
    std::string mirror_url;              // of local:, or "none"
    std::string locks_url;
    std::string name_space;
    std::string prefix;
    std::string ttl_text;
    std::chrono::seconds ttl{0};  // of ttl_text: what locks ask for without --ttl
    std::string instance;         // empty: found by the library
    std::map<std::string, std::vector<policy_entry>> policies;  // by breaker
    std::vector<policy_problem> policy_problems;  // keys and kinds; values are not read
    std::vector<setting> all;                     // for `trinco config show`
    std::vector<std::string> warnings;            // sentences; said once by whoever opens a store
};

// Where to look; tests bring their own.
struct settings_sources {
    std::map<std::string, std::string> environment;  // TRINCO_* only
    std::vector<std::filesystem::path> files;        // that may be missing, weakest first
    std::string no_home;  // a sentence when the user's file could not be looked for
    static settings_sources of_this_process();
};

[[nodiscard]] std::variant<settings, problem> load_settings(const store_flags& flags,
                                                            const settings_sources& from);
// The same with this process's sources.
[[nodiscard]] std::variant<settings, problem> load_settings(const store_flags& flags);

}  // namespace trinco::program
