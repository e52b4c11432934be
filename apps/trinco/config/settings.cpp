#include "apps/trinco/config/settings.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "apps/trinco/command_line/nearest.hpp"
#include "apps/trinco/config/file_settings.hpp"
#include "apps/trinco/config/lock_ttl.hpp"
#include "apps/trinco/config/user_home.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/store_password.hpp"
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
    enum class kind_t : std::uint8_t { text, url, secret } kind;
};

using kind = known_setting::kind_t;

constexpr std::array known_settings{
    known_setting{"breakers.store", "--breakers", &store_flags::breakers, "TRINCO_BREAKERS",
                  "local:", &settings::breakers_url, kind::url},
    known_setting{"breakers.namespace", "--namespace", &store_flags::name_space, "TRINCO_NAMESPACE",
                  "default", &settings::name_space, kind::text},
    known_setting{"breakers.mirror", "", nullptr, "TRINCO_BREAKERS_MIRROR",
                  "local:", &settings::mirror_url, kind::url},
    known_setting{"breakers.password", "", nullptr, "TRINCO_BREAKERS_PASSWORD", "",
                  &settings::breakers_password, kind::secret},
    known_setting{"breakers.password_file", "", nullptr, "TRINCO_BREAKERS_PASSWORD_FILE", "",
                  &settings::breakers_password_file, kind::text},
    known_setting{"locks.store", "--locks", &store_flags::locks, "TRINCO_LOCKS",
                  "local:", &settings::locks_url, kind::url},
    known_setting{"locks.prefix", "--prefix", &store_flags::prefix, "TRINCO_LOCKS_PREFIX", "",
                  &settings::prefix, kind::text},
    known_setting{"locks.ttl", "", nullptr, "TRINCO_LOCKS_TTL", "15s", &settings::ttl_text,
                  kind::text},
    known_setting{"instance", "--instance", &store_flags::instance, "TRINCO_INSTANCE", "",
                  &settings::instance, kind::text},
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
    if (what.given != nullptr) {
        if (const auto& given = flags.*what.given) return {*given, std::string(what.flag)};
    }
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
    if (what.value == &settings::ttl_text) {
        const auto ttl = parse_ttl(value);
        const auto* const wrong = std::get_if<std::string>(&ttl);
        return wrong == nullptr ? std::nullopt : std::optional(*wrong);
    }
    if (what.kind == kind::url && value.empty())
        return "the store's URL is empty; 'trinco help urls' lists them";
    if (what.value == &settings::mirror_url && value != "none" &&
        detail::scheme_of(value) != "local") {
        return "the mirror " + detail::quoted(detail::shown_url(value), 100) +
               " is no file of this machine; it is local:, local:/path/to/file.db or none";
    }
    return std::nullopt;
}

// What may be seen of a value.
std::string shown(const known_setting& what, const std::string& value) {
    if (what.kind == kind::secret && !value.empty()) return "***";
    return what.kind == kind::url ? detail::shown_url(value) : value;
}

problem in_a_command_line(const std::string& option, const std::string& url) {
    if (holds_token(url)) {
        return {exit_usage,
                option +
                    ": a token in a command line is seen by every user of this machine; name its "
                    "file with token_file= instead, or put it into CONSUL_HTTP_TOKEN, or the URL "
                    "into TRINCO_LOCKS or locks.store of trinco.toml"};
    }
    const std::string cure =
        option == "--breakers"
            ? "it into TRINCO_BREAKERS_PASSWORD, or the name of its file into "
              "TRINCO_BREAKERS_PASSWORD_FILE or breakers.password_file of trinco.toml"
            : "the URL into TRINCO_LOCKS, or locks.store of trinco.toml";
    return {exit_usage,
            option + ": a password in a command line is seen by every user of this machine; put " +
                cure};
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
    auto home = home_of_this_user();
    from.no_home = std::move(home.why_not);
    if (home.folder.is_absolute()) {
        from.files.push_back(home.folder / ".config/trinco/trinco.toml");
    }
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
        const bool is_option = source == "--breakers" || (source == "--locks" && !flags.only_tries);
        if (is_option && (holds_password(value) || holds_token(value))) {
            return in_a_command_line(source, value);
        }
        all.*what.value = value;
        all.all.push_back({std::string(what.key), shown(what, value), source});
    }
    for (const auto& [name, entries] : file.policies) {
        for (const policy_entry& entry : entries) {
            all.all.push_back(
                {"breakers.policies." + name + "." + entry.key, entry.value, entry.source});
        }
    }
    all.ttl = std::get<std::chrono::seconds>(parse_ttl(all.ttl_text));
    all.policies = std::move(file.policies);
    all.policy_problems = std::move(file.policy_problems);
    all.warnings = misspelt(from);
    return all;
}

std::variant<settings, problem> load_settings(const store_flags& flags) {
    return load_settings(flags, settings_sources::of_this_process());
}

}  // namespace trinco::program
