#include "apps/trinco/demo/gateway_server.hpp"

#include <unistd.h>

#include <array>
#include <cstdlib>
#include <list>
#include <memory>
#include <utility>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/demo/gateway_commands.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "net/event_loop.hpp"
#include "net/http_server.hpp"
#include "net/socket_factory.hpp"

namespace trinco::program::demo {
namespace {

using namespace std::chrono_literals;
using detail::http_exchange;

constexpr std::array<std::string_view, moods> words = {"healthy", "hanging", "failing"};
constexpr auto healthy_takes = 15ms;
constexpr auto failing_takes = 5ms;
constexpr auto tells_every = 100ms;

void tell(const std::string& line) {
    if (write_all(STDOUT_FILENO, line + "\n") != 0) std::_Exit(exit_output);
}

// All of it runs on the loop's thread.
class gateway {
public:
    explicit gateway(detail::event_loop& on) : on_(on), sockets_(detail::make_socket_factory(on)) {}

    std::error_code open() {
        std::error_code error;
        auto at = sockets_->listen(detail::stream_address::tcp("127.0.0.1", 0), error);
        if (error) return error;
        tell("listens " + std::to_string(at->where().port));
        server_ = std::make_unique<detail::http_server>(
            on_, std::move(at), [this](http_exchange asked) { serve(std::move(asked)); },
            detail::http_server_options{.connections_most = 2'000});
        tell_often();
        return {};
    }

    void change(mood to) {
        tell_calls();
        mood_ = to;
        came_ = probes_ = 0;
        tell("mood " + std::string(word_of(to)) + " " + std::to_string(moment_now().count()));
        changed_ = true;
    }

private:
    struct waiting {
        http_exchange asked;
        bool probe;
        detail::op timer;
    };
    using place = std::list<waiting>::iterator;

    void serve(http_exchange asked) {
        const bool probe = !detail::field_of(asked.request().fields, probe_field).empty();
        const auto here = waiting_.insert(waiting_.end(), waiting{std::move(asked), probe, {}});
        ++came_;
        if (probe) {
            ++probes_;
            most_probes_ = std::max(most_probes_, ++probes_now_);
        }
        changed_ = true;
        here->asked.on_gone([this, here] { leave(here); });
        if (mood_ == mood::hanging) return;
        const bool well = mood_ == mood::healthy;
        here->timer = on_.after(well ? healthy_takes : failing_takes, [this, here, well] {
            here->asked.answer({.status = well ? 200U : 503U, .body = well ? "paid\n" : "no\n"});
            leave(here);
        });
    }

    void leave(place which) {
        if (which->probe) --probes_now_;
        waiting_.erase(which);
        changed_ = true;
    }

    void tell_calls() {
        tell("calls " + std::string(word_of(mood_)) + " " + std::to_string(came_) + " " +
             std::to_string(waiting_.size()) + " " + std::to_string(probes_) + " " +
             std::to_string(most_probes_));
        changed_ = false;
    }

    void tell_often() {
        if (changed_) tell_calls();
        telling_ = on_.after(tells_every, [this] { tell_often(); });
    }

    detail::event_loop& on_;
    std::unique_ptr<detail::stream_factory> sockets_;
    std::unique_ptr<detail::http_server> server_;
    mood mood_ = mood::healthy;
    std::list<waiting> waiting_;
    std::uint64_t came_ = 0;
    std::uint64_t probes_ = 0;
    std::uint64_t probes_now_ = 0;
    std::uint64_t most_probes_ = 0;
    bool changed_ = false;
    detail::op telling_;
};

class gateway_command final : public command {
public:
    void declare(arguments&) override {}

    int run(std::span<const std::string>) override {
        detail::event_loop loop;
        std::unique_ptr<gateway> it = std::make_unique<gateway>(loop);
        if (const auto error = it->open()) {
            return complain({exit_unavailable, "the gateway cannot listen: " + error.message()});
        }
        loop.start();
        std::string text;
        std::array<char, 256> block{};
        for (::ssize_t got = 0; (got = ::read(STDIN_FILENO, block.data(), block.size())) > 0;) {
            text.append(block.data(), static_cast<std::size_t>(got));
            for (auto end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
                const auto to = mood_of(std::string_view(text).substr(0, end));
                if (to) loop.post([&it, to = *to] { it->change(to); });
                text.erase(0, end + 1);
            }
        }
        return detail::run_and_wait(loop, 1s, [&it] { it.reset(); }) ? exit_unavailable : exit_ok;
    }
};

}  // namespace

std::string_view word_of(mood m) noexcept {
    return words[static_cast<std::size_t>(m)];
}

std::optional<mood> mood_of(std::string_view word) noexcept {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == word) return static_cast<mood>(i);
    }
    return std::nullopt;
}

std::chrono::microseconds moment_now() noexcept {
    return std::chrono::duration_cast<std::chrono::microseconds>(
        detail::boot_clock::now().time_since_epoch());
}

role gateway_role(const std::filesystem::path& errors) {
    return {.words = {"demo-gateway"}, .environment = {}, .errors = errors};
}

std::unique_ptr<command> make_demo_gateway() {
    return std::make_unique<gateway_command>();
}

}  // namespace trinco::program::demo
