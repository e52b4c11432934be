#include "apps/trinco/demo/service.hpp"

#include <unistd.h>

#include <cstdlib>
#include <ctime>
#include <random>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

void tell(const std::string& line) {
    if (write_all(STDOUT_FILENO, line + "\n") != 0) std::_Exit(exit_output);
}

class service_command final : public command {
public:
    void declare(arguments& to) override {
        to.text("--shop", shop_, "FOLDER", "the shop's folder");
        to.text("--seller", seller_, "NAME", "who sells");
        to.number("--seed", seed_, {0, UINT32_MAX}, "of customers and thinking");
        to.flag("--locked", locked_, "sell under a lock of the store of TRINCO_LOCKS");
        to.text("--parts", parts_, "NAME:LEFT,...", "who plays a part");
    }

    int run(std::span<const std::string>) override {
        std::mt19937 random(seed_);
        std::uniform_int_distribution<int> customer(20, 180);
        std::uniform_int_distribution<int> thinking(2, 10);
        while (true) {
            wait(milliseconds(customer(random)));
            const milliseconds think(thinking(random));
            // With a lock one sells at a time: slower, so that it can be watched.
            const int code = locked_ ? sell_under_lock(think * 2 + 5ms) : sell_at_once(think);
            if (code == sale_sold_out) return exit_ok;
            if (!may_happen(code)) return code;
        }
    }

private:
    // A sale that came to nothing is part of the play; what cannot start never will.
    static bool may_happen(int code) {
        return code == sale_made || code == sale_refused || code == exit_lost || code > exit_signal;
    }

    static void wait(milliseconds span) {
        const ::timespec time{0, span.count() * 1'000'000};
        ::nanosleep(&time, nullptr);
    }

    int sell_at_once(milliseconds think) {
        const sale what{seller_, think, {}, {}};
        return make_sale(shop(shop_), what, tell);
    }

    // The code of `trinco lock`.
    int sell_under_lock(milliseconds think) {
        std::vector<std::string> words = {"demo-sell",
                                          "--shop",
                                          shop_,
                                          "--seller",
                                          seller_,
                                          "--think",
                                          std::to_string(think.count()) + "ms"};
        if (!parts_.empty()) words.insert(words.end(), {"--parts", parts_});
        role as{.words = under_lock("tickets", words)};
        if (const char* const url = std::getenv("TRINCO_LOCKS")) {
            as.environment = {{"TRINCO_LOCKS", url}};
        }
        as.errors = "/proc/self/fd/2";
        auto started = cast::start(as);
        if (const auto* why = std::get_if<problem>(&started)) {
            tell("failed");
            return complain(*why);
        }
        cast& wrapper = std::get<cast>(started);
        const std::string pid = std::to_string(wrapper.pid());
        tell("starts " + pid);
        while (!wrapper.silent()) {
            if (const auto line = wrapper.next_line(1h)) tell(*line);
        }
        while (!wrapper.ended(1s)) {
        }
        const int code = *wrapper.ended();
        tell("ends " + std::to_string(code) + " " + pid);
        return code;
    }

    std::string shop_;
    std::string seller_;
    std::uint32_t seed_ = 1;
    bool locked_ = false;
    std::string parts_;
};

}  // namespace

role service_role(const service_settings& of) {
    role as;
    as.words = {"demo-service", "--shop", of.shop.string(),       "--seller",
                of.seller,      "--seed", std::to_string(of.seed)};
    if (!of.locks.empty()) {
        as.words.emplace_back("--locked");
        as.environment = {{"TRINCO_LOCKS", of.locks}};
    }
    if (!of.parts.empty()) as.words.insert(as.words.end(), {"--parts", text_of(of.parts)});
    as.errors = of.errors;
    return as;
}

std::vector<std::string> under_lock(std::string_view name, const std::vector<std::string>& words) {
    // An empty configuration: what the user has configured must not decide what is shown.
    std::vector<std::string> all = {"lock",     std::string(name), "--ttl", "2s",
                                    "--config", "/dev/null",       "--",    "/proc/self/exe"};
    all.insert(all.end(), words.begin(), words.end());
    return all;
}

std::unique_ptr<command> make_demo_service() {
    return std::make_unique<service_command>();
}

}  // namespace trinco::program::demo
