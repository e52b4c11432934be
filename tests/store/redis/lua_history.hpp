// One history of a fleet, told to the C++ record and to the scripts on a real server at once. After
// each step all that both answered is compared, and what it did to the lives of the keys; now and
// then the whole record.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "core/breaker/record.hpp"
#include "store/redis/script_protocol.hpp"
#include "tests/store/redis/loaded_scripts.hpp"

namespace trinco::detail::test {

// One step of a history: numbers, so that a failing history shrinks.
struct lua_step {
    std::uint8_t what = 0;
    std::uint8_t who = 0;
    std::uint16_t a = 0;
    std::uint16_t b = 0;
};
std::ostream& operator<<(std::ostream& s, const lua_step& x);

class lua_history {
public:
    lua_history(loaded_scripts& scripts, std::uint32_t policy_seed);

    // The first difference, in words: nothing when there is none.
    [[nodiscard]] std::optional<std::string> take_steps(const std::vector<lua_step>& steps);

private:
    struct process {
        view known;
        std::uint64_t seq = 0;
        std::uint64_t own_stamp = 0;
        std::string configured;
        std::string held;  // governing options, of stamp held_stamp
        std::uint64_t held_stamp = 0;
        bool send_options = false;
    };
    struct said_before {
        int instance = 0;
        std::optional<news> batch;
        probe_request probe;
    };
    struct lease {
        int instance;
        std::uint64_t token;
    };
    struct dump {
        std::optional<fleet_record> record;
        std::vector<resp_reply> keys;
    };

    void take_step(const lua_step& s);
    void pass_to_a_deadline(const lua_step& s);
    void exchange(const lua_step& s);
    void look(const lua_step& s);
    void take(const lua_step& s);
    void settle(const lua_step& s);
    void repeat(const lua_step& s);
    void control(const lua_step& s);
    void meddle(const lua_step& s);
    void restart(const lua_step& s);
    void tell(int i, const news& n);
    void tell(int i, const probe_request& p);
    void tell(const control_request& c);
    void keep_dump();
    void bring_dump_back();

    // Sends a call and reads its reply; compares the life of the keys.
    [[nodiscard]] resp_reply ask(const script_call& call);
    void compare_life(bool is_refreshed);
    void compare_report();
    void compare_record();
    void compare(const view& got, const view& wanted);
    template <class T>
    void compare(const char* what, const T& got, const T& wanted);
    void learn(process& of, const view& v) const;

    loaded_scripts& scripts_;
    std::string text_;
    std::vector<std::string> keys_;
    std::optional<fleet_record> record_;  // nothing: absent
    store_time now_{std::chrono::seconds(1'700'000'000)};
    std::map<int, process> processes_;
    std::vector<lease> leases_;
    std::vector<said_before> said_;
    std::optional<dump> dump_;
    std::uint64_t token_ = 0;
    std::uint64_t control_ = 0;
    std::vector<std::int64_t> lives_;  // of the keys after a call
    std::optional<std::string> difference_;
};

}  // namespace trinco::detail::test
