// Act (b) of `trinco demo`: a payment gateway dies, and five services stop calling it.
#pragma once

#include "apps/trinco/demo/gateway_outage.hpp"
#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

// The outage without the breaker, then with it. About 20 s.
[[nodiscard]] act_result breaker_story(const stage& on);

// What two outages show, both complete.
[[nodiscard]] act_result judge_outages(const outage& without, const outage& with);

}  // namespace trinco::program::demo
