// Mutated messages in random pieces: no crash, no message out of bounds, and the same answer
// however the bytes are cut. TRINCO_SEED replays one seed.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "wire/http1/http_reader.hpp"

namespace trinco::detail {
namespace {

constexpr http_limits limits = {.header = 512, .body = 256};

const std::vector<std::string>& originals() {
    static const std::vector<std::string> all = {
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /p HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
        "POST /p HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
        "GET /old HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2;x=y\r\nok\r\n0\r\nT: u\r\n\r\n",
        "HTTP/1.0 200 OK\r\n\r\nto the end",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 No Content\r\n\r\n"};
    return all;
}

std::string mutated(std::mt19937& random) {
    const auto below = [&](std::size_t n) { return random() % n; };
    std::string bytes;
    for (auto n = 1 + below(3); n > 0; --n) bytes += originals()[below(originals().size())];
    for (auto n = below(5); n > 0 && !bytes.empty(); --n) {
        const auto at = below(bytes.size());
        switch (below(6)) {
            case 0: bytes[at] = static_cast<char>(random()); break;
            case 1: bytes.erase(at, 1 + below(4)); break;
            case 2: bytes.insert(at, 1 + below(4), static_cast<char>(random())); break;
            case 3: bytes.insert(at, bytes.substr(below(bytes.size()), below(40))); break;
            case 4: bytes.insert(at, std::string(below(600), "0a\r \t"[below(5)])); break;
            default: bytes[at] = "\r\n:;,0 9"[below(8)]; break;
        }
    }
    return bytes;
}

// What a reader makes of the bytes: its messages and whether it faults. Which of several faults
// shows first may depend on the cuts.
template <class Reader>
std::string story(const std::string& bytes, const std::vector<std::size_t>& cuts) {
    Reader reader(limits);
    std::string told;
    std::size_t from = 0;
    const auto take = [&] {
        while (const auto message = reader.next()) {
            EXPECT_LE(message->body.size(), limits.body);
            for (const auto& field : message->fields) {
                EXPECT_LE(field.name.size() + field.value.size(), limits.header);
                told += field.name + ":" + field.value + "\n";
            }
            told += message->body + (message->keep_alive ? " goes on|" : " ends|");
        }
    };
    for (const auto cut : cuts) {
        reader.feed(std::string_view(bytes).substr(from, cut - from));
        from = cut;
        take();
    }
    reader.feed(std::string_view(bytes).substr(from));
    take();
    reader.end();
    take();
    if (reader.fault() != nullptr) told += "fault";
    return told;
}

TEST(HttpFuzz, twenty_thousand_mutants_are_read_the_same_however_they_are_cut) {
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
        const auto request = story<http_request_reader>(bytes, {});
        ASSERT_EQ(story<http_request_reader>(bytes, cuts), request) << "seed " << seed;
        const auto response = story<http_response_reader>(bytes, {});
        ASSERT_EQ(story<http_response_reader>(bytes, cuts), response) << "seed " << seed;
        faults += request.find("fault") != std::string::npos ? 1 : 0;
    }
    EXPECT_TRUE(fixed != nullptr || (faults > 2'000 && faults < 19'000)) << faults;
}

}  // namespace
}  // namespace trinco::detail
