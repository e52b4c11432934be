#include "apps/trinco/demo/sale.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/demo/wait_for_line.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;

volatile ::sig_atomic_t continued = 0;

void note_continued(int) {
    continued = 1;
}

void think(milliseconds span) {
    ::timespec left{span.count() / 1000, span.count() % 1000 * 1'000'000};
    while (::nanosleep(&left, &left) != 0) {
    }
}

// Before anybody is told who plays a part: it may be stopped and go on right afterwards.
void watch_for_going_on() {
    struct sigaction with {};
    with.sa_handler = note_continued;
    ::sigaction(SIGCONT, &with, nullptr);
}

// Until it goes on after having been stopped.
void think_for_long() {
    for (milliseconds spent{0}; continued == 0 && spent < longest; spent += 10ms) think(10ms);
}

sale_exit tell_end(shop::answer how, const std::string& ticket,
                   const std::function<void(const std::string&)>& tell) {
    switch (how) {
        case shop::answer::done: tell("sold " + ticket); return sale_made;
        case shop::answer::refused: tell("refused " + ticket); return sale_refused;
        case shop::answer::failed: break;
    }
    tell("failed");
    return sale_failed;
}

const part* part_at(const shop& at, const sale& what, int left) {
    for (const part& one : what.parts) {
        if (one.at == left && at.take_part(one.name)) return &one;
    }
    return nullptr;
}

std::optional<std::uint64_t> token_of_lock() {
    const char* text = std::getenv("TRINCO_TOKEN");
    if (text == nullptr) return std::nullopt;
    std::uint64_t token = 0;
    const std::string_view all(text);
    const auto [end, error] = std::from_chars(all.data(), all.data() + all.size(), token);
    if (error != std::errc() || end != all.data() + all.size()) return std::nullopt;
    return token;
}

class sell_command final : public command {
public:
    void declare(arguments& to) override {
        to.text("--shop", shop_, "FOLDER", "the shop's folder");
        to.text("--seller", seller_, "NAME", "who sells");
        to.duration("--think", think_, {0ms, 1min}, "between reading and writing the stock");
        to.flag("--on-go", on_go_, "begin with a line of standard input");
        to.text("--parts", parts_, "NAME:LEFT,...", "who plays a part");
    }

    int run(std::span<const std::string>) override {
        const auto tell = [](const std::string& line) {
            if (write_all(STDOUT_FILENO, line + "\n") != 0) std::_Exit(exit_output);
        };
        if (on_go_) {
            tell("ready");
            wait_for_line();
        }
        const sale what{seller_, think_, token_of_lock(), parts_of(parts_)};
        return make_sale(shop(shop_), what, tell);
    }

private:
    std::string shop_;
    std::string seller_;
    milliseconds think_{0};
    bool on_go_ = false;
    std::string parts_;
};

}  // namespace

sale_exit make_sale(const shop& at, const sale& what,
                    const std::function<void(const std::string&)>& tell) {
    const std::string token = what.token ? std::to_string(*what.token) : "-";
    int left = 0;
    const shop::answer known = at.read(left, what.token);
    if (known != shop::answer::done) return tell_end(known, "- " + token, tell);
    if (left == 0) {
        tell("sold-out");
        return sale_sold_out;
    }
    const std::string who = std::to_string(::getpid()) + " " + token;
    tell("reads " + std::to_string(left) + " " + who);
    if (const part* mine = part_at(at, what, left)) {
        watch_for_going_on();
        tell("part " + mine->name + " " + who);
        think_for_long();
    } else {
        think(what.think);
    }
    return tell_end(at.sell(what.seller, left, what.token), std::to_string(left) + " " + token,
                    tell);
}

std::vector<part> parts_of(std::string_view text) {
    std::vector<part> all;
    while (!text.empty()) {
        const std::size_t comma = std::min(text.find(','), text.size());
        const std::string_view one = text.substr(0, comma);
        const std::size_t colon = std::min(one.find(':'), one.size() - 1);
        part next{std::string(one.substr(0, colon)), 0};
        std::from_chars(one.data() + colon + 1, one.data() + one.size(), next.at);
        all.push_back(std::move(next));
        text.remove_prefix(std::min(comma + 1, text.size()));
    }
    return all;
}

std::string text_of(const std::vector<part>& parts) {
    std::string text;
    for (const part& one : parts) {
        if (!text.empty()) text += ',';
        text += one.name + ":" + std::to_string(one.at);
    }
    return text;
}

std::unique_ptr<command> make_demo_sell() {
    return std::make_unique<sell_command>();
}

}  // namespace trinco::program::demo
