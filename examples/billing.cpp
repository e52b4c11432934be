// Charges a customer once, however many services are asked to, and whichever of them dies.
//
//     billing STORE INVOICE CENTS LEDGER [die]
//     billing etcd://10.0.0.1,10.0.0.2,10.0.0.3 customer-7/2026-11 4990 charges.txt
//
// A lock around the charge does not do this: it keeps two services from charging at a time, not one
// after the other, and who died after the charge and before its record has charged all the same.
// With `die` this program does just that; start it again without, and it finds out.
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cstdio>
#include <fstream>
#include <memory>
#include <stdexcept>
#include <string>

#include <trinco/etcd.hpp>
#include <trinco/local.hpp>
#include <trinco/once.hpp>
#include <trinco/session.hpp>
#include <trinco/store.hpp>

namespace {

// In place of a payment provider: a file with the key of each charge, what it was for and how much.
struct provider {
    std::string ledger;

    // The receipt of the charge with this key, which is made first if there is none and it is said
    // what to charge: one step. Empty: not charged. Throws when that cannot be known, and then it
    // has charged nothing.
    std::string ask(const std::string& key, const std::string& charge = {}) const {
        const int file = ::open(ledger.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
        const std::shared_ptr<void> closing(nullptr, [file](void*) { ::close(file); });
        std::ifstream charges(::flock(file, LOCK_EX) == 0 ? ledger : "");
        const std::string receipt = "receipt-" + key.substr(0, 8);
        for (std::string line; std::getline(charges, line);) {
            if (line.starts_with(key + ' ')) return receipt;
        }
        if (!charges.eof()) throw std::runtime_error("the provider cannot be reached");
        if (charge.empty()) return {};
        const std::string line = key + ' ' + charge + '\n';
        const auto end = ::lseek(file, 0, SEEK_END);
        if (::write(file, line.data(), line.size()) == static_cast<::ssize_t>(line.size())) {
            return receipt;
        }
        if (::ftruncate(file, end) != 0) std::_Exit(1);  // who comes next asks what became of it
        throw std::runtime_error("the provider takes no charges");
    }
};

}  // namespace

int main(int argc, char** argv) try {
    const bool die = argc == 6 && std::string(argv[5]) == "die";
    if (argc != 5 && !die) throw std::invalid_argument("billing STORE INVOICE CENTS LEDGER [die]");
    const std::string url = argv[1], invoice = argv[2], cents = argv[3];
    if (cents.find_first_not_of("0123456789") != std::string::npos || cents.size() > 12 ||
        !(cents[0] > '0')) {
        throw std::invalid_argument("CENTS is a whole number above 0, of at most 12 digits");
    }
    if (url.starts_with("memory:")) {
        throw std::invalid_argument(
            "memory: is each process's own; name a store that services "
            "share, as etcd://HOST or local:FILE");
    }
    const provider bank{argv[4]};
    trinco::session session(trinco::open(url, {trinco::drivers::etcd(), trinco::drivers::local()}),
                            {.ttl = std::chrono::seconds(5)});
    trinco::once_options how;
    how.fingerprint = cents;  // the same invoice with another amount is a mistake
    how.keep = std::chrono::hours(24 * 366);
    how.retry_on_failure = true;  // a failure has charged nothing
    how.reconcile = [&](const std::string& run_id) -> trinco::once_found {
        using found = trinco::once_found::what_t;
        const auto receipt = bank.ask(run_id);  // throws: nobody knows, and nobody charges again
        return {receipt.empty() ? found::not_done : found::done, receipt};
    };
    const auto paid = trinco::once(
        session, "billing/" + invoice,
        [&](const trinco::once_run& run) {
            const auto receipt = bank.ask(run.run_id, invoice + ' ' + cents);
            if (die) std::_Exit(9);
            return receipt;
        },
        how);
    if (paid.failed) throw std::runtime_error("not charged: " + paid.value);
    std::printf("%s %s\n", paid.ran ? "charged" : "was charged", paid.value.c_str());
    return 0;
} catch (const std::exception& e) {
    std::fprintf(stderr, "billing: %s\n", e.what());
    return 1;
}
