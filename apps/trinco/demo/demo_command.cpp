#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>

#include "apps/trinco/command_line/arguments.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/demo/breaker_story.hpp"
#include "apps/trinco/demo/demo_commands.hpp"
#include "apps/trinco/demo/etcd_nodes.hpp"
#include "apps/trinco/demo/interruption.hpp"
#include "apps/trinco/demo/invoice_story.hpp"
#include "apps/trinco/demo/leader_story.hpp"
#include "apps/trinco/demo/programme.hpp"
#include "apps/trinco/demo/shared_store.hpp"
#include "apps/trinco/demo/summary.hpp"
#include "apps/trinco/demo/ticket_story.hpp"
#include "apps/trinco/demo/voice.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/start/executables.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"

namespace trinco::program::demo {
namespace {

constexpr int exit_claim_failed = 1;

constexpr std::array<act, 4> acts = {
    act{"tickets", "The last ticket", "Act 1. Sell the last ticket exactly once.", ticket_story},
    act{"breaker", "The dead gateway", "Act 2. Stop calling a payment gateway that has died.",
        breaker_story},
    act{"invoice", "The invoice", "Act 3. Charge an invoice once, although the worker dies.",
        invoice_story},
    act{"leader", "The lost leader", "Act 4. Lose the leader of three nodes of etcd, not the lock.",
        leader_story},
};

bool needs_locks(std::string_view act) {
    return act == "tickets" || act == "invoice";
}

class demo_command final : public command {
public:
    void declare(arguments& to) override {
        static constexpr std::array<std::string_view, 5> which = {"all", "tickets", "breaker",
                                                                  "invoice", "leader"};
        to.number("--seed", seed_, {0, UINT32_MAX}, "repeats think times and victims");
        to.choice("--only", only_, which, "one act instead of all");
        to.flag("--json", json_, "JSON lines; the last one is the result");
        to.flag("--plain", plain_, "lines instead of a live view");
        to.optional_text("--breakers", where_.breakers, "URL",
                         "act 2, its breaker kept in this Redis, in a namespace of its own that is "
                         "removed at the end");
        to.optional_text("--locks", where_.locks, "URL",
                         "acts 1 and 3, their locks kept in this etcd, under a prefix of its own "
                         "that is removed at the end; and act 4, where an etcd can be started");
        to.optional_text("--etcd", etcd_, "FILE",
                         "act 4, too: the program etcd, of which it starts three nodes; without "
                         "this that of PATH, or beside trinco");
    }

    int run(std::span<const std::string>) override {
        const auto began = std::chrono::steady_clock::now();
        if (const auto why = contradiction()) return complain(*why);
        where_.only_tries = true;
        std::variant<settings, problem> loaded;
        if (where_.breakers && where_.locks) {
            loaded = settings_for(where_, {needs::breakers, needs::locks});
        } else if (where_.breakers) {
            loaded = settings_for(where_, {needs::breakers});
        } else if (where_.locks) {
            loaded = settings_for(where_, {needs::locks});
        } else if (etcd_ || only_ == "leader") {
            if (const auto why = go_on_with_servers()) return complain(*why);
        }
        if (const auto* const why = std::get_if<problem>(&loaded)) return complain(*why);
        interruption end;
        programme what{{}, seed_};
        if (auto why = find_stores(std::get<settings>(loaded), what)) return complain(*why);
        choose_acts(what);
        what.for_people = !json_;
        voice_settings speech;
        speech.as = json_ ? form::json : plain_ ? form::plain : form_for(STDOUT_FILENO);
        speech.colours = speech.as == form::live && wants_colours();
        speech.since = began;
        speech.on_deaf = [&](int error) {
            not_written_ = error;
            end.request(SIGPIPE);
        };
        const auto to = make_voice(speech);
        if (!left_out_.empty()) to->tell("left_out", left_out_);
        const programme_result seen = play(what, *to, end, began);
        if (seen.failure) return complain(*seen.failure);
        if (end.signal() == 0) {
            to->print(json_ ? summary_json(what, seen) : summary_text(what, seen, speech.colours));
        }
        return code_of(seen, end.signal());
    }

private:
    // The acts 1 and 3 are about locks, act 2 about breakers, and act 4 brings its own servers.
    [[nodiscard]] std::optional<problem> contradiction() const {
        if (where_.breakers && only_ != "all" && only_ != "breaker") {
            return problem{exit_usage, "the act " + only_ +
                                           " is about locks, which Redis does not keep; leave "
                                           "--only " +
                                           only_ + " or --breakers out"};
        }
        if (where_.locks && only_ != "all" && !needs_locks(only_)) {
            return problem{exit_usage, "the act " + only_ +
                                           " uses no locks of yours; leave --only " + only_ +
                                           " or --locks out"};
        }
        if (etcd_ && only_ != "all" && only_ != "leader") {
            return problem{exit_usage, "the act " + only_ + " starts no etcd; leave --only " +
                                           only_ + " or --etcd out"};
        }
        return std::nullopt;
    }

