#include "apps/trinco/config/settings.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "apps/trinco/exit_codes.hpp"

namespace trinco::program {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

struct Settings : testing::Test {
    Settings() {
        std::string pattern = (fs::temp_directory_path() / "trinco-settings-XXXXXX").native();
        folder = ::mkdtemp(pattern.data());
        from.files = {folder / "system.toml", folder / "user.toml"};
    }
    ~Settings() override { fs::remove_all(folder); }

    std::string write(const std::string& name, const std::string& text) const {
        std::ofstream(folder / name) << text;
        return (folder / name).native();
    }

    settings load() {
        auto loaded = load_settings(flags, from);
        if (const auto* const wrong = std::get_if<problem>(&loaded)) {
            ADD_FAILURE() << wrong->sentence;
            return {};
        }
        return std::get<settings>(std::move(loaded));
    }

    std::string mistake() {
        const auto loaded = load_settings(flags, from);
        const auto* const wrong = std::get_if<problem>(&loaded);
        if (wrong == nullptr) return "";
        EXPECT_EQ(exit_usage, wrong->code);
        return wrong->sentence;
    }
    // Of a user's file with that text, without the file's name.
    std::string mistake_in(const std::string& text) {
        const std::string file = write("user.toml", text);
        const std::string said = mistake();
        EXPECT_TRUE(said.starts_with(file + ":")) << said;
        return said.substr(std::min(said.size(), file.size() + 1));
    }

    // The first one of a policy, of a user's file with that text, without the file's name.
    std::string policy_mistake_in(const std::string& text) {
        const std::string file = write("user.toml", text);
        const settings with = load();
        if (with.policy_problems.empty()) return "(none)";
        const std::string& said = with.policy_problems.front().sentence;
        EXPECT_TRUE(said.starts_with(file + ":")) << said;
        return said.substr(std::min(said.size(), file.size() + 1));
    }

    static std::string source_of(const settings& with, const std::string& key) {
        for (const setting& one : with.all) {
            if (one.key == key) return one.source;
        }
        return "";
    }
    static std::string shown(const settings& with, const std::string& key) {
        for (const setting& one : with.all) {
            if (one.key == key) return one.value;
        }
        return "";
    }

    fs::path folder;
    store_flags flags;
    settings_sources from;
};

TEST_F(Settings, DefaultsHoldWithoutAnything) {
    const settings with = load();
    EXPECT_EQ("local:", with.breakers_url);
    EXPECT_EQ("local:", with.locks_url);
    EXPECT_EQ("default", with.name_space);
    EXPECT_EQ("", with.prefix);
    EXPECT_EQ("", with.instance);
    EXPECT_EQ("local:", with.mirror_url);
    EXPECT_EQ(15s, with.ttl);
    EXPECT_EQ(9U, with.all.size());
    for (const setting& one : with.all) EXPECT_EQ("default", one.source);
}

TEST_F(Settings, APasswordIsReadFromEverywhereButACommandLine) {
    from.environment = {{"TRINCO_BREAKERS", "redis://:geheim@h"}};
    EXPECT_EQ("redis://:geheim@h", load().breakers_url);
    EXPECT_EQ("redis://***@h", shown(load(), "breakers.store"));
    from.environment = {{"TRINCO_BREAKERS_PASSWORD", "geheim"}};
    EXPECT_EQ("geheim", load().breakers_password);
    EXPECT_EQ("***", shown(load(), "breakers.password"));
    EXPECT_EQ("TRINCO_BREAKERS_PASSWORD", source_of(load(), "breakers.password"));
    from.environment.clear();
    const std::string file = write("user.toml", "breakers.password_file = \"/p\"\n");
    EXPECT_EQ("/p", load().breakers_password_file);
    EXPECT_EQ(file + ":1", source_of(load(), "breakers.password_file"));
    flags.breakers = "redis://ann:geheim@h";
    EXPECT_TRUE(mistake().starts_with("--breakers: a password in a command line is seen"));
    EXPECT_EQ(std::string::npos, mistake().find("geheim"));
    flags.breakers = "redis://ann@h";
    EXPECT_EQ("redis://ann@h", load().breakers_url);
}

TEST_F(Settings, ATokenIsReadFromEverywhereButACommandLine) {
    for (const char* url : {"consul://h?token=geheim", "consul://h:8500/?token=geheim",
                            "consuls://h?dc=x&token=geheim", "CONSUL://h?token=geheim@x"}) {
        flags.locks.reset();
        from.environment = {{"TRINCO_LOCKS", url}};
        EXPECT_EQ(url, load().locks_url);
        from.environment.clear();
        flags.locks = url;
        EXPECT_TRUE(mistake().starts_with("--locks: a token in a command line is seen")) << url;
        for (const char* place : {"token_file=", "CONSUL_HTTP_TOKEN", "TRINCO_LOCKS"}) {
            EXPECT_NE(std::string::npos, mistake().find(place)) << place;
        }
        EXPECT_EQ(std::string::npos, mistake().find("geheim")) << url;
    }
    for (const char* url : {"consul://h?token_file=/etc/token", "consul://h?token_epoch=3",
                            "etcd://h?token_epoch=1"}) {
        flags.locks = url;
        EXPECT_EQ(url, load().locks_url);
    }
}

TEST_F(Settings, AMirrorIsOfThisMachine) {
    for (const char* url : {"local:", "local:/x.db", "none"}) {
        from.environment = {{"TRINCO_BREAKERS_MIRROR", url}};
        EXPECT_EQ(url, load().mirror_url);
    }
    for (const char* url : {"redis://h", "memory:", "off"}) {
        from.environment = {{"TRINCO_BREAKERS_MIRROR", url}};
        EXPECT_TRUE(mistake().starts_with("TRINCO_BREAKERS_MIRROR: the mirror \""));
    }
}

constexpr const char* whole_file = R"(instance = "file-instance"

[locks]
store = "memory:file-locks"
prefix = "file/"

[breakers]
store = "memory:file-breakers"
namespace = "file-space"
)";

