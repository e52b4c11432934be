#include "core/breaker/record_codec.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <array>
#include <string>

#include "tests/core/property.hpp"
#include "tests/core/record_lab.hpp"

namespace trinco::detail::test {
namespace {

using trinco::test::holds;

constexpr std::array names{"alpha", "beta", "gamma"};

std::uint64_t pick(std::uint64_t below) {
    return *rc::gen::inRange<std::uint64_t>(0, below);
}

void exchange(record_lab& lab, std::string_view who) {
    news n = lab.of(who);
    slice s;
    s.n = {pick(9), pick(30), pick(5), pick(5), pick(3), pick(1'000)};
    s.age = milliseconds(pick(3'000));
    n.slices.push_back(s);
    n.stale.failure = pick(2);
    static_cast<void>(lab.send(who, n));
}

void probe(record_lab& lab, std::string_view who) {
    probe_request p;
    p.mine = lab.seen();
    p.token = 1 + pick(12);
    p.step = static_cast<probe_step>(pick(4));
    static_cast<void>(apply(lab.r, record_lab::voter(who), p, lab.now, lab.did));
}

void control(record_lab& lab) {
    control_request c;
    c.id = 1 + pick(1'000);
    c.who = "ann";
    c.reason = std::string(pick(max_reason), 'r');
    c.verb = static_cast<control_verb>(pick(9));
    c.expires = milliseconds(pick(5'000));
    if (c.verb == control_verb::set) c.options = "quorum=3 window_slices=5";
    std::error_code error;
    static_cast<void>(apply(lab.r, c, lab.now, lab.did, error));
}

// One random step of a fleet.
void step(record_lab& lab) {
    const std::string_view who = names.at(pick(names.size()));
    switch (pick(8)) {
        case 0: lab.pass(store_time(pick(40'000'000))); return;
        case 1: lab.now -= store_time(pick(5'000'000)); return;
        case 2:
        case 3:
        case 4: return exchange(lab, who);
        case 5:
        case 6: return probe(lab, who);
        default: return control(lab);
    }
}

// A record in which every member and every list holds something.
fleet_record full_record() {
    record_lab lab;
    for (const char* who : names) static_cast<void>(lab.send(who, lab.of(who)));
    fleet_record r = lab.r;
    r.skew = store_time(-7);
    r.era = max_era - 1;
    r.rev = 5;
    r.state = breaker_state::half_open;
    r.backoff_level = 9;
    r.reason = "failure_rate";
    r.over = override_kind::observing;
    r.over_reason = std::string("bytes \0 of any kind \xff", 21);
    r.set_options = "quorum=3";
    r.set_until = store_time(1);
    r.window.add(3, 4, 10, calls(1, 2));
    r.suspect_since = store_time(3);
    r.leases = {{1, 2, store_time(3), "alpha"}, {~std::uint64_t{0}, 5, store_time(-6), "beta"}};
    r.settled = {{4, store_time(9), true}};
    r.controls = {{8, store_time(1)}};
    r.voters.at(1).set_aside = true;
    r.voters.at(1).window.add(3, 4, 10, calls(3, 4));
    return r;
}

// As the format's description says it.
std::string with_checksum(std::string bytes) {
    std::uint64_t h = 0xcbf29ce484222325;
    for (const char c : bytes) h = (h ^ static_cast<std::uint8_t>(c)) * 0x100000001b3;
    for (int i = 0; i < 8; ++i, h >>= 8U) bytes += static_cast<char>(h & 0xffU);
    return bytes;
}

TEST(RecordCodec, EveryRecordOfAHistoryComesBackAndGoesOn) {
    EXPECT_TRUE(holds("decode(encode(r)) == r", 2'000, [] {
        policy p = plain_policy();
        p.half_open_probes = static_cast<std::uint32_t>(1 + pick(5));
        p.window_slices = static_cast<std::uint32_t>(2 + pick(59));
        p.failure_rate = 0.1 + static_cast<double>(pick(900)) / 1'000;
        record_lab lab(p);
        const auto steps = pick(60);
        for (std::uint64_t i = 0; i < steps; ++i) {
            step(lab);
            auto back = decode(encode(lab.r));
            RC_ASSERT(back.has_value());
            RC_ASSERT(*back == lab.r);
            lab.r = std::move(*back);
        }
    }));
}

TEST(RecordCodec, AnAbsentAndAFullRecordComeBack) {
    EXPECT_EQ(decode(encode(fleet_record{})), fleet_record{});
    EXPECT_LT(encode(fleet_record{}).size(), 100U);
    const fleet_record r = full_record();
    const auto back = decode(encode(r));
    ASSERT_TRUE(back.has_value());
    EXPECT_TRUE(*back == r);
}

TEST(RecordCodec, RulesThatTheTextDoesNotSayAreKept) {
    fleet_record r;
    r.options = "quorum=3";
    r.rules.quorum = 3;
    EXPECT_TRUE(decode(encode(r)) == r);
    r.rules.failure_rate = 0.123456789;
    EXPECT_TRUE(decode(encode(r)) == r);
}

TEST(RecordCodec, EveryChangedByteAndEveryTruncationIsNoticed) {
    const std::string good = encode(full_record());
    for (std::size_t i = 0; i < good.size(); ++i) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ 0x10);
        EXPECT_FALSE(decode(bad).has_value()) << "byte " << i;
        EXPECT_FALSE(decode(std::string_view(good).substr(0, i)).has_value()) << "length " << i;
    }
    EXPECT_FALSE(decode(good + "x").has_value());
    EXPECT_FALSE(decode("").has_value());
}

TEST(RecordCodec, AnotherVersionIsNotARecord) {
    std::string bytes = encode(fleet_record{});
    bytes.resize(bytes.size() - 8);
    ASSERT_TRUE(decode(with_checksum(bytes)).has_value());
    bytes[2] = 2;
    EXPECT_FALSE(decode(with_checksum(bytes)).has_value());
}

// Damage that the checksum does not show: sound or refused, but never read beyond its end, and what
// is taken is a record that can be written again.
TEST(RecordCodec, GarbageWithARightChecksumIsHarmless) {
    const std::string body = [] {
        std::string bytes = encode(full_record());
        bytes.resize(bytes.size() - 8);
        return bytes;
    }();
    std::size_t refused = 0;
    for (std::size_t i = 3; i < body.size(); ++i) {
        for (const unsigned to : {0x00U, 0x7fU, 0x80U, 0xffU}) {
            std::string bad = body;
            bad[i] = static_cast<char>(to);
            const auto got = decode(with_checksum(bad));
            if (got) {
                EXPECT_TRUE(decode(encode(*got)) == *got);
            } else {
                ++refused;
            }
            EXPECT_FALSE(decode(with_checksum(body.substr(0, i))).has_value());
        }
    }
    EXPECT_GT(refused, body.size());
}

}  // namespace
}  // namespace trinco::detail::test
