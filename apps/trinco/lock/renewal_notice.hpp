// What is said of a lease whose renewal is overdue, and when it succeeds again. Pure.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "apps/trinco/lock/tenure.hpp"

namespace trinco::program {

class renewal_notice {
public:
    // Each once: "it has not been renewed for 7.5 s (the reason); it is lost in 6.5 s unless that
    // succeeds", and "it is renewed again". Mostly empty: nothing new. `trouble` may be asked, and
    // may answer nothing.
    [[nodiscard]] std::string look(const lock_look& at,
                                   const std::function<std::string()>& trouble);

private:
    enum class said_t : std::uint8_t { nothing, clocks, overdue };
    said_t said_ = said_t::nothing;
};

}  // namespace trinco::program