void expect_all(const settings& with, const std::string& name) {
    EXPECT_EQ("memory:" + name + "-breakers", with.breakers_url);
    EXPECT_EQ("memory:" + name + "-locks", with.locks_url);
    EXPECT_EQ(name + "-space", with.name_space);
    EXPECT_EQ(name + "/", with.prefix);
    EXPECT_EQ(name + "-instance", with.instance);
}

TEST_F(Settings, AFileCountsMoreThanDefaults) {
    const std::string file = write("user.toml", whole_file);
    const settings with = load();
    expect_all(with, "file");
    EXPECT_EQ(file + ":1", source_of(with, "instance"));
    EXPECT_EQ(file + ":4", source_of(with, "locks.store"));
    EXPECT_EQ(file + ":5", source_of(with, "locks.prefix"));
    EXPECT_EQ(file + ":8", source_of(with, "breakers.store"));
    EXPECT_EQ(file + ":9", source_of(with, "breakers.namespace"));
}

TEST_F(Settings, TheEnvironmentCountsMoreThanAFile) {
    write("user.toml", whole_file);
    from.environment = {{"TRINCO_BREAKERS", "memory:env-breakers"},
                        {"TRINCO_LOCKS", "memory:env-locks"},
                        {"TRINCO_NAMESPACE", "env-space"},
                        {"TRINCO_LOCKS_PREFIX", "env/"},
                        {"TRINCO_INSTANCE", "env-instance"}};
    const settings with = load();
    expect_all(with, "env");
    EXPECT_EQ("TRINCO_BREAKERS", source_of(with, "breakers.store"));
    EXPECT_EQ("TRINCO_LOCKS", source_of(with, "locks.store"));
    EXPECT_EQ("TRINCO_NAMESPACE", source_of(with, "breakers.namespace"));
    EXPECT_EQ("TRINCO_LOCKS_PREFIX", source_of(with, "locks.prefix"));
    EXPECT_EQ("TRINCO_INSTANCE", source_of(with, "instance"));
}

TEST_F(Settings, FlagsCountMost) {
    from.environment = {{"TRINCO_BREAKERS", "memory:env-breakers"},
                        {"TRINCO_LOCKS", "memory:env-locks"},
                        {"TRINCO_NAMESPACE", "env-space"},
                        {"TRINCO_LOCKS_PREFIX", "env/"},
                        {"TRINCO_INSTANCE", "env-instance"}};
    flags.breakers = "memory:flag-breakers";
    flags.locks = "memory:flag-locks";
    flags.name_space = "flag-space";
    flags.prefix = "flag/";
    flags.instance = "flag-instance";
    const settings with = load();
    expect_all(with, "flag");
    EXPECT_EQ("--breakers", source_of(with, "breakers.store"));
    EXPECT_EQ("--locks", source_of(with, "locks.store"));
    EXPECT_EQ("--namespace", source_of(with, "breakers.namespace"));
    EXPECT_EQ("--prefix", source_of(with, "locks.prefix"));
    EXPECT_EQ("--instance", source_of(with, "instance"));
}

