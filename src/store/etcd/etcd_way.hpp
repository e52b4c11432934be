// Which member is used now: one that answered, has a leader, and is believed.
//
// Finding one  All are asked for their status in a random order, the next one after 200 ms without
//              an answer or at once after a failure; the first good answer wins. After a round in
//              vain there is a rest with full jitter (100 ms ... 1 s), which a new wish cuts short.
//              Nobody is asked while nobody waits.
// Leaving one  Its users say that it failed them; then it is asked last. A connection that ended
//              while idle is no failure: the same member is asked first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "core/backoff.hpp"
#include "core/loop.hpp"
#include "store/etcd/etcd_fault.hpp"
#include "store/etcd/etcd_transport.hpp"

namespace trinco::detail::etcd {

class way_user {
public:
    virtual ~way_user() = default;
    // Whether it needs the way, or a token, and has none.
    [[nodiscard]] virtual bool waits() const = 0;
    virtual void way_is_up() = 0;
    // All members said what they will say again.
    virtual void way_is_hopeless(errc why) = 0;
};

class etcd_way {
public:
    etcd_way(loop& on, transport& by);
    etcd_way(const etcd_way&) = delete;
    etcd_way& operator=(const etcd_way&) = delete;

    void add(way_user& one) { users_.push_back(&one); }
    // Whether the way is up at this moment; else want() it, and way_is_up comes.
    [[nodiscard]] bool is_up() const;
    void want();
    // The member failed somebody: no way leads there until it answers again. Ignored when another
    // is in use by now.
    void failed(std::size_t endpoint, const std::string& sentence);
    [[nodiscard]] std::size_t current() const noexcept { return current_; }
    // Grows with each member that is left: streams to earlier ones are not worth waiting for.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_; }
    // Why there is no way; empty while there is.
    [[nodiscard]] const std::string& trouble() const noexcept { return trouble_; }
    [[nodiscard]] bool has_others() const { return by_.endpoints() > 1; }
    [[nodiscard]] transport& by() noexcept { return by_; }

private:
    void begin_round();
    void ask_next();
    void ask(std::size_t endpoint);
    void answered(std::size_t endpoint, const wire_status& status);
    void came_up(std::size_t endpoint);
    void round_failed();
    [[nodiscard]] bool somebody_waits() const;

    loop& loop_;
    transport& by_;
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
    errc hopeless_code_ = errc::unavailable;
    std::uint32_t rounds_ = 0;  // in vain
    deadline begun_{};
    op next_;
    op rest_;
};

}  // namespace trinco::detail::etcd
