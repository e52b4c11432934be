#include "apps/trinco/config/settings.hpp"

#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>
#include <utility>
#include <vector>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/config/file_settings.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "core/names.hpp"
#include "core/quoted.hpp"
#include "store/shown_url.hpp"

extern char** environ;  // NOLINT: POSIX has it so

namespace trinco::program {
namespace {

constexpr std::string_view ours = "TRINCO_";

using flag_member = std::optional<std::string> store_flags::*;

// One line of the table in the header.
struct known_setting {
    std::string_view key;  // in the file
    std::string_view flag;
    flag_member given;
    std::string_view variable;
    std::string_view standard;
    std::string settings::*value;
    bool is_url;
};

constexpr std::array known_settings{
    known_setting{"breakers.store", "--breakers", &store_flags::breakers, "TRINCO_BREAKERS",
                  "local:", &settings::breakers_url, true},
    known_setting{"breakers.namespace", "--namespace", &store_flags::name_space, "TRINCO_NAMESPACE",
                  "default", &settings::name_space, false},
    known_setting{"locks.store", "--locks", &store_flags::locks, "TRINCO_LOCKS",
                  "local:", &settings::locks_url, true},
    known_setting{"locks.prefix", "--prefix", &store_flags::prefix, "TRINCO_LOCKS_PREFIX", "",
                  &settings::prefix, false},
    known_setting{"instance", "--instance", &store_flags::instance, "TRINCO_INSTANCE", "",
                  &settings::instance, false},
};

// Empty variables count as unset.
std::optional<std::string> variable(const settings_sources& from, std::string_view name) {
    const auto found = from.environment.find(std::string(name));
    if (found == from.environment.end() || found->second.empty()) return std::nullopt;
    return found->second;
}

// Variables of ours that nobody reads and that look like one that is read: a mistyped name must not
// decide in silence where a lock is kept.
std::vector<std::string> misspelt(const settings_sources& from) {
    // The rest are set for the command of `trinco lock`.
    std::vector<std::string_view> known = {"TRINCO_CONFIG", "TRINCO_LOCK", "TRINCO_TOKEN",
                                           "TRINCO_LEASE"};
    std::vector<std::string_view> read = {"CONFIG"};
    for (const known_setting& one : known_settings) {
        known.push_back(one.variable);
        read.push_back(one.variable.substr(ours.size()));
    }
    std::vector<std::string> sentences;
    for (const auto& [name, value] : from.environment) {
        if (value.empty() || std::find(known.begin(), known.end(), name) != known.end()) continue;
        const std::string_view meant = nearest(std::string_view(name).substr(ours.size()), read);
        if (meant.empty()) continue;
        sentences.push_back("the variable " + name + " is not read; did you mean " +
                            std::string(ours) + std::string(meant) + "?");
    }
    return sentences;
}

struct sourced {
    std::string value;
    std::string source;
};

sourced strongest(const known_setting& what, const store_flags& flags, const settings_sources& from,
                  const file_settings& file) {
    if (const auto& given = flags.*what.given) return {*given, std::string(what.flag)};
    if (auto set = variable(from, what.variable)) return {*set, std::string(what.variable)};
    if (const auto found = file.values.find(std::string(what.key)); found != file.values.end()) {
        return {found->second.text, found->second.source};
    }
    return {std::string(what.standard), "default"};
}

// What the library would refuse when the store is opened, said with its source.
std::optional<std::string> complaint(const known_setting& what, const std::string& value) {
    if (what.value == &settings::name_space) return detail::check_namespace(value);
    if (what.value == &settings::instance && !value.empty()) return detail::check_instance(value);
    if (what.value == &settings::prefix && !value.empty()) {
        // With the shortest name behind it, it must be a name.
        return detail::check_lock_name(value + "x")
                   ? std::optional<std::string>("the prefix " + detail::quoted(value) +
                                                " begins no name of a lock; those are of "
                                                "[A-Za-z0-9._/-], in segments between '/'")
                   : std::nullopt;
    }
    if (what.is_url && value.empty())
        return "the store's URL is empty; 'trinco help urls' lists them";
    return std::nullopt;
}

std::variant<file_settings, problem> read_files(const store_flags& flags,
                                                const settings_sources& from) {
    const auto set = variable(from, "TRINCO_CONFIG");
    const auto& named = flags.config ? flags.config : set;
    file_settings all;
    if (named) {
        const std::string_view source = flags.config ? "--config" : "TRINCO_CONFIG";
        auto wrong = add_file(*named, all, [&] {
            return "the configuration " + detail::quoted(*named, 1'000) + " of " +
                   std::string(source) + " does not exist";
        });
        if (wrong) return *wrong;
        return all;
    }
    if (!from.no_home.empty()) return problem{exit_unavailable, from.no_home};
    for (const auto& file : from.files) {
        if (auto wrong = add_file(file, all, nullptr)) return *wrong;
    }
    return all;
}

// By the password database. Where that cannot be read it is not the same as a user without a home:
// settings that are there would not count.
std::filesystem::path home_of_this_user(std::string& why_not) {
    errno = 0;
    const ::passwd* const entry = ::getpwuid(::geteuid());
    if (entry != nullptr) return entry->pw_dir == nullptr ? "" : entry->pw_dir;
    if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EIO) {
        why_not = "the home of the user " + std::to_string(::geteuid()) +
                  ", and with it the configuration, cannot be looked up: " +
                  std::generic_category().message(errno);
    }
    return {};
}

}  // namespace

settings_sources settings_sources::of_this_process() {
    settings_sources from;
    for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
        const std::string_view text = *entry;
        const auto equals = text.find('=');
        if (!text.starts_with(ours) || equals == std::string_view::npos) continue;
        from.environment.emplace(text.substr(0, equals), text.substr(equals + 1));
    }
    from.files.emplace_back("/etc/trinco.toml");
    // Not of HOME: a job under cron or sudo must not get other settings without knowing.
    const auto home = home_of_this_user(from.no_home);
    if (home.is_absolute()) from.files.push_back(home / ".config/trinco/trinco.toml");
    return from;
}

std::variant<settings, problem> load_settings(const store_flags& flags,
                                              const settings_sources& from) {
    auto read = read_files(flags, from);
    if (auto* const wrong = std::get_if<problem>(&read)) return std::move(*wrong);
    auto& file = std::get<file_settings>(read);
    settings all;
    for (const known_setting& what : known_settings) {
        const auto [value, source] = strongest(what, flags, from, file);
        if (const auto wrong = complaint(what, value)) {
            return problem{exit_usage, source + ": " + *wrong};
        }
        all.*what.value = value;
        all.all.push_back(
            {std::string(what.key), what.is_url ? detail::shown_url(value) : value, source});
    }
    for (const auto& [name, entries] : file.policies) {
        for (const policy_entry& entry : entries) {
            all.all.push_back(
                {"breakers.policies." + name + "." + entry.key, entry.value, entry.source});
        }
    }
    all.policies = std::move(file.policies);
    all.policy_problems = std::move(file.policy_problems);
    all.warnings = misspelt(from);
    return all;
}

std::variant<settings, problem> load_settings(const store_flags& flags) {
    return load_settings(flags, settings_sources::of_this_process());
}

}  // namespace trinco::program
