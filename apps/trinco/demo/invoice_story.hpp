// Act (c) of `trinco demo`: a worker dies between the charge of an invoice and its record, and is
// started again. A lock alone charges twice; `once`, which asks the provider, does not.
#pragma once

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "apps/trinco/demo/stage.hpp"

namespace trinco::program::demo {

// One invoice: a worker that is killed, and the one that tries again.
struct paid_invoice {
    std::size_t charges = 0;            // by the provider's ledger
    std::string killed_run;             // the id of the killed worker's charge, if it came so far
    std::string asked;                  // the id that the second one asked for
    std::string heard;                  // "done", "not_done"; empty: it did not ask
    std::string second_run;             // the id of the second one's charge, if it made one
    std::string receipt;                // that it ended with
    std::chrono::milliseconds took{0};  // from the kill until then
    bool finished = false;
};

struct invoice_outcome {
    paid_invoice by_lock;      // killed after the charge
    paid_invoice by_once;      // the same
    paid_invoice not_charged;  // killed before the charge, by once
    std::string asked_later;   // the receipt that somebody is told who asks for by_once again
    std::size_t charges_later = 0;
};

// About 5 s; on a server up to two TTLs more.
[[nodiscard]] act_result invoice_story(const stage& on);

// What was seen of it.
[[nodiscard]] act_result judge_invoices(const invoice_outcome& seen);

}  // namespace trinco::program::demo
