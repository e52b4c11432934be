// Which of a server's members is used now: one that said that it can serve.
//
// Finding one  All are asked in a random order, the next one after 200 ms without an answer or at
//              once after a failure; the first good answer wins. After a round in vain there is a
//              rest with full jitter (100 ms ... 1 s), which a new wish cuts short. Nobody is asked
//              while nobody waits.
// Leaving one  Its users say that it failed them; then it is asked last. A connection that ended
//              while idle is no failure: the same member is asked first.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/backoff.hpp"
#include "core/loop.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

// What a member says when it is asked whether it can serve.
struct member_word {
    bool good = false;
    bool hopeless = false;  // it will say the same again
    errc code = errc::unavailable;
    std::string sentence = {};  // why not
    bool refused = false;       // nobody listens there
};

// The members, as the way sees them.
class way_members {
public:
    virtual ~way_members() = default;
    [[nodiscard]] virtual std::size_t count() const noexcept = 0;
    // Whether what is sent there now goes over a connection that is up.
    [[nodiscard]] virtual bool connected(std::size_t member) const = 0;
    // Whether it can serve, by a connection of which nothing bad is known. `done` runs by the
    // deadline, not inside the call.
    [[nodiscard]] virtual op ask(std::size_t member, deadline by,
                                 unique_function<void(member_word)> done) = 0;
};

class way_user {
public:
    virtual ~way_user() = default;
    // Whether it needs the way, or what it must have for it, and has none.
    [[nodiscard]] virtual bool waits() const = 0;
    virtual void way_is_up() = 0;
    // All members said what they will say again.
    virtual void way_is_hopeless(errc why) = 0;
};

class member_way {
public:
    static constexpr std::chrono::seconds answer_within{2};

    member_way(loop& on, way_members& to);
    member_way(const member_way&) = delete;
    member_way& operator=(const member_way&) = delete;

    void add(way_user& one) { users_.push_back(&one); }
    // Whether the way is up at this moment; else want() it, and way_is_up comes.
    [[nodiscard]] bool is_up() const;
    void want();
    // The member failed somebody: no way leads there until it answers again. Ignored when another
    // is in use by now.
    void failed(std::size_t member, const std::string& sentence);
    [[nodiscard]] std::size_t current() const noexcept { return current_; }
    // Grows with each member that is left: answers of earlier ones are not worth waiting for.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    // Why there is no way; empty while there is.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
    // Whether nobody listened at any of them when all were asked last. Any thread.
    [[nodiscard]] bool is_refused() const noexcept { return refused_; }
    [[nodiscard]] bool has_others() const { return to_.count() > 1; }
    // Asks nobody any more.
    void stop();

private:
    void begin_round();
    void ask_next();
    void ask(std::size_t member);
    void answered(std::size_t member, member_word said);
    void came_up(std::size_t member);
    void round_failed();
    [[nodiscard]] bool somebody_waits() const;

    loop& loop_;
    way_members& to_;
    std::vector<way_user*> users_;
    bool up_ = false;
    bool left_ = false;  // current_ failed, and is asked last
    std::size_t current_ = 0;
    std::uint64_t generation_ = 0;
    std::string trouble_;
    std::vector<std::size_t> order_;  // those not yet asked in this round, from the back
    std::map<std::size_t, op> asked_;
    std::size_t failures_ = 0;  // in this round
    std::size_t hopeless_ = 0;
    std::size_t refusals_ = 0;
    std::atomic<bool> refused_ = false;
    errc hopeless_code_ = errc::unavailable;
    std::uint32_t rounds_ = 0;  // in vain
    deadline begun_{};
    op next_;
    op rest_;
};

}  // namespace trinco::detail
