#include "apps/trinco/demo/programme.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/demo/household.hpp"
#include "apps/trinco/demo/scratch.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/stores/open_store.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using steady = std::chrono::steady_clock;

// All acts together: what the user was promised, less the time that clearing up may take. On
// servers, and with nodes that are to be started, nothing was promised.
constexpr auto whole_time = 56s;
constexpr auto whole_time_elsewhere = 110s;
// An act that has not ended by then has failed, so that the next one has its time.
constexpr auto time_of_act = 30s;

// Whether breakers and locks can be kept there at all, before processes complain about it.
std::optional<problem> check_store(const std::string& url) {
    settings with;
    with.breakers_url = url;
    with.locks_url = url;
    with.name_space = "default";
    const auto opened = open_store(with, needs::locks);
    if (const auto* why = std::get_if<problem>(&opened)) {
        return problem{why->code, why->sentence + "; the demo keeps it in TMPDIR"};
    }
    return std::nullopt;
}

std::string last_line_of(const std::filesystem::path& file) {
    std::ifstream text(file);
    std::string last;
    for (std::string line; std::getline(text, line);) last = line;
    return last;
}

// What could not be taken away from the servers.
std::string clear_servers(const programme& what) {
    std::string all;
    for (const auto* const shared : {&what.breakers, &what.locks}) {
        if (!*shared) continue;
        const auto left = clear(**shared);
        if (left) all += (all.empty() ? "" : "; ") + *left;
    }
    return all;
}

played play_one(const act& what, const stage& frame) {
    std::error_code error;
    std::filesystem::create_directory(frame.scratch, error);
    if (error) {
        act_result none;
        none.failure = problem{exit_unavailable, "a folder of the demo could not be made in " +
                                                     frame.scratch.parent_path().string() + ": " +
                                                     error.message()};
        return {&what, std::move(none)};
    }
    return {&what, what.play(frame)};
}

}  // namespace

bool played::held() const {
    return !seen.failure && !seen.claims.empty() &&
           std::all_of(seen.claims.begin(), seen.claims.end(),
                       [](const claim& one) { return one.held; });
}

bool programme_result::held() const {
    return !failure && nothing_left && !acts.empty() &&
           std::all_of(acts.begin(), acts.end(), [](const played& one) { return one.held(); });
}

programme_result play(const programme& what, voice& to, const interruption& end,
                      steady::time_point began) {
    programme_result all;
    auto made = scratch::make();
    if (auto* why = std::get_if<problem>(&made)) {
        all.failure = std::move(*why);
        all.left_there = clear_servers(what);  // they were tried out
        return all;
    }
    auto& place = std::get<scratch>(made);
    household processes;
    const std::string file = "local:" + (place.folder() / "demo.db").string();
    const std::string& breakers = what.breakers ? what.breakers->url : file;
    const std::string& locks = what.locks ? what.locks->url : file;
    const std::string name_space = what.breakers ? what.breakers->name_space : "default";
    if (!what.breakers || !what.locks) all.failure = check_store(file);
    const bool elsewhere = what.breakers || what.locks || !what.etcd.empty();
    const auto end_of_all = began + (elsewhere ? whole_time_elsewhere : whole_time);
    for (const act* one : what.acts) {
        if (all.failure || end.signal() != 0) break;
        to.enter(one->name);
        to.tell("act", one->scene);
        const std::filesystem::path folder = place.folder() / one->name;
        const auto until = std::min(steady::now() + time_of_act, end_of_all);
        all.acts.push_back(
            play_one(*one, {what.seed, folder, breakers, locks, name_space, what.etcd, to,
                            end.descriptor(), until, what.for_people}));
        to.show({});
        if (!all.acts.back().held()) all.last_error = last_line_of(folder / "errors");
    }
    to.enter({});
    const bool gone = processes.end(2s);
    all.left_there = clear_servers(what);
    all.nothing_left = place.remove() && gone;
    all.took = std::chrono::duration_cast<milliseconds>(steady::now() - began);
    return all;
}

}  // namespace trinco::program::demo
