// A circuit breaker: stops calling a dependency that fails, tries it gently, goes on when it is well.
//
//     trinco::circuit_breaker payments("payments");
//     auto receipt = payments.call([&] { return gateway.charge(order); });   // throws when refused
//
//     if (auto permit = payments.try_acquire()) {                            // without exceptions
//         gateway.charge(order) ? permit.success() : permit.failure();
//     } else {
//         answer_later(permit.refusal().retry_after);
//     }
//
// (the manual of this header continues with states, outcomes, threads, ownership, errors and cost)
#pragma once

// A sketch that fixes the shape; the implementer completes the manual.
//
// enum class state { closed, open, half_open };
// enum class outcome { success, failure, ignored };
// struct refusal { by: local|fleet|override|ramp ; reason; retry_after };
// class permit: move-only, explicit operator bool (admitted), success(), failure(), ignore(), refusal();
//   destructor = ignored (gives a probe back); success/failure with a duration when given
// class circuit_breaker { ctor(name, options, ...); try_acquire(); call(f), call(f, fallback);
//   state(), snapshot(), totals, operator verbs trip/reset/force_open/disable/observe/resume,
//   on_event(callback) }