TEST_F(Settings, AnEmptyVariableIsNone) {
    from.environment = {{"TRINCO_LOCKS", ""}, {"TRINCO_CONFIG", ""}, {"TRINCO_NAMESPACE", ""}};
    const settings with = load();
    EXPECT_EQ("local:", with.locks_url);
    EXPECT_EQ("default", with.name_space);
}

TEST_F(Settings, AMistypedVariableIsWarnedOf) {
    from.environment = {{"TRINCO_LOCK", "job"},
                        {"TRINCO_TOKEN", "7"},
                        {"TRINCO_LEASE", "x"},
                        {"TRINCO_LOCKS", "memory:"},
                        {"TRINCO_SEED", "4711"}};
    EXPECT_TRUE(load().warnings.empty());
    from.environment = {{"TRINCO_BREAKER", "memory:"}, {"TRINCO_LOKCS", ""}};
    EXPECT_EQ((std::vector<std::string>{
                  "the variable TRINCO_BREAKER is not read; did you mean TRINCO_BREAKERS?"}),
              load().warnings);
}

TEST_F(Settings, TheUsersFileCountsMoreThanTheSystemsKeyByKey) {
    const std::string system = write("system.toml",
                                     "[locks]\nstore = 'memory:s'\nprefix = 's/'\n"
                                     "[breakers.policies.p]\nopen_for = '1s'\n"
                                     "failure_rate = 0.5\n");
    const std::string user = write("user.toml",
                                   "locks.store = 'memory:u'\n"
                                   "breakers.policies.p.open_for = '2s'\n");
    const settings with = load();
    EXPECT_EQ("memory:u", with.locks_url);
    EXPECT_EQ("s/", with.prefix);
    EXPECT_EQ(user + ":1", source_of(with, "locks.store"));
    EXPECT_EQ(system + ":3", source_of(with, "locks.prefix"));
    ASSERT_EQ(2U, with.policies.at("p").size());
    EXPECT_EQ("2s", with.policies.at("p")[0].value);
    EXPECT_EQ(user + ":2", with.policies.at("p")[0].source);
    EXPECT_EQ("0.5", with.policies.at("p")[1].value);
}

TEST_F(Settings, ANamedFileIsTheOnlyOne) {
    write("user.toml", "[locks]\nstore = 'memory:u'\nprefix = 'u/'\n");
    flags.config = write("own.toml", "[locks]\nstore = 'memory:own'\n");
    const settings with = load();
    EXPECT_EQ("memory:own", with.locks_url);
    EXPECT_EQ("", with.prefix);
}

TEST_F(Settings, TheFlagNamesTheFileBeforeTheVariable) {
    flags.config = write("flag.toml", "[locks]\nstore = 'memory:flag'\n");
    from.environment["TRINCO_CONFIG"] = write("env.toml", "[locks]\nstore = 'memory:env'\n");
    EXPECT_EQ("memory:flag", load().locks_url);
    flags.config.reset();
    EXPECT_EQ("memory:env", load().locks_url);
}

TEST_F(Settings, ANamedFileMustExist) {
    flags.config = "/none/such.toml";
    EXPECT_EQ("the configuration \"/none/such.toml\" of --config does not exist", mistake());
    flags.config.reset();
    from.environment["TRINCO_CONFIG"] = "/none/such.toml";
    EXPECT_EQ("the configuration \"/none/such.toml\" of TRINCO_CONFIG does not exist", mistake());
}

TEST_F(Settings, AFolderIsNoFile) {
    flags.config = folder.native();
    EXPECT_EQ("the configuration \"" + folder.native() + "\" cannot be read: Is a directory",
              mistake());
}

TEST_F(Settings, AFileThatNeverEndsIsTooLarge) {
    flags.config = "/dev/zero";
    EXPECT_EQ("the configuration \"/dev/zero\" cannot be read: it is larger than 1 MiB", mistake());
}

TEST_F(Settings, WhatIsNotTomlIsNamedWithItsLine) {
    EXPECT_TRUE(mistake_in("[locks]\nstore = local:\n").starts_with("2: this is not TOML: "));
    EXPECT_TRUE(mistake_in("a = 1\na = 2\n").starts_with("2: this is not TOML: "));
    EXPECT_TRUE(mistake_in("\xff\xfe\n").starts_with("1: this is not TOML: "));
}

