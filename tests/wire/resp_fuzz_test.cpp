// Mutated replies in random pieces: no crash, nothing out of bounds, and the same answer however
// the bytes are cut. TRINCO_SEED replays one seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "resp_text.hpp"
#include "wire/resp/resp_reader.hpp"

namespace trinco::detail::test {
namespace {

constexpr resp_limits limits = {.bytes = 8 * 1024, .text = 200, .elements = 12, .depth = 3};

std::string mutated(std::mt19937& random) {
    const auto below = [&](std::size_t n) { return random() % n; };
    std::string bytes;
    for (auto n = 1 + below(4); n > 0; --n) bytes += resp_text(random_reply(random, 2));
    for (auto n = below(5); n > 0 && !bytes.empty(); --n) {
        const auto at = below(bytes.size());
        switch (below(6)) {
            case 0: bytes[at] = static_cast<char>(random()); break;
            case 1: bytes.erase(at, 1 + below(4)); break;
            case 2: bytes.insert(at, 1 + below(4), static_cast<char>(random())); break;
            case 3: bytes.insert(at, bytes.substr(below(bytes.size()), below(40))); break;
            case 4: bytes.insert(at, 1 + below(30), "0-9*"[below(4)]); break;
            default: bytes[at] = "\r\n*$:+-_%~#,(=>|"[below(16)]; break;
        }
    }
    return bytes;
}

void look_at(const resp_reply& reply, std::size_t depth, std::size_t& elements) {
    EXPECT_LE(reply.text.size(), limits.text);
    if (!reply.is(resp_reply::kind_t::array)) return;
    EXPECT_LT(depth, limits.depth);
    elements += reply.elements.size();
    for (const auto& element : reply.elements) look_at(element, depth + 1, elements);
}

// What a reader makes of the bytes: its replies and whether it faults.
std::string story(const std::string& bytes, const std::vector<std::size_t>& cuts) {
    resp_reader reader(limits);
    std::string told;
    std::size_t from = 0;
    const auto feed = [&](std::size_t to) {
        reader.feed(std::string_view(bytes).substr(from, to - from));
        from = to;
        while (const auto reply = reader.next()) {
            std::size_t elements = 0;
            look_at(*reply, 0, elements);
            EXPECT_LE(elements, limits.elements);
            told += resp_text(*reply) + "|";
        }
    };
    for (const auto cut : cuts) feed(cut);
    feed(bytes.size());
    if (reader.fault() != nullptr) told += "fault";
    return told;
}

TEST(RespFuzz, twenty_thousand_mutants_are_read_the_same_however_they_are_cut) {
    const char* fixed = std::getenv("TRINCO_SEED");
    const unsigned first = fixed != nullptr ? static_cast<unsigned>(std::atoi(fixed)) : 1;
    const unsigned last = fixed != nullptr ? first : 20'000;
    std::size_t faults = 0;
    for (unsigned seed = first; seed <= last; ++seed) {
        std::mt19937 random(seed);
        const auto bytes = mutated(random);
        std::vector<std::size_t> cuts;
        for (auto n = random() % 6; n > 0; --n) cuts.push_back(random() % (bytes.size() + 1));
        std::sort(cuts.begin(), cuts.end());
        const auto whole = story(bytes, {});
        ASSERT_EQ(story(bytes, cuts), whole) << "seed " << seed;
        faults += whole.ends_with("fault") ? 1 : 0;
    }
    EXPECT_TRUE(fixed != nullptr || (faults > 2'000 && faults < 19'000)) << faults;
}

}  // namespace
}  // namespace trinco::detail::test
