// rc::check with a number of cases of its own. RC_PARAMS is obeyed as usual: seed=... replays a
// run, max_success=... sets the number of cases for all.
#pragma once

#include <rapidcheck.h>

#include <iostream>
#include <string>
#include <utility>

namespace trinco::test {

template <class Testable>
[[nodiscard]] bool holds(const std::string& what, int cases, Testable&& testable) {
    const rc::detail::TestParams standard;
    auto params = rc::detail::configuration().testParams;
    if (params.maxSuccess == standard.maxSuccess) params.maxSuccess = cases;
    rc::detail::TestMetadata metadata;
    metadata.id = what;
    metadata.description = what;
    const rc::detail::TestResult result = rc::detail::checkProperty(
        rc::detail::toProperty(std::forward<Testable>(testable)), metadata, params);
    std::cerr << "- " << what << " (seed " << params.seed << ")\n";
    rc::detail::printResultMessage(result, std::cerr);
    std::cerr << '\n';
    return result.is<rc::detail::SuccessResult>();
}

}  // namespace trinco::test
