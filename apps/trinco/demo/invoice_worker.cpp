#include "apps/trinco/demo/invoice_worker.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <memory>
#include <optional>
#include <random>
#include <stdexcept>
#include <string_view>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/demo/provider.hpp"
#include "apps/trinco/demo/sale.hpp"
#include "apps/trinco/demo/service.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "trinco/once.hpp"
#include "trinco/session.hpp"
#include "trinco/store.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;

constexpr std::array<std::string_view, 2> ways = {"lock", "once"};
constexpr std::array<std::string_view, 3> stands = {"nowhere", "before", "after"};
// Of records that the demonstration could not remove.
constexpr auto keeps = 5min;

void tell(const std::string& line) {
    if (write_all(STDOUT_FILENO, line + "\n") != 0) std::_Exit(exit_output);
}

std::string fresh_id() {
    static constexpr std::string_view digits = "0123456789abcdef";
    std::random_device random;
    std::string id;
    while (id.size() < 32) id += digits[random() % digits.size()];
    return id;
}

class invoice_command final : public command {
public:
    void declare(arguments& to) override {
        to.choice("--by", by_, ways, "what keeps it from being charged twice");
        to.choice("--stand", stand_, stands, "where it stands still");
        to.text("--invoice", invoice_, "NUMBER", "what is charged");
        to.text("--folder", folder_, "FOLDER", "of the provider and the shop");
    }

    int run(std::span<const std::string>) override {
        try {
            return by_ == "once" ? pay_once() : pay();
        } catch (const std::exception& error) {
            tell(std::string("failed ") + error.what());
            return complain({exit_unavailable, error.what()});
        }
    }

private:
    void stand_still(std::string_view where) const {
        if (stand_ != where) return;
        tell("stands " + std::to_string(::getpid()));
        const ::timespec time{longest.count(), 0};
        ::nanosleep(&time, nullptr);
    }

    std::string charge(const std::string& id) const {
        stand_still("before");
        const auto receipt = provider(folder_).charge(id, invoice_);
        if (!receipt) throw std::runtime_error("the provider's ledger cannot be written");
        tell("charged " + id);
        stand_still("after");
        return *receipt;
    }

    // Under a lock: whoever has it looks whether it was paid.
    int pay() const {
        const auto paid = std::filesystem::path(folder_) / ("paid-" + invoice_);
        std::string receipt;
        if (std::ifstream(paid) >> receipt) {
            tell("told " + receipt);
            return exit_ok;
        }
        receipt = charge(fresh_id());
        std::ofstream(paid) << receipt << "\n";
        tell("recorded " + receipt);
        return exit_ok;
    }

    int pay_once() const {
        const char* const url = std::getenv("TRINCO_LOCKS");
        const store at = open(url != nullptr ? url : "", all_drivers());
        session_options who;
        who.ttl = ttl_shown;
        who.label = "the worker of invoice " + invoice_;
        session on(at, who);
        once_options how;
        how.keep = keeps;
        how.reconcile = [this](const std::string& id) {
            tell("asks " + id);
            const auto receipt = provider(folder_).receipt(id);
            tell(receipt ? "hears done" : "hears not_done");
            if (!receipt) return once_found{once_found::what_t::not_done};
            return once_found{once_found::what_t::done, *receipt};
        };
        const auto paid = once(
            on, "invoice/" + invoice_, [this](const once_run& run) { return charge(run.run_id); },
            how);
        tell((paid.ran ? "recorded " : "told ") + paid.value);
        return exit_ok;
    }

    std::string by_ = "lock";
    std::string stand_ = "nowhere";
    std::string invoice_ = "42";
    std::string folder_;
};

}  // namespace

role worker_role(const invoice_worker& of) {
    std::vector<std::string> words = {"demo-invoice",
                                      "--by",
                                      std::string(ways[static_cast<std::size_t>(of.by)]),
                                      "--stand",
                                      std::string(stands[static_cast<std::size_t>(of.at)]),
                                      "--invoice",
                                      of.invoice,
                                      "--folder",
                                      of.folder.string()};
    if (of.by == invoice_worker::way::lock) words = under_lock("invoice/" + of.invoice, words);
    return {.words = std::move(words),
            .environment = {{"TRINCO_LOCKS", of.locks}},
            .errors = of.errors};
}

std::unique_ptr<command> make_demo_invoice() {
    return std::make_unique<invoice_command>();
}

}  // namespace trinco::program::demo
