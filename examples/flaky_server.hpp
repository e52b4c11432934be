// A small HTTP server that is well, hangs, fails and recovers, by a story told to it: something to
// guard against in the demonstration and in tests.
//
// It listens on 127.0.0.1 only, answers any request with 200 or 503 and closes the connection,
// keeps at most 512 connections and reads at most 16 KiB of each. One thread, which ends with the
// object.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace flaky {

enum class mood : std::uint8_t { healthy, hanging, failing };

[[nodiscard]] std::string_view to_string(mood m) noexcept;

struct phase {
    mood how = mood::healthy;
    std::chrono::milliseconds length{0};  // of the last phase: without meaning, it stays
};

// "healthy:3s,hanging:4s,failing:500ms,healthy"; one sentence, with the word that is wrong, when it
// cannot be understood.
[[nodiscard]] std::variant<std::vector<phase>, std::string> parse_story(std::string_view text);

class server {
public:
    // Called on the server's thread: as each phase after the first begins, and for each request,
    // answered or not.
    struct watcher {
        std::function<void(mood)> on_mood;
        std::function<void(mood)> on_request;
    };

    // Begins to tell the story at once. Port 0: a free one. Throws std::system_error.
    explicit server(std::vector<phase> story, std::uint16_t port = 0, watcher watch = {});
    ~server();
    server(const server&) = delete;
    server& operator=(const server&) = delete;

    [[nodiscard]] std::string url() const;

private:
    struct impl;
    std::unique_ptr<impl> impl_;
};

}  // namespace flaky
