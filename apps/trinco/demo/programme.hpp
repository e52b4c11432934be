// Plays the acts one after the other, and leaves nothing behind.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/trinco/demo/interruption.hpp"
#include "apps/trinco/demo/shared_store.hpp"
#include "apps/trinco/demo/stage.hpp"
#include "apps/trinco/demo/voice.hpp"

namespace trinco::program::demo {

struct act {
    std::string_view name;   // "tickets": of --only and of the JSON object
    std::string_view title;  // a few words
    std::string_view scene;  // what is to be seen, in one line
    act_result (*play)(const stage&);
};

struct played {
    const act* what = nullptr;
    act_result seen;
    [[nodiscard]] bool held() const;
};

struct programme_result {
    std::vector<played> acts;
    std::chrono::milliseconds took{0};
    bool nothing_left = false;            // neither a process nor a file
    std::string left_there = {};          // what a shared store keeps for a while
    std::string last_error = {};          // what a process said last on its stderr
    std::optional<problem> failure = {};  // nothing could be played at all
    [[nodiscard]] bool held() const;
};

struct programme {
    std::vector<const act*> acts;
    std::uint32_t seed = 1;
    std::optional<shared_store> breakers = {};  // instead of the demonstration's own file
    std::optional<shared_store> locks = {};     // the same
    std::filesystem::path etcd = {};            // the program of act (d), if that is played
    bool for_people = true;                     // false: nobody needs time to read
};

// On return every process is gone and the scratch folder, too, unless the result says otherwise.
[[nodiscard]] programme_result play(const programme& what, voice& to, const interruption& end,
                                    std::chrono::steady_clock::time_point began);

}  // namespace trinco::program::demo
