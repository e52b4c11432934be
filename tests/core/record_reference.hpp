// The record told a second time, as plainly as possible and in another style: everything that ever
// happened is in lists, and each question is answered by walking through them. Slow, unbounded, and
// without any of the record's shortcuts. It knows one text of options, and the controls that change
// state; names of voters are numbers.
//
// Shared with the record are only the judgements of core/breaker/policy, which have tests of their
// own.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "core/breaker/record.hpp"

namespace trinco::detail::test {

class record_reference {
public:
    explicit record_reference(const policy& p) : p_(p) {}

    struct answer {
        view fleet;
        bool counted = false;
        counts window;
        counts totals;
        std::uint32_t failing = 0;
        std::uint32_t live = 0;
        std::uint32_t probes_left = 0;
        bool granted = false;
        bool set_aside = false;
        bool flush = false;
    };

    answer exchange(int instance, int voter, const news& n, store_time now);
    answer probe(int voter, const probe_request& p, store_time now);
    answer control(const control_request& c, store_time now);

private:
    using time = std::int64_t;  // microseconds

    struct outcome_log {  // one slice of one counted batch that was in the window when it came
        int chapter;
        time at;
        int voter;
        counts n;
    };
    enum class fate { held, good, bad, returned, vanished, forgotten };
    struct lease_log {
        std::uint64_t token;
        era_t era;
        int voter;
        time deadline;
        fate how = fate::held;
        time ended = 0;
        int vanished_in = -1;  // the chapter
        int chapter = 0;
    };
    struct said {  // a token that was settled, and the answer
        std::uint64_t token;
        bool granted;
    };

    time arrive(store_time now);
    void read(const view& theirs, time t);
    void turn_to(breaker_state s, time t);
    void open_for(std::chrono::milliseconds d, time t);
    void open_again(time t);
    [[nodiscard]] bool frozen() const;
    [[nodiscard]] counts in_window(time t, std::optional<int> voter) const;
    [[nodiscard]] std::uint64_t young(time t) const;
    [[nodiscard]] std::uint32_t live(time t) const;
    [[nodiscard]] bool is_live(int voter, time t) const;
    [[nodiscard]] std::uint32_t failing(time t) const;
    [[nodiscard]] std::uint32_t quorum(std::uint32_t of, time t) const;
    [[nodiscard]] std::uint32_t results(std::optional<fate> how, std::optional<int> voter) const;
    [[nodiscard]] std::uint32_t held() const;
    void consider_opening(time t, answer& a);
    void pass_time(time t);
    [[nodiscard]] bool may_have_a_probe(int voter, std::uint64_t token, time t) const;
    answer tell(int voter, time t);

    policy p_;
    time clock_ = 0;
    time skew_ = 0;
    era_t era_ = 0;
    std::uint64_t rev_ = 0;
    breaker_state state_ = breaker_state::closed;
    time until_ = 0;
    time since_ = 0;
    int level_ = 0;
    override_kind over_ = override_kind::none;
    time over_until_ = 0;
    bool knows_options_ = false;
    int chapter_ = 0;  // between two moments at which the window was emptied
    time suspected_ = 0;
    time taken_over_ = 0;
    time put_aside_at_ = 0;
    std::set<int> aside_;
    counts totals_;
    std::vector<outcome_log> outcomes_;
    std::vector<lease_log> leases_;
    std::vector<said> spent_;
    std::map<int, time> heard_;
    std::map<int, time> asked_;
    std::map<int, std::uint64_t> last_seq_;  // by instance
    std::set<std::uint64_t> controls_;
};

}  // namespace trinco::detail::test
