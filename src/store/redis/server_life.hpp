// Whether the server that answers is the one of before: each start of a server draws a run id.
//
// A server that was restarted, or a replica that took over, may lack what the one before promised:
// leases, the last writes, the scripts it had loaded. It is the same address often, so only the run
// id tells. A user without the right to INFO gets no run id, and nothing can be told then.
//
// Plain values; the loop's thread.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "store/redis/redis_steps.hpp"

namespace trinco::detail {

// The run id in the text that INFO server answers; empty when there is none that makes sense (1 to
// 64 hexadecimal digits).
[[nodiscard]] std::string run_id_in(std::string_view info);

// Asks for the run id at the beginning of a connection, and tells it before the connection is up;
// empty when the server does not say it. Refuses no server: neither NOPERM nor a strange text does.
[[nodiscard]] redis_step life_step(std::function<void(std::string run_id)> told);

class server_life {
public:
    // The server of now; an empty run id says nothing. True when it is known not to be the one that
    // was known last.
    bool is_another(std::string run_id);
    [[nodiscard]] const std::string& run_id() const noexcept { return run_id_; }

private:
    std::string run_id_;  // the last one that was known
};

}  // namespace trinco::detail
