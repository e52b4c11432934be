#include "apps/trinco/doctor/round_trips.hpp"

#include <chrono>
#include <string>
#include <utility>

namespace trinco::program::doctor {
namespace {

using namespace std::chrono_literals;

constexpr auto slow_commit = 50ms;  // a lock and its release are two of them

}  // namespace

void judge_round_trips(const distribution& commits, const distribution& reads, examination& to) {
    auto figures = json_object()
                       .add_raw("commit", json_of(commits).text())
                       .add_raw("read", json_of(reads).text());
    const std::string text = "a commit " + summary_of(commits) + "; a read " + summary_of(reads);
    if (commits.p50() <= slow_commit) return to.good("round-trip", text, std::move(figures));
    to.add({level::warn, "round-trip", text,
            "a lock costs two commits, each a write to the disks of most members: bring members "
            "nearer to each other, and give them faster disks",
            std::move(figures)});
}

}  // namespace trinco::program::doctor
