// flaky_server STORY: the server of flaky_server.hpp as a program, for tests and for trying things.
//
// Prints one JSON object a line: its URL, each change of mood and each request. Ends when its
// standard input does, so that it never outlives whoever started it.
#include <chrono>
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "flaky_server.hpp"

namespace {

constexpr auto help =
    "usage: flaky_server STORY\n"
    "  STORY   phases with their lengths, the last one for ever, for example\n"
    "          healthy:3s,hanging:4s,failing:2s,healthy\n"
    "Serves on a free port of 127.0.0.1 until its standard input ends.\n";

// Times are those of CLOCK_MONOTONIC, so that they can be compared with another program's.
void say(const char* event, flaky::mood m) {
    const std::string mood(flaky::to_string(m));
    const std::chrono::duration<double, std::milli> now =
        std::chrono::steady_clock::now().time_since_epoch();
    std::printf("{\"event\":\"%s\",\"mood\":\"%s\",\"steady_ms\":%.1f}\n", event, mood.c_str(),
                now.count());
    std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
    const std::string_view argument = argc == 2 ? argv[1] : "";
    if (argument == "--help") {
        std::fputs(help, stdout);
        return 0;
    }
    const auto parsed = flaky::parse_story(argument);
    const auto* const wrong = std::get_if<std::string>(&parsed);
    if (argc != 2 || wrong != nullptr) {
        const char* const why = argc != 2 ? "one story is needed" : wrong->c_str();
        std::fprintf(stderr, "flaky_server: %s\n%s", why, help);
        return 64;
    }
    const auto& story = std::get<std::vector<flaky::phase>>(parsed);
    try {
        const auto mood = [](auto m) { say("mood", m); };
        const auto request = [](auto m) { say("request", m); };
        const flaky::server server(story, 0, {mood, request});
        std::printf("{\"event\":\"listening\",\"url\":\"%s\"}\n", server.url().c_str());
        mood(story.front().how);
        while (std::getchar() != EOF) {
        }
    } catch (const std::exception& e) {
        std::fprintf(stderr, "flaky_server: %s\n", e.what());
        return 69;
    }
    return 0;
}
