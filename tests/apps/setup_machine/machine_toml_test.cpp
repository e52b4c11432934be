// The machine's store is named in a configuration, and nothing else in it changes.
#include "apps/trinco/setup_machine/machine_toml.hpp"

#include <gtest/gtest.h>

#include "apps/trinco/config/toml_file.hpp"
#include "apps/trinco/exit_codes.hpp"

namespace trinco::program {
namespace {

constexpr const char* url = "local:/var/lib/trinco/local.db";
constexpr const char* file = "/etc/trinco.toml";

std::string text_of(const std::optional<std::string>& before) {
    const auto after = with_store(before, url, file);
    if (const auto* const bad = std::get_if<problem>(&after)) return "problem: " + bad->sentence;
    return std::get<std::string>(after);
}

// The value of breakers.store or locks.store in a text.
std::string store_in(const std::string& text, const std::string& table) {
    const auto parsed = parse_toml(text, file);
    const auto* const values = std::get_if<std::vector<toml_value>>(&parsed);
    if (values == nullptr) return "not TOML: " + text;
    for (const auto& v : *values) {
        if (v.path == std::vector<std::string>{table, "store"}) return v.text;
    }
    return {};
}

void expect_both(const std::string& text) {
    EXPECT_EQ(store_in(text, "breakers"), url) << text;
    EXPECT_EQ(store_in(text, "locks"), url) << text;
    EXPECT_EQ(text_of(text), text) << "and a second time nothing changes";
}

// Without the lines that were added.
std::string without_added(const std::string& text) {
    std::string left;
    for (std::size_t at = 0; at < text.size();) {
        const auto end = std::min(text.find('\n', at), text.size() - 1);
        const auto line = text.substr(at, end - at + 1);
        if (line.find(url) == std::string::npos) left += line;
        at = end + 1;
    }
    return left;
}

TEST(MachineToml, ANewFileSaysWhoseItIs) {
    const auto text = text_of(std::nullopt);
    EXPECT_TRUE(text.starts_with("# ")) << text;
    expect_both(text);
    expect_both(text_of(""));
}

TEST(MachineToml, TablesThatAreThereGetALineAndKeepTheirOthers) {
    const std::string before =
        "# ours\n[breakers] # of all\nnamespace = 'prod'\n\n[breakers.policies.x]\n"
        "open_for = \"5s\"\n\n[locks]\nprefix = \"p/\"\n";
    const auto text = text_of(before);
    expect_both(text);
    EXPECT_EQ(without_added(text), before);
}

TEST(MachineToml, TablesThatAreMissingComeAtTheEnd) {
    for (const std::string before :
         {"instance = \"rack-7\"\n", "instance = \"rack-7\"",
          "[breakers.policies.x]\nopen_for = \"5s\"\n", "# only a comment\n\n"}) {
        const auto text = text_of(before);
        EXPECT_TRUE(text.starts_with(before)) << text;
        expect_both(text);
    }
}

TEST(MachineToml, ALastLineWithoutItsEndGetsOne) {
    const auto text = text_of("[locks]");
    EXPECT_TRUE(text.starts_with("[locks]\nstore = ")) << text;
    expect_both(text);
}

TEST(MachineToml, DottedKeysStayDotted) {
    const std::string before = "breakers.namespace = \"prod\"\nlocks.prefix = \"p/\"\n";
    const auto text = text_of(before);
    expect_both(text);
    EXPECT_EQ(without_added(text), before);
}

TEST(MachineToml, OneThatIsSetAlreadyIsEnough) {
    const auto text = text_of("[breakers]\nstore = \"local:/var/lib/trinco/local.db\"\n");
    EXPECT_TRUE(text.starts_with("[breakers]\nstore = \"local:/var/lib/trinco/local.db\"\n"));
    expect_both(text);
}

TEST(MachineToml, AnotherStoreIsAConflictWithItsPlace) {
    const auto said = text_of("\n[locks]\nstore = \"etcd://a\"\n");
    EXPECT_TRUE(said.starts_with("problem: /etc/trinco.toml:3: locks.store is \"etcd://a\""))
        << said;
    EXPECT_TRUE(text_of("breakers.store = 'x'").starts_with("problem: /etc/trinco.toml:1:"));
}

TEST(MachineToml, WhatDoesNotFitIsLeftToPeople) {
    const auto said = text_of("locks = { prefix = \"p/\" }\n");
    EXPECT_NE(said.find("add it by hand"), std::string::npos) << said;
    EXPECT_NE(text_of("locks = 3\n").find("add it by hand"), std::string::npos);
}

TEST(MachineToml, WhatIsNoTomlIsNamedWithItsLine) {
    EXPECT_TRUE(text_of("a = 1\nb = = 2\n").starts_with("problem: /etc/trinco.toml:2:"));
}

}  // namespace
}  // namespace trinco::program
