// Looks names up without holding the loop up.
//
// A thread a look-up, at most two at a time, others wait for their turn; see Names in
// socket_factory.hpp. A look-up that hangs for ever takes its place for ever: the askers' deadlines
// bound what that costs them.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "net/event_loop_impl.hpp"
#include "net/socket_factory.hpp"

namespace trinco::detail {

class name_service final : public loop_member, public std::enable_shared_from_this<name_service> {
public:
    name_service(std::shared_ptr<event_loop::impl> on, name_lookup names);
    name_service(const name_service&) = delete;
    ~name_service();

    [[nodiscard]] op resolve(const std::string& host, completion<std::vector<std::string>> done);
    void loop_ended() noexcept override;

private:
    struct question {
        std::uint64_t ticket;
        std::string host;
    };

    void begin_next();
    // False when the system gives no thread.
    [[nodiscard]] bool begin(const question& what);
    void answered(std::uint64_t ticket, name_answer answer);

    std::shared_ptr<event_loop::impl> on_;
    name_lookup names_;
    std::deque<question> waiting_;
    std::map<std::uint64_t, completion<std::vector<std::string>>> asked_;
    std::uint64_t next_ticket_ = 0;
    int running_ = 0;
};

}  // namespace trinco::detail