    // The processes of act 4 need the stores that are servers: those of this executable, or of the
    // one that it goes on as.
    [[nodiscard]] static std::optional<problem> go_on_with_servers() {
        const std::string example = "etcd://127.0.0.1:2379";
        if (!has_every_store()) {
            const auto fleet = fleet_file();
            return fleet ? go_on_as(*fleet) : no_fleet_for(example);
        }
        if (server_of(example) != nullptr) return std::nullopt;
        return problem{exit_unavailable, "this trinco was built without etcd, of which act 4 is"};
    }

    std::optional<problem> find_stores(const settings& with, programme& what) {
        if (where_.breakers) {
            auto found = find_shared_store(with);
            if (auto* const why = std::get_if<problem>(&found)) return std::move(*why);
            what.breakers = std::move(std::get<shared_store>(found));
        }
        if (etcd_ || where_.locks || only_ == "leader") {
            auto found = find_etcd(etcd_);
            auto* const why = std::get_if<problem>(&found);
            if (why == nullptr) {
                what.etcd = std::move(std::get<std::filesystem::path>(found));
            } else if (etcd_ || only_ == "leader") {
                return std::move(*why);
            } else if (only_ == "all") {
                left_out_ = "Act 4 is left out: no program etcd in PATH; --etcd FILE names one.";
            }
        }
        // Last, because from here on there is something to be removed.
        if (where_.locks) {
            auto found = find_shared_locks(with);
            if (auto* const why = std::get_if<problem>(&found)) return std::move(*why);
            what.locks = std::move(std::get<shared_store>(found));
        }
        return std::nullopt;
    }

    // One; or those that the servers are for; or all that need none, and act 4 when it is wished.
    void choose_acts(programme& what) const {
        const bool on_servers = where_.breakers || where_.locks;
        for (const act& one : acts) {
            const bool possible = one.name != "leader" || !what.etcd.empty();
            const bool meant = one.name == "leader"    ? true
                               : !on_servers           ? true
                               : needs_locks(one.name) ? where_.locks.has_value()
                                                       : where_.breakers.has_value();
            if (only_ == one.name || (only_ == "all" && possible && meant)) {
                what.acts.push_back(&one);
            }
        }
        const bool played = !what.acts.empty() && what.acts.back()->name == "leader";
        if (!played) what.etcd.clear();
    }

    [[nodiscard]] int code_of(const programme_result& seen, int signal) const {
        if (signal == SIGPIPE) {
            if (not_written_ == EPIPE) return exit_output;
            return complain({exit_output, "standard output could not be written: " +
                                              std::generic_category().message(not_written_)});
        }
        if (signal != 0) {
            say(!seen.left_there.empty() ? "interrupted; " + seen.left_there
                : seen.nothing_left      ? "interrupted; nothing is left behind"
                                         : "interrupted; something could not be removed");
            return exit_signal + signal;
        }
        return seen.held() ? exit_ok : exit_claim_failed;
    }

    std::uint32_t seed_ = 1;
    std::string only_ = "all";
    bool json_ = false;
    bool plain_ = false;
    store_flags where_;
    std::optional<std::string> etcd_;
    std::string left_out_;  // a sentence about an act that is not played
    std::atomic<int> not_written_{0};
};

}  // namespace

std::unique_ptr<command> make_demo() {
    return std::make_unique<demo_command>();
}

}  // namespace trinco::program::demo
