#include <gtest/gtest.h>

#include "core/lock/once.hpp"
#include "core/names.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;
using state = once_record::state_t;

once_record sample(state s) {
    once_record r;
    r.state = s;
    r.owner = "billing-3 pid 77";
    r.run_id = "00ff";
    r.attempt = 2;
    r.since = 1'700'000'000'123ms;
    r.fingerprint = "sha256:ab";
    r.payload = s == state::running ? "" : std::string("line\n\nnul\0end", 13);
    return r;
}

TEST(OnceRecord, ComesBackAsItWas) {
    for (const auto s : {state::running, state::done, state::failed, state::undone}) {
        EXPECT_EQ(decode_once(encode(sample(s))), sample(s));
    }
    auto bare = sample(state::done);
    bare.fingerprint.clear();
    EXPECT_EQ(decode_once(encode(bare)), bare);
}

TEST(OnceRecord, SkipsWhatALaterVersionSays) {
    auto text = encode(sample(state::done));
    text.insert(text.find("\nowner") + 1, "mood good\n");
    EXPECT_EQ(decode_once(text), sample(state::done));
}

TEST(OnceRecord, RefusesWhatIsNoRecord) {
    const auto good = encode(sample(state::done));
    for (const std::string& bad :
         {std::string(), std::string("x"), std::string("trinco-once 1\n\n"),
          std::string("trinco-once 2") + good.substr(13), good.substr(0, 40),
          std::string("trinco-once 1\nstate odd\nrun 1\n\n"),
          std::string("trinco-once 1\nstate done\n\n"),
          std::string("trinco-once 1\nstate done\nrun 1\nattempt many\n\n"),
          std::string("trinco-once 1\nstatedone\nrun 1\n\n")}) {
        EXPECT_FALSE(decode_once(bad).has_value()) << bad;
    }
    for (std::size_t cut = 0; cut < good.find("\n\n") + 2; ++cut) {
        EXPECT_FALSE(decode_once(good.substr(0, cut)).has_value()) << cut;
    }
}

TEST(OnceRecord, KeysMakeGoodLockNamesAndStandBesideThem) {
    const std::string longest(max_once_key, 'k');
    for (const std::string& key : {std::string("invoice/42"), longest}) {
        EXPECT_FALSE(check_once_key(key).has_value());
        EXPECT_FALSE(check_lock_name(once_lock_of(key)).has_value());
        EXPECT_TRUE(once_key_of(key).starts_with(once_keys));
        EXPECT_FALSE(once_key_of(key).starts_with(once_lock_of(key) + "/"));
    }
    for (const std::string& key : {std::string(), std::string("/a"), std::string("a//b"),
                                   std::string("a b"), longest + "k"}) {
        EXPECT_TRUE(check_once_key(key).has_value()) << key;
    }
    EXPECT_FALSE(check_fingerprint("").has_value());
    EXPECT_TRUE(check_fingerprint("a\nb").has_value());
    EXPECT_TRUE(check_fingerprint(std::string(max_fingerprint + 1, 'f')).has_value());
}

TEST(OnceRecord, WhatACallerMakesOfIt) {
    using interrupted = once_wishes::interrupted_t;
    const once_wishes plain{.fingerprint = "sha256:ab"};
    EXPECT_EQ(decide(nullptr, plain, false), once_step::wait);
    EXPECT_EQ(decide(nullptr, plain, true), once_step::begin);
    const auto running = sample(state::running);
    EXPECT_EQ(decide(&running, plain, false), once_step::wait);
    EXPECT_EQ(decide(&running, plain, true), once_step::tell) << "it must never run by itself";
    EXPECT_EQ(decide(&running, {plain.fingerprint, true, interrupted::rerun}, true),
              once_step::begin_again);
    EXPECT_EQ(decide(&running, {plain.fingerprint, true, interrupted::ask}, true), once_step::ask);
    const auto failed = sample(state::failed);
    EXPECT_EQ(decide(&failed, plain, true), once_step::answer);
    EXPECT_EQ(decide(&failed, {plain.fingerprint, true}, false), once_step::wait);
    EXPECT_EQ(decide(&failed, {plain.fingerprint, true}, true), once_step::begin);
    const auto undone = sample(state::undone);
    EXPECT_EQ(decide(&undone, plain, false), once_step::wait);
    EXPECT_EQ(decide(&undone, plain, true), once_step::begin_again) << "under the same run id";
    const auto done = sample(state::done);
    EXPECT_EQ(decide(&done, {plain.fingerprint, true, interrupted::rerun}, true),
              once_step::answer);
    EXPECT_EQ(decide(&done, {"other"}, true), once_step::reused);
    EXPECT_EQ(decide(&running, {""}, false), once_step::reused);
}

}  // namespace
}  // namespace trinco::detail
