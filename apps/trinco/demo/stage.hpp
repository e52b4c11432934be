// What an act of `trinco demo` plays on: what it gets from the frame, and what it gives back.
//
//     act_result breaker_story(const stage& on);
//
// The frame       makes a scratch folder and removes it, catches signals, draws, keeps the time,
//                 writes summary and JSON. It runs one act after the other on the main thread.
// An act          starts its processes with `cast` (all gone when it returns, in any way), tells
//                 what happens, and returns claims: sentences that were seen to be true or not.
//                 It looks at interrupted() at least every 100 ms, by polling `interruption`
//                 beside its other descriptors, and then returns at once with what it has.
// Repeatable      Think times and victims come from `seed`: std::mt19937(on.seed).
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/demo/cast.hpp"
#include "apps/trinco/output/json.hpp"
#include "apps/trinco/problem.hpp"

namespace trinco::program::demo {

// Colours of the live view; NO_COLOR and pipes show the text alone, so the text must say it, too.
enum class tone : std::uint8_t { plain, good, bad, busy, dim };

struct cell {
    std::string text;  // ASCII
    tone colour = tone::plain;
};

// A line of the live view: a label, a bar if `filled` says how much of it, and cells.
//     gateway    hangs     calls 37
//     stock      [##############------]  71 sold of 100
struct view_row {
    std::string label;                  // up to 10 characters
    std::optional<double> filled = {};  // 0 ... 1; more is shown as full
    tone bar = tone::good;
    std::vector<cell> cells = {};  // two spaces between; cut at the terminal's width
};

// Where an act tells what happens. Every member may be called from any thread.
class narrator {
public:
    virtual ~narrator() = default;

    // A line that stays, with the time since the demonstration began: a sentence of at most 66
    // characters, so that it fits a line of 80. With --json it is an object {"event", "text",
    // ...figures}.
    // `event` is a word for programs ("sold_twice", "breaker_open").
    virtual void tell(std::string_view event, std::string_view sentence,
                      const json_object& figures) = 0;
    void tell(std::string_view event, std::string_view sentence) { tell(event, sentence, {}); }

    // The live view from now on: at most 12 rows, drawn anew up to ten times a second. Without a
    // terminal it is not shown: what matters must be told, too. Cheap; call it at every change.
    // No rows: nothing is shown.
    virtual void show(std::vector<view_row> rows) = 0;
};

struct stage {
    std::uint32_t seed = 1;
    std::filesystem::path scratch;  // a folder of this act alone: exists, empty, absolute
    std::string breakers_url;       // both local: in the scratch folder, or a server; may hold a
    std::string locks_url;          // password, so it is handed on in the environment only
    std::string name_space;         // of breakers
    std::filesystem::path etcd;     // the program that act (d) starts
    narrator& to;
    int interruption = -1;  // readable, and stays so, once the user wants it to end
    std::chrono::steady_clock::time_point until{};  // the act returns by then, whatever happens
    bool for_people = true;                         // false: programs read what is told

    // Whether locks are kept by a server, which knows of a dead holder by the end of its lease.
    [[nodiscard]] bool locks_on_server() const;
    [[nodiscard]] bool interrupted() const;
    // Interrupted, or `until` has come.
    [[nodiscard]] bool over() const;
    // What is left until `until`, for poll; at most 100 ms, at least 0.
    [[nodiscard]] std::chrono::milliseconds moment() const;
    // Lets time pass. False once over().
    bool pause(std::chrono::milliseconds span) const;
    // The same, so that people can read: no time for programs.
    bool let_read(std::chrono::milliseconds span) const;
};

// What was to be shown, and whether it was seen.
struct claim {
    std::string name;  // for programs: "sold_exactly_100"
    bool held = false;
    std::string sentence;  // what is claimed, with its figures; at most 72 characters
};

struct act_result {
    std::vector<claim> claims;         // the act is a success when there are some and all held
    std::vector<std::string> summary;  // lines of figures, at most 76 characters each
    json_object figures;               // the act's object in the last line of --json
    std::optional<problem> failure;    // it could not be played: a process did not start, ...
};

}  // namespace trinco::program::demo
