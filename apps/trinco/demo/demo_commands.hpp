// `trinco demo`, and what its processes are: hidden commands that it starts itself.
#pragma once

#include <memory>

#include "apps/trinco/command_line/command.hpp"

namespace trinco::program::demo {

[[nodiscard]] std::unique_ptr<command> make_demo();
// demo-sell: sells one ticket, see sale.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_sell();
// demo-service: sells tickets until there is none left, see rush.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_service();
// demo-invoice: charges an invoice, see invoice_worker.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_invoice();
// demo-hold and demo-grants: use locks, see lock_users.hpp.
[[nodiscard]] std::unique_ptr<command> make_demo_hold();
[[nodiscard]] std::unique_ptr<command> make_demo_grants();

}  // namespace trinco::program::demo
