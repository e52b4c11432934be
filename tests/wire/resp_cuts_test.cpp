// Pipelined replies in random pieces: the same replies come out, each once, in order.
// TRINCO_SEED replays one seed.
#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "resp_text.hpp"
#include "wire/resp/resp_reader.hpp"

namespace trinco::detail::test {
namespace {

TEST(RespCuts, twenty_thousand_pipelines_are_read_the_same_however_they_are_cut) {
    const char* fixed = std::getenv("TRINCO_SEED");
    const unsigned first = fixed != nullptr ? static_cast<unsigned>(std::atoi(fixed)) : 1;
    const unsigned last = fixed != nullptr ? first : 20'000;
    for (unsigned seed = first; seed <= last; ++seed) {
        std::mt19937 random(seed);
        std::vector<resp_reply> sent;
        std::string bytes;
        for (auto n = 1 + random() % 12; n > 0; --n) {
            sent.push_back(random_reply(random));
            bytes += resp_text(sent.back());
        }
        const auto longest = 1 + random() % (random() % 2 == 0 ? 4 : 2'000);
        resp_reader reader;
        std::vector<resp_reply> came;
        for (std::size_t at = 0; at < bytes.size();) {
            const auto piece = std::string_view(bytes).substr(at, 1 + random() % longest);
            reader.feed(piece);
            at += piece.size();
            while (auto reply = reader.next()) came.push_back(std::move(*reply));
        }
        ASSERT_EQ(reader.fault(), nullptr) << "seed " << seed << ": " << reader.fault()->sentence;
        ASSERT_TRUE(came == sent) << "seed " << seed;
        ASSERT_TRUE(reader.idle()) << "seed " << seed;
    }
}

}  // namespace
}  // namespace trinco::detail::test
