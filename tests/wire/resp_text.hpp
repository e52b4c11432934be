// Replies as a server writes them, made by hand, for tests of the reader.
#pragma once

#include <random>
#include <string>

#include "wire/resp/resp_message.hpp"

namespace trinco::detail::test {

inline std::string resp_text(const resp_reply& reply) {
    using kind = resp_reply::kind_t;
    switch (reply.kind) {
        case kind::nil: return "$-1\r\n";
        case kind::integer: return ":" + std::to_string(reply.integer) + "\r\n";
        case kind::error: return "-" + reply.text + "\r\n";
        case kind::string:
            return "$" + std::to_string(reply.text.size()) + "\r\n" + reply.text + "\r\n";
        case kind::array: break;
    }
    std::string all = "*" + std::to_string(reply.elements.size()) + "\r\n";
    for (const auto& element : reply.elements) all += resp_text(element);
    return all;
}

// Any reply, of a few levels; strings hold any byte.
inline resp_reply random_reply(std::mt19937& random, int levels = 3) {
    switch (random() % (levels > 0 ? 6 : 4)) {
        case 0: return {};
        case 1: {
            const auto number = (std::uint64_t{random()} << 32U) | random();
            return resp_reply::of(static_cast<std::int64_t>(number));
        }
        case 2: return resp_reply::error_of("ERR number " + std::to_string(random() % 100));
        case 3: {
            std::string text(random() % (random() % 10 == 0 ? 3'000 : 20), ' ');
            for (auto& c : text) c = static_cast<char>(random());
            return resp_reply::of(std::move(text));
        }
        default: {
            std::vector<resp_reply> elements;
            for (auto n = random() % 5; n > 0; --n) {
                elements.push_back(random_reply(random, levels - 1));
            }
            return resp_reply::of(std::move(elements));
        }
    }
}

}  // namespace trinco::detail::test
