// Who has the permits of a semaphore: the object that Go's api.Semaphore writes, what is refused of
// it, and what the keys under a name say together.
#include "store/consul/consul_semaphore.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "store/consul/consul_layout.hpp"

namespace trinco::test {
namespace {

using namespace detail::consul;
using what_t = semaphore_state::what_t;

key_value row(const std::string& key, const std::string& value, const std::string& session = {},
              std::uint64_t flags = semaphore_flags) {
    key_value out;
    out.key = key;
    out.value = value;
    out.session = session;
    out.flags = flags;
    out.modify_index = 7;
    return out;
}

TEST(ConsulHolders, AreWrittenAsGoWritesThem) {
    EXPECT_EQ(text_of(semaphore_holders{3, {}}), R"({"Limit":3,"Holders":{}})");
    EXPECT_EQ(text_of(semaphore_holders{3, {"b", "a"}}),
              R"({"Limit":3,"Holders":{"a":true,"b":true}})");
}

TEST(ConsulHolders, AreReadAsTheyAreWritten) {
    for (const auto& one : {semaphore_holders{1, {}}, semaphore_holders{500, {"a", "b", "c"}},
                            semaphore_holders{-1, {"a"}}}) {
        EXPECT_EQ(holders_of(text_of(one)), one) << text_of(one);
    }
    EXPECT_EQ(holders_of(" {\n\"Holders\" : { \"a\" : true } ,\t\"Limit\" : 2 }\r\n"),
              (semaphore_holders{2, {"a"}}));
    EXPECT_EQ(holders_of(R"({"Limit":2,"Holders":null})"), (semaphore_holders{2, {}}));
}

TEST(ConsulHolders, WhatGoNeverWritesIsRefused) {
    for (const auto& text : std::vector<std::string>{
             "",
             " ",
             "{",
             "{}",
             "null",
             "[]",
             "true",
             R"("Limit")",
             R"({"Limit":2})",
             R"({"Holders":{}})",
             R"({"Limit":2,"Holders":{}}x)",
             R"({"Limit":2,"Holders":{}}{})",
             R"({"Limit":2,"Holders":{},})",
             R"({"Limit":2,"Holders":{})",
             R"({"Limit":2 "Holders":{}})",
             R"({"Limit":2,"Holders":{},"Other":1})",
             R"({"Limit":2,"Limit":2,"Holders":{}})",
             R"({"Limit":2,"Holders":{},"Holders":{}})",
             R"({"limit":2,"Holders":{}})",
             R"({"Limit":"2","Holders":{}})",
             R"({"Limit":2.0,"Holders":{}})",
             R"({"Limit":2e0,"Holders":{}})",
             R"({"Limit":02,"Holders":{}})",
             R"({"Limit":+2,"Holders":{}})",
             R"({"Limit":-,"Holders":{}})",
             R"({"Limit":--2,"Holders":{}})",
             R"({"Limit":2-2,"Holders":{}})",
             R"({"Limit":99999999999999999999,"Holders":{}})",
             R"({"Limit":,"Holders":{}})",
             R"({"Limit":null,"Holders":{}})",
             R"({"Limit":2,"Holders":[]})",
             R"({"Limit":2,"Holders":true})",
             R"({"Limit":2,"Holders":{"a":false}})",
             R"({"Limit":2,"Holders":{"a":1}})",
             R"({"Limit":2,"Holders":{"a":truer}})",
             R"({"Limit":2,"Holders":{"a":true,}})",
             R"({"Limit":2,"Holders":{"a":true,"a":true}})",
             R"({"Limit":2,"Holders":{"":true}})",
             R"({"Limit":2,"Holders":{"a\"":true}})",
             R"({"Limit":2,"Holders":{"a\u0062":true}})",
             R"({"Limit":2,"Holders":{"a)",
             R"({"Limit":2,"Holders":{a:true}})",
             "{\"Limit\":2,\"Holders\":{\"a\nb\":true}}",
             std::string("{\"Limit\":2,\"Holders\":{\"a\0b\":true}}", 34),
             std::string("{\"Limit\":2,\"Holders\":{}}\0", 25),
             std::string(100'000, '{'),
             R"({"Limit":2,"Holders":)" + std::string(100'000, '{'),
         }) {
        EXPECT_FALSE(holders_of(text)) << text.substr(0, 80);
    }
}

TEST(ConsulHolders, NoTextCutOffIsTaken) {
    const auto whole = text_of(semaphore_holders{12, {"ab", "cd"}});
    for (std::size_t n = 0; n < whole.size(); ++n) {
        EXPECT_FALSE(holders_of(whole.substr(0, n))) << n;
    }
}

TEST(ConsulSemaphore, HoldersWhoseContendersAreGoneAreDead) {
    const auto list = text_of(semaphore_holders{2, {"a", "b"}});
    const auto seen =
        state_of({row("n/.lock", list), row("n/a", "", "a"), row("n/c", "", "c")}, "n/.lock");
    EXPECT_EQ(seen.what, what_t::counts);
    EXPECT_EQ(seen.index, 7U);
    EXPECT_EQ(seen.limit, 2);
    EXPECT_EQ(seen.listed, (std::set<std::string>{"a", "b"}));
    EXPECT_EQ(seen.alive, (std::set<std::string>{"a"}));
    EXPECT_TRUE(seen.has_news_for(2));
    EXPECT_TRUE(seen.has_news_for(3)) << "another number";
}

TEST(ConsulSemaphore, WhoIsThereKeepsItsPermit) {
    const auto list = text_of(semaphore_holders{1, {"a"}});
    EXPECT_FALSE(state_of({row("n/.lock", list), row("n/a", "", "a")}, "n/.lock").has_news_for(1));
    // A contender that nobody holds any more.
    EXPECT_TRUE(state_of({row("n/.lock", list), row("n/a", "")}, "n/.lock").has_news_for(1));
}

TEST(ConsulSemaphore, WhatIsNoneIsSaidToBe) {
    EXPECT_EQ(state_of({}, "n/.lock").what, what_t::free);
    EXPECT_EQ(state_of({row("n/.lock", "")}, "n/.lock").what, what_t::free);
    EXPECT_EQ(state_of({row("n/.lock", "", "", lock_flags)}, "n/.lock").what, what_t::other_kind);
    EXPECT_EQ(state_of({row("n/.lock", "{}")}, "n/.lock").what, what_t::unreadable);
}

TEST(ConsulSemaphore, TheListGoesWithItsLastHolder) {
    EXPECT_EQ(change_of("n/.lock", 7, 2, {}).verb, operation::verb_t::erase_cas);
    const auto change = change_of("n/.lock", 7, 2, {"a"});
    EXPECT_EQ(change.verb, operation::verb_t::cas);
    EXPECT_EQ(change.index, 7U);
    EXPECT_EQ(change.flags, semaphore_flags);
    EXPECT_EQ(change.value, R"({"Limit":2,"Holders":{"a":true}})");
}

TEST(ConsulSemaphore, ContendersAreKnownByTheirKeys) {
    const std::string id = "0123abcd-0000-0000-0000-00000000000f";
    EXPECT_EQ(contender_key("p/", "a/b", id), "p/a/b/" + id);
    const auto one = contender_of_key("p/", "p/a/b/" + id);
    ASSERT_TRUE(one);
    EXPECT_EQ(one->name, "a/b");
    EXPECT_EQ(one->session, id);
    EXPECT_FALSE(contender_of_key("q/", "p/a/b/" + id));
    EXPECT_FALSE(contender_of_key("", id));
    EXPECT_FALSE(contender_of_key("", "a/" + id + "0"));
    EXPECT_FALSE(contender_of_key("", "a/" + std::string(36, 'x')));
    EXPECT_FALSE(contender_of_key("", "a/.lock"));
}

}  // namespace
}  // namespace trinco::test
