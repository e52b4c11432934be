// Charges a customer once, however many services are asked to, and whichever of them dies.
//
//     billing STORE INVOICE CENTS LEDGER [die]
//     billing etcd://10.0.0.1,10.0.0.2,10.0.0.3 customer-7/2026-11 4990 charges.txt
//
// A lock around the charge does not do this: it keeps two services from charging at a time, not one
// after the other, and who died after the charge and before its record has charged all the same.
// With `die` this program does just that; start it again without, and it finds out.
#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>

#include <trinco/etcd.hpp>
#include <trinco/local.hpp>
#include <trinco/memory.hpp>
#include <trinco/once.hpp>
#include <trinco/session.hpp>
#include <trinco/store.hpp>

namespace {

// In place of a payment provider: a file with the key of each charge, what it was for and how much.
struct provider {
    std::string ledger;

    // The receipt of the charge that came with this key; empty: there is none.
    std::string find(const std::string& wanted) const {
        std::ifstream charges(ledger);
        std::string key, of, cents;
        while (charges >> key >> of >> cents) {
            if (key == wanted) return "receipt-" + key.substr(0, 8);
        }
        return {};
    }
    std::string charge(const std::string& key, const std::string& of, const std::string& cents) {
        if (find(key).empty()) {  // what an idempotency key is for
            std::ofstream charges(ledger, std::ios::app);
            if (!(charges << key << ' ' << of << ' ' << cents << std::endl)) {
                throw std::runtime_error("the provider cannot be reached");
            }
        }
        return find(key);
    }
};

}  // namespace

int main(int argc, char** argv) try {
    if (argc < 5) throw std::invalid_argument("billing STORE INVOICE CENTS LEDGER [die]");
    const std::string invoice = argv[2], cents = argv[3];
    provider bank{argv[4]};
    const bool die = argc > 5;

    namespace drivers = trinco::drivers;
    const auto where =
        trinco::open(argv[1], {drivers::etcd(), drivers::local(), drivers::memory()});
    trinco::session session(where, {.ttl = std::chrono::seconds(5)});

    trinco::once_options how;
    how.fingerprint = cents;  // the same invoice with another amount is a mistake
    how.keep = std::chrono::hours(24 * 366);
    how.reconcile = [&](const std::string& run_id) -> trinco::once_found {
        using found = trinco::once_found::what_t;
        const auto receipt = bank.find(run_id);
        return {receipt.empty() ? found::not_done : found::done, receipt};
    };
    const auto paid = trinco::once(
        session, "billing/" + invoice,
        [&](const trinco::once_run& run) {
            const auto receipt = bank.charge(run.run_id, invoice, cents);
            if (die) std::_Exit(9);
            return receipt;
        },
        how);
    std::printf("%s %s\n", paid.ran ? "charged" : "was charged", paid.value.c_str());
    return paid.failed ? 1 : 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
}
