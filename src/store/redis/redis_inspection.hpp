// One page of the breakers of a namespace: names from the index, then a script each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/breaker/messages.hpp"
#include "store/redis/script_runner.hpp"

namespace trinco::detail {

class redis_inspection : public std::enable_shared_from_this<redis_inspection> {
public:
    struct request {
        std::string name_space;
        std::string prefix;
        std::string from;
        std::size_t rows;
        deadline by;
    };
    // Begins; the op keeps it alive. The runner outlives it.
    [[nodiscard]] static op start(script_runner& scripts, request what, completion<page> done);

    redis_inspection(script_runner& scripts, request what, completion<page> done);

private:
    void next_names();
    void came_names(const resp_reply& names);
    void came_report(std::size_t at, std::error_code error, const resp_reply& reply);
    void round_over();
    void finish(std::error_code error);

    script_runner& scripts_;
    request what_;
    completion<page> done_;
    page page_;
    // Of the round that is under way.
    std::vector<std::string> names_;
    std::vector<std::optional<report>> reports_;
    bool more_ = false;
    std::size_t open_ = 0;
    std::vector<op> ops_;
};

}  // namespace trinco::detail
