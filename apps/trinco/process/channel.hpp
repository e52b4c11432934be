// What the wrapper and its guardian say to each other: one message a packet of a socket pair, which
// keeps their bounds and their order, and ends when one of the two does.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/process/guardian.hpp"

namespace trinco::program {

// From the wrapper.
struct request {
    enum class kind_t : std::uint8_t {
        text,    // a part of a command's words and environment, too long for one packet
        run,     // the last part; the command may start
        move,    // `until`
        signal,  // `number`
        nothing  // of receive_request: none waits
    };
    kind_t kind = kind_t::nothing;
    on_deadline at_act = on_deadline::term;
    int number = 0;
    std::uint32_t words = 0;        // of run: strings that end with a null byte each,
    std::uint32_t environment = 0;  // then so many "name=value"
    deadlines until{};
};

struct received_request {
    request what;
    std::string text;
    int descriptor = -1;  // of run: the one to keep open
    bool closed = false;  // the wrapper is gone
};

// A pair of connected, close-on-exec sockets; {-1, -1} and errno when there is none.
struct channel_ends {
    int wrapper = -1;
    int guardian = -1;
};
[[nodiscard]] channel_ends make_channel();

enum class sent : std::uint8_t { yes, full, closed };

// Sends the words and the environment in as many packets as needed; waits while the socket is full.
[[nodiscard]] sent send_run(int channel, const command_spec& what);
// Never waits.
[[nodiscard]] sent send_request(int channel, const request& what);
[[nodiscard]] sent send_event(int channel, const guardian_event& what);

// Never wait.
[[nodiscard]] received_request receive_request(int channel);
// Leaves it there for the next who asks, who then gets a descriptor of its own with it.
[[nodiscard]] received_request look_at_request(int channel);
struct received_event {
    std::optional<guardian_event> event;
    bool closed = false;
};
[[nodiscard]] received_event receive_event(int channel);

// The strings of received text, each ended by a null byte.
[[nodiscard]] std::vector<const char*> strings_of(std::string_view text);

}  // namespace trinco::program
