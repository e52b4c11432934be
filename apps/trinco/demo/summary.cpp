#include "apps/trinco/demo/summary.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string_view>

#include "apps/trinco/output/json.hpp"
#include "apps/trinco/output/visible.hpp"
#include "apps/trinco/start/executables.hpp"

namespace trinco::program::demo {
namespace {

namespace fs = std::filesystem;

std::string painted(std::string_view text, const char* colour, bool colours) {
    return colours ? colour + std::string(text) + "\x1b[0m" : std::string(text);
}

std::string verdict(bool held, bool colours) {
    return held ? painted("yes", "\x1b[32m", colours) : painted("NO ", "\x1b[31m", colours);
}

std::string seconds(std::chrono::milliseconds d) {
    char text[32];
    std::snprintf(text, sizeof text, "%.1f s", static_cast<double>(d.count()) / 1000);
    return text;
}

std::string text_of(const played& one, bool colours) {
    std::string text = painted(one.what->title, "\x1b[1m", colours) + "\n";
    for (const claim& each : one.seen.claims) {
        text += "  " + verdict(each.held, colours) + "  " + each.sentence + "\n";
    }
    for (const std::string& line : one.seen.summary) text += "  " + line + "\n";
    if (one.seen.failure) {
        text += "  " + verdict(false, colours) +
                "  it could not be played: " + one.seen.failure->sentence + "\n";
    } else if (one.seen.claims.empty()) {
        text += "  " + verdict(false, colours) + "  it showed nothing in its time\n";
    }
    return text;
}

std::string next_steps() {
    const std::string trinco = how_called();
    return "Try it (commands that work as they stand):\n"
           "  " +
           trinco +
           " lock nightly -- sh -c 'echo working; sleep 30'\n"
           "      one at a time on this machine; type it in two terminals\n"
           "  " +
           trinco +
           " locks\n"
           "      who holds what, and who waits\n"
           "  " +
           trinco +
           " call payments -- false\n"
           "      six times: after five failures it is not even called\n"
           "  " +
           trinco +
           " breakers\n"
           "      what is open, and for how long\n";
}

std::string json_of(const played& one) {
    json_object claims;
    for (const claim& each : one.seen.claims) claims.add(each.name, each.held);
    json_object all = one.seen.figures;
    all.add("ok", one.held()).add_raw("claims", claims.text());
    one.seen.failure ? all.add("failure", one.seen.failure->sentence) : all.add_null("failure");
    return all.text();
}

}  // namespace

std::string summary_text(const programme& what, const programme_result& seen, bool colours) {
    std::string text = "\n";
    for (const played& one : seen.acts) text += text_of(one, colours) + "\n";
    if (!seen.nothing_left) {
        text += "  " + verdict(false, colours) + "  no process and no file is left\n";
    }
    if (!seen.held() && !seen.last_error.empty()) {
        text += "The last that a process complained of: " + visible(seen.last_error) + "\n";
    }
    text += std::string(seen.held() ? "All of it held" : "NOT all of it held") + ": " +
            seconds(seen.took) + ", seed " + std::to_string(what.seed) +
            (!seen.left_there.empty() ? "; " + seen.left_there + ".\n\n"
             : seen.nothing_left      ? "; nothing is left behind.\n\n"
                                      : ".\n\n");
    return text + next_steps();
}

std::string summary_json(const programme& what, const programme_result& seen) {
    json_object all;
    all.add("schema", 1)
        .add("event", "result")
        .add("seed", what.seed)
        .add("ok", seen.held())
        .add("elapsed_ms", seen.took.count())
        .add("nothing_left", seen.nothing_left && seen.left_there.empty());
    for (const std::string_view name : {"tickets", "breaker", "invoice", "leader"}) {
        const played* found = nullptr;
        for (const played& one : seen.acts) {
            if (one.what->name == name) found = &one;
        }
        found != nullptr ? all.add_raw(name, json_of(*found)) : all.add_null(name);
    }
    if (!seen.held() && !seen.last_error.empty()) all.add("last_error", seen.last_error);
    return all.text() + "\n";
}

std::string how_called() {
    std::error_code error;
    const fs::path self = program_file();
    const char* path = std::getenv("PATH");
    std::string_view left = path != nullptr ? path : "";
    while (!left.empty()) {
        const std::string_view folder = left.substr(0, left.find(':'));
        left.remove_prefix(std::min(folder.size() + 1, left.size()));
        const fs::path found = fs::path(folder) / "trinco";
        if (::access(found.c_str(), X_OK) != 0) continue;
        if (fs::equivalent(found, self, error)) return "trinco";
        break;  // another one
    }
    const fs::path near = fs::relative(self, error);
    if (!error && !near.empty() && *near.begin() != "..") {
        return near.has_parent_path() ? near.string() : "./" + near.string();
    }
    return self.string();
}

}  // namespace trinco::program::demo
