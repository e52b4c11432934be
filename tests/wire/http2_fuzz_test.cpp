// A server's bytes, changed at random and cut at random: whatever comes is read the same however it
// is cut, each stream ends at most once, and its answer is judged. TRINCO_SEED replays one seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "http2_peer.hpp"
#include "wire/grpc/grpc_answer.hpp"
#include "wire/http2/http2_client.hpp"

namespace trinco::detail::test {
namespace {

constexpr int streams = 4;

// Tells its story.
class fuzzed_stream final : public http2_stream {
public:
    void on_field(std::string_view name, std::string_view value) override {
        answer_.field(name, value);
    }
    void on_fields_end() override { answer_.fields_end(); }
    void on_data(std::string_view bytes) override {
        answer_.data(bytes);
        for (const auto& one : answer_.take()) {
            EXPECT_LE(one.size(), 10'000U);
            story += one + ",";
        }
    }
    void on_end(http2_end how) override {
        EXPECT_FALSE(ended_) << "twice";
        ended_ = true;
        const auto verdict = answer_.verdict();
        story += " end " + std::to_string(static_cast<int>(how.kind)) + " " +
                 std::to_string(static_cast<int>(verdict.by)) + verdict.status.text + ";";
    }
    std::string story;

private:
    grpc_answer answer_{10'000};
    bool ended_ = false;
};

struct conversation {
    conversation() {
        constexpr http2_field head[] = {
            {":method", "POST"}, {":scheme", "http"}, {":path", "/a"}, {":authority", "b"}};
        for (auto& one : all) {
            EXPECT_TRUE(client.begin(one, head));
            client.send(one, "?", true);
        }
        asked = client.take();
    }
    http2_client client;
    std::vector<fuzzed_stream> all{streams};
    std::string asked;
};

// What a server says to it.
std::string good_answers(std::mt19937& random) {
    conversation of;
    http2_peer peer;
    peer.feed(of.asked);
    for (const auto& one : peer.requests()) {
        switch (random() % 5) {
            case 0: peer.refuse(one.id, 14, "etcdserver: no leader"); break;
            case 1: peer.reset(one.id, static_cast<std::uint32_t>(random() % 14)); break;
            default: peer.answer(one.id, std::string(random() % 300, 'x'));
        }
    }
    if (random() % 4 == 0) peer.goaway(static_cast<int>(random() % 5) * 2 + 1, 0, "bye");
    return peer.take();
}

std::string story(const std::string& bytes, const std::vector<std::size_t>& cuts) {
    conversation of;
    std::size_t from = 0;
    for (const auto cut : cuts) {
        of.client.feed(std::string_view(bytes).substr(from, cut - from));
        from = cut;
    }
    of.client.feed(std::string_view(bytes).substr(from));
    (void)of.client.take();
    std::string told;
    for (const auto& one : of.all) told += one.story + "|";
    if (of.client.goodbye()) told += of.client.goodbye()->text;
    if (of.client.fault()) told += " fault";
    return told;
}

TEST(Http2Fuzz, ten_thousand_mutants_are_read_the_same_however_they_are_cut) {
    const char* fixed = std::getenv("TRINCO_SEED");
    const unsigned first = fixed != nullptr ? static_cast<unsigned>(std::atoi(fixed)) : 1;
    const unsigned last = fixed != nullptr ? first : 10'000;
    std::size_t faults = 0;
    for (unsigned seed = first; seed <= last; ++seed) {
        std::mt19937 random(seed);
        auto bytes = good_answers(random);
        for (auto n = random() % 4; n > 0; --n) {
            const auto at = random() % bytes.size();
            switch (random() % 4) {
                case 0: bytes[at] = static_cast<char>(random()); break;
                case 1: bytes.erase(at, 1 + random() % 20); break;
                case 2:
                    bytes.insert(at, bytes.substr(random() % bytes.size(), random() % 50));
                    break;
                default: bytes[at] = static_cast<char>(bytes[at] ^ (1U << random() % 8U));
            }
            if (bytes.empty()) bytes = "x";
        }
        std::vector<std::size_t> cuts;
        for (auto n = random() % 6; n > 0; --n) cuts.push_back(random() % (bytes.size() + 1));
        std::sort(cuts.begin(), cuts.end());
        const auto whole = story(bytes, {});
        ASSERT_EQ(story(bytes, cuts), whole) << "seed " << seed;
        faults += whole.find("fault") != std::string::npos ? 1 : 0;
    }
    EXPECT_TRUE(fixed != nullptr || (faults > 1'000 && faults < 9'000)) << faults;
}

}  // namespace
}  // namespace trinco::detail::test
