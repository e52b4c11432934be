// The line of one thread to the driver's dependency (dependency.py).
//
//     call INSTANCE BREAKER KIND ASKED    ->  good | bad, when the dependency has answered
//
// KIND is normal, fleet or local (whose probe the call is), or unknown; ASKED the moment, in
// microseconds of the boot clock, before the breaker was asked.
#pragma once

#include <cstdint>
#include <string>

namespace trinco::fleet_test {

class dependency_client {
public:
    // Throws std::runtime_error when nobody listens at this path.
    explicit dependency_client(const std::string& path);
    ~dependency_client();
    dependency_client(const dependency_client&) = delete;
    dependency_client& operator=(const dependency_client&) = delete;

    // True: good. Throws std::runtime_error when the dependency is gone.
    [[nodiscard]] bool call(const std::string& instance, const std::string& breaker,
                            const std::string& kind, std::int64_t asked);

private:
    int fd_;
};

}  // namespace trinco::fleet_test
