#include "store/redis/reply_fault.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

using kind = reply_fault::kind_t;

struct meaning {
    std::string text;
    kind what;
    errc error;
    std::string says;
};

// As Redis 7.0 and Valkey 8.0 say them.
const std::vector<meaning>& all_errors() {
    static const std::vector<meaning> all{
        {"NOSCRIPT No matching script. Please use EVAL.", kind::no_script, errc::unavailable, ""},
        {"READONLY You can't write against a read only replica.", kind::elsewhere,
         errc::unavailable, "replica"},
        {"LOADING Redis is loading the dataset in memory", kind::elsewhere, errc::unavailable,
         "reading its data"},
        {"MASTERDOWN Link with MASTER is down and replica-serve-stale-data is set to 'no'.",
         kind::elsewhere, errc::unavailable, "lost its primary"},
        {"CLUSTERDOWN Hash slot not served", kind::elsewhere, errc::unavailable, "slots"},
        {"TRYAGAIN Multiple keys request during rehashing of slot", kind::elsewhere,
         errc::unavailable, "moving"},
        {"NOREPLICAS Not enough good replicas to write.", kind::later, errc::unavailable,
         "min-replicas-to-write"},
        {"MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist",
         kind::later, errc::unavailable, "disk"},
        {"OOM command not allowed when used memory > 'maxmemory'. script: 01ab, on @user_script:5.",
         kind::final, errc::busy, "maxmemory"},
        {"BUSY Redis is busy running a script. You can only call SCRIPT KILL", kind::final,
         errc::busy, "too long"},
        {"NOAUTH Authentication required.", kind::final, errc::denied, "password"},
        {"WRONGPASS invalid username-password pair or user is disabled.", kind::final, errc::denied,
         "wrong"},
        {"NOPERM this user has no permissions to run the 'evalsha' command", kind::final,
         errc::denied, "right"},
        {"DENIED Redis is running in protected mode because protected mode is enabled", kind::final,
         errc::denied, "machine"},
        {"WRONGTYPE Operation against a key holding the wrong kind of value script: 1f, on "
         "@user_script:9.",
         kind::final, errc::conflict, "something else"},
        {"ERR user_script:30: attempt to index local 'p' (a nil value) script: 1f, on "
         "@user_script:30.",
         kind::final, errc::conflict, "something else"},
        {"MOVED 866 127.0.0.1:7001", kind::final, errc::not_supported, "redis+cluster://"},
        {"ASK 866 127.0.0.1:7001", kind::final, errc::not_supported, "redis+cluster://"},
        {"CROSSSLOT Keys in request don't hash to the same slot", kind::final, errc::not_supported,
         "redis+cluster://"},
        {"ERR unknown command 'EVALSHA', with args beginning with:", kind::final,
         errc::not_supported, "6.0"},
        {"ERR something new", kind::final, errc::invalid, "ERR"},
    };
    return all;
}

TEST(ReplyFault, every_error_of_the_server_has_its_meaning) {
    for (const auto& one : all_errors()) {
        SCOPED_TRACE(one.text);
        const auto fault = fault_of(resp_reply::error_of(one.text));
        EXPECT_EQ(fault.kind, one.what);
        EXPECT_EQ(fault.error, one.error);
        EXPECT_NE(fault.why.find(one.says), std::string::npos) << fault.why;
        EXPECT_EQ(fault.why.find("127.0.0.1"), std::string::npos) << fault.why;
    }
}

// As Redis 6.0 wraps what happens inside a script.
TEST(ReplyFault, errors_inside_scripts_of_version_6_are_recognized) {
    const std::string begin = "ERR Error running script (call to f_5a1b): @user_script:41: ";
    for (const auto& wrapped : {begin + "@user_script: 41: ", begin + "-"}) {
        for (const auto& one : all_errors()) {
            const auto word = one.text.substr(0, one.text.find(' '));
            if (word == "ERR") continue;
            SCOPED_TRACE(wrapped + word);
            const auto fault = fault_of(resp_reply::error_of(wrapped + one.text));
            EXPECT_EQ(fault.kind, one.what);
            EXPECT_EQ(fault.error, one.error);
        }
    }
    const auto failed = fault_of(resp_reply::error_of(
        "ERR Error running script (call to f_5a1b): @user_script:30: attempt to compare nil"));
    EXPECT_EQ(failed.error, errc::conflict);
}

// As each version says it.
TEST(ReplyFault, a_right_that_is_missing_inside_a_script_is_denied) {
    for (const char* text :
         {"ERR Error running script (call to f_5a1b): @user_script:41: @user_script: 41: The user "
          "executing the script can't run this command or subcommand",
          "ERR The user executing the script can't run this command or subcommand script: 1f, on "
          "@user_script:250.",
          "ERR The user executing the script can't access at least one of the keys mentioned in "
          "the command arguments script: 1f, on @user_script:250.",
          "ERR ACL failure in script: User u has no permissions to run the 'del' command script: "
          "1f, on @user_script:250.",
          "ERR User u has no permissions to access the 'k' key script: 1f, on @user_script:250."}) {
        SCOPED_TRACE(text);
        const auto fault = fault_of(resp_reply::error_of(text));
        EXPECT_EQ(fault.kind, kind::final);
        EXPECT_EQ(fault.error, errc::denied);
        EXPECT_NE(fault.why.find("right"), std::string::npos) << fault.why;
    }
}

TEST(ReplyFault, what_is_of_the_server_says_nothing_of_the_key) {
    for (const auto error : {errc::unavailable, errc::unknown_outcome, errc::busy, errc::denied}) {
        EXPECT_TRUE(is_of_the_server(error));
    }
    for (const auto error : {errc::conflict, errc::invalid, errc::not_supported}) {
        EXPECT_FALSE(is_of_the_server(error));
    }
    EXPECT_FALSE(is_of_the_server({}));
}

}  // namespace
}  // namespace trinco::detail::test
