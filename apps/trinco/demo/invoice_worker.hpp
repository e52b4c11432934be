// A worker that charges an invoice at the provider and records that: `trinco demo-invoice`.
//
// With --by lock it is the command of `trinco lock invoice/N -- ...` and records in a file of the
// shop; with --by once it calls trinco::once of the library on the store of TRINCO_LOCKS, with a
// function that asks the provider. With --stand before|after it stands still before or after its
// charge, until it is killed or `longest` (sale.hpp) is over. Its stdout:
//
//     stands PID               it stands still now
//     charged ID               the provider has charged it
//     asks ID                  the provider, whether it was charged under that id
//     hears done|not_done
//     recorded RECEIPT         by this worker
//     told RECEIPT             it was recorded before, or the provider said so
//     failed SENTENCE
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "apps/trinco/demo/cast.hpp"

namespace trinco::program::demo {

struct invoice_worker {
    enum class way : std::uint8_t { lock, once };
    enum class stand : std::uint8_t { nowhere, before, after };
    way by = way::lock;
    stand at = stand::nowhere;
    std::string invoice;
    std::filesystem::path folder;  // of provider and shop
    std::string locks;             // the store's URL, may hold a password
    std::filesystem::path errors = {};
};

[[nodiscard]] role worker_role(const invoice_worker& of);

}  // namespace trinco::program::demo
