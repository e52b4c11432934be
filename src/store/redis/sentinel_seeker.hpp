// Asks Sentinels where the primary of a name is.
//
// Order     The Sentinel whose answer was of use last is asked first, the others after it: at once
//           when it fails, and when it has said nothing for 200 ms, without giving it up. The first
//           good answer counts.
// Doubt     After an answer that led to no connection another Sentinel is asked first. So one that
//           was cut off from the others, and names a primary that is dead or none any more, is not
//           believed for ever.
// Failure   is one sentence with what each Sentinel said; denied when all of them refuse us.
//
// The rules of core/loop.hpp hold. One question at a time.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <vector>

#include "core/loop.hpp"
#include "store/redis/redis_link.hpp"
#include "store/redis/redis_url.hpp"

namespace trinco::detail {

// The primary in a reply to SENTINEL GET-MASTER-ADDR-BY-NAME; nothing when there is none in it.
[[nodiscard]] std::optional<stream_address> primary_in(const resp_reply& reply);

class sentinel_seeker {
public:
    using on_found = unique_function<void(redis_found)>;

    // All outlive it. What is found has the target's TLS.
    sentinel_seeker(loop& on, stream_factory& streams, const redis_target& target);
    ~sentinel_seeker();
    sentinel_seeker(const sentinel_seeker&) = delete;
    sentinel_seeker& operator=(const sentinel_seeker&) = delete;

    // As redis_finder.
    [[nodiscard]] op find(deadline by, on_found done);
    // What was found last is of use.
    void confirm() noexcept { doubtful_ = false; }

private:
    struct question;
    using question_ptr = std::shared_ptr<question>;

    void ask_next(const question_ptr& q);
    void answered(const question_ptr& q, std::size_t which, const resp_reply& reply);
    void failed(const question_ptr& q, std::size_t which, const redis_refusal& why);
    void give_up(const question_ptr& q);

    loop& on_;
    stream_factory& streams_;
    const redis_target& target_;
    std::vector<stream_address> order_;
    bool doubtful_ = false;  // an answer that has not been of use yet
    question_ptr asking_;
};

}  // namespace trinco::detail
