// The inside of a circuit_breaker, for its registry, the simulator and tests.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "breaker/engine.hpp"
#include "trinco/circuit_breaker.hpp"

namespace trinco::detail {

// What is wrong with a name or with options; an empty message when nothing is.
[[nodiscard]] breaker_fault check_breaker(const std::string& name, const breaker_options& options);

struct breaker_access {
    // Name and options are valid.
    [[nodiscard]] static std::unique_ptr<circuit_breaker> make(std::string name,
                                                               const breaker_options& options,
                                                               engine_env env = {}) {
        return std::unique_ptr<circuit_breaker>(new circuit_breaker(
            std::make_unique<engine>(std::move(name), options, std::move(env))));
    }
    [[nodiscard]] static engine& core(circuit_breaker& of) noexcept { return *of.core_; }
};

}  // namespace trinco::detail