TEST_F(Settings, AnUnknownKeyIsAnsweredWithTheNearest) {
    EXPECT_EQ("3: there is no setting \"locks.stroe\"; did you mean locks.store?",
              mistake_in("\n[locks]\nstroe = 'memory:'\n"));
    EXPECT_TRUE(mistake_in("[breakers]\npassword = \"x\"\n").find("breakers.password_file") !=
                std::string::npos);
    EXPECT_EQ("1: there is no setting \"lcoks\"; did you mean locks?",
              mistake_in("[lcoks]\nstore = 'memory:'\n"));
    EXPECT_EQ("1: there is no setting \"frobnicate\"; 'trinco help config' lists them",
              mistake_in("frobnicate = 1\n"));
}

TEST_F(Settings, ADotWithinAKeyMakesNoPath) {
    for (const std::string text :
         {"'breakers.policies.x' = 1\n", "'breakers.store' = 'memory:'\n", "'' = 1\n"}) {
        EXPECT_EQ(0U, mistake_in(text).find("1: there is no setting ")) << text;
    }
    EXPECT_EQ(0U, mistake_in("[breakers]\n'policies.x' = 1\n").find("2: there is no setting "));
    write("user.toml", "[breakers.policies.'pay.eu']\nopen_for = '1s'\n");
    EXPECT_EQ(1U, load().policies.at("pay.eu").size());
}

TEST_F(Settings, AValueOfAnotherKindIsRefused) {
    EXPECT_EQ("2: locks.store is not a text; write it in quotes",
              mistake_in("[locks]\nstore = 1\n"));
    EXPECT_EQ("1: locks is not a table; write [locks] and its settings below",
              mistake_in("locks = 'memory:'\n"));
}

TEST_F(Settings, NamesAreCheckedWhereTheyAreFrom) {
    EXPECT_EQ(0U, mistake_in("[breakers]\nnamespace = 'a b'\n").find("2: the namespace "));
    write("user.toml", "");
    flags.instance = "a b";
    EXPECT_EQ(0U, mistake().find("--instance: "));
    flags.instance.reset();
    from.environment["TRINCO_LOCKS_PREFIX"] = "../";
    EXPECT_EQ(0U, mistake().find("TRINCO_LOCKS_PREFIX: the prefix \"../\" begins no name"));
    from.environment.clear();
    flags.locks = "";
    EXPECT_EQ(0U, mistake().find("--locks: the store's URL is empty"));
}

TEST_F(Settings, TheTtlOfLocksIsWholeSeconds) {
    const std::string file = write("user.toml", "[locks]\nttl = \"1 min 30 s\"\n");
    EXPECT_EQ(90s, load().ttl);
    EXPECT_EQ(file + ":2", source_of(load(), "locks.ttl"));
    from.environment["TRINCO_LOCKS_TTL"] = "30s";
    EXPECT_EQ(30s, load().ttl);
    EXPECT_EQ("30s", shown(load(), "locks.ttl"));
    EXPECT_EQ("TRINCO_LOCKS_TTL", source_of(load(), "locks.ttl"));
    from.environment["TRINCO_LOCKS_TTL"] = "500ms";
    EXPECT_EQ("TRINCO_LOCKS_TTL: the TTL of locks is \"500ms\", outside of 1s to 1d", mistake());
    from.environment["TRINCO_LOCKS_TTL"] = "2500ms";
    EXPECT_EQ("TRINCO_LOCKS_TTL: the TTL of locks is 2500 ms; it is whole seconds, such as 2s",
              mistake());
    from.environment["TRINCO_LOCKS_TTL"] = "30";
    EXPECT_EQ(0U, mistake().find("TRINCO_LOCKS_TTL: \"30\" has no unit"));
}

TEST_F(Settings, PoliciesAreKeptAsText) {
    const std::string file = write("user.toml", R"([breakers.policies.payments]
failure_rate = 0.25
minimum_calls = 20
open_for = "10s"
timeout = "2s"
failure_exit = [1, 7]
fallback = "cat last.json"

[breakers.policies.empty]
)");
    const settings with = load();
    ASSERT_EQ(2U, with.policies.size());
    EXPECT_TRUE(with.policies.at("empty").empty());
    const std::array<std::pair<const char*, const char*>, 6> expected{
        {{"failure_rate", "0.25"},
         {"minimum_calls", "20"},
         {"open_for", "10s"},
         {"timeout", "2s"},
         {"failure_exit", "1,7"},
         {"fallback", "cat last.json"}}};
    const auto& policy = with.policies.at("payments");
    ASSERT_EQ(expected.size(), policy.size());
    for (std::size_t i = 0; i < policy.size(); ++i) {
        EXPECT_EQ(expected[i].first, policy[i].key);
        EXPECT_EQ(expected[i].second, policy[i].value);
        EXPECT_EQ(file + ":" + std::to_string(i + 2), policy[i].source);
    }
    EXPECT_EQ("10s", shown(with, "breakers.policies.payments.open_for"));
    EXPECT_EQ(file + ":4", source_of(with, "breakers.policies.payments.open_for"));
}

TEST_F(Settings, AnUnknownOptionOfAPolicyIsAnsweredWithTheNearest) {
    EXPECT_EQ("2: there is no option \"open_fro\"; did you mean open_for?",
              policy_mistake_in("[breakers.policies.p]\nopen_fro = '1s'\n"));
    EXPECT_EQ("2: there is no option \"tiemout\"; did you mean timeout?",
              policy_mistake_in("[breakers.policies.p]\ntiemout = '1s'\n"));
    EXPECT_EQ("2: there is no option \"frobnicate\"; 'trinco help options' lists them",
              policy_mistake_in("[breakers.policies.p]\nfrobnicate = '1s'\n"));
}

TEST_F(Settings, AMalformedPolicyIsRefused) {
    EXPECT_EQ(0U,
              policy_mistake_in("[breakers.policies]\np = 1\n").find("2: \"p\" is not a table"));
    EXPECT_EQ(
        0U, policy_mistake_in("[breakers.policies.'a b']\n").find("1: the name of a breaker is "));
    EXPECT_EQ("2: open_for is neither a text, a number nor a list of them",
              policy_mistake_in("[breakers.policies.p]\nopen_for = 1979-05-27\n"));
    EXPECT_EQ("2: open_for is neither a text, a number nor a list of them",
              policy_mistake_in("[breakers.policies.p]\nopen_for = [[1]]\n"));
    // As one text it would be another command: "cat,a b".
    EXPECT_EQ("2: fallback is a list; write one text or number",
              policy_mistake_in("[breakers.policies.p]\nfallback = ['cat', 'a b']\n"));
}

TEST_F(Settings, AHomeThatCannotBeLookedUpIsNoHomeWithoutSettings) {
    from.no_home = "the home cannot be looked up: Too many open files";
    const auto loaded = load_settings(flags, from);
    ASSERT_TRUE(std::holds_alternative<problem>(loaded));
    EXPECT_EQ(exit_unavailable, std::get<problem>(loaded).code);
    flags.config = write("own.toml", "");
    EXPECT_EQ("local:", load().locks_url);
}

TEST(SettingsSources, AreTheSystemsFileAndThatOfTheHomeThatPasswdNames) {
    ::setenv("HOME", "/elsewhere", 1);
    ::setenv("XDG_CONFIG_HOME", "/elsewhere", 1);
    ::setenv("TRINCO_LOCKS", "memory:here", 1);
    const auto from = settings_sources::of_this_process();
    ASSERT_FALSE(from.files.empty());
    EXPECT_EQ("/etc/trinco.toml", from.files[0]);
    for (const auto& file : from.files) EXPECT_FALSE(file.native().starts_with("/elsewhere"));
    if (from.files.size() > 1) {
        EXPECT_TRUE(from.files[1].native().ends_with("/.config/trinco/trinco.toml"));
    }
    EXPECT_EQ("memory:here", from.environment.at("TRINCO_LOCKS"));
    EXPECT_FALSE(from.environment.contains("HOME"));
}

TEST_F(Settings, SecretsAreHidden) {
    flags.locks = "redis://me:hunter2@host";
    EXPECT_TRUE(mistake().starts_with("--locks: a password in a command line is seen by every"));
    flags.locks.reset();
    from.environment = {{"TRINCO_LOCKS", "redis://me:hunter2@host"}};
    const settings with = load();
    EXPECT_EQ("redis://me:hunter2@host", with.locks_url);
    EXPECT_EQ("redis://***@host", shown(with, "locks.store"));
}

}  // namespace
}  // namespace trinco::program
