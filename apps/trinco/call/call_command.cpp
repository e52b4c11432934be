#include "apps/trinco/call/call_command.hpp"

#include <optional>
#include <string>
#include <utility>
#include <variant>

#include "apps/trinco/breakers/reports.hpp"
#include "apps/trinco/call/call_rules.hpp"
#include "apps/trinco/call/one_call.hpp"
#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/guardian.hpp"
#include "apps/trinco/process/supervise.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "core/names.hpp"

namespace trinco::program {
namespace {

class call_command final : public command {
public:
    void declare(arguments& to) override {
        to.positional("BREAKER", name_, "the breaker");
        flags_.declare(to);
        to.flag("-v,--verbose", is_verbose_, "says what the breaker thought before and after");
        to.store_options(where_, arguments::stores::breakers);
        complete_breakers(to, "BREAKER", where_);
    }

    int run(std::span<const std::string> words) override {
        signal_desk desk;
        const auto loaded = settings_for(where_, {needs::breakers});
        if (const auto* why = std::get_if<problem>(&loaded)) return complain(*why);
        if (const auto bad = detail::check_breaker_name(name_)) {
            return complain({exit_usage, *bad});
        }
        const settings& with = std::get<settings>(loaded);
        for (const policy_problem& wrong : with.policy_problems) {
            if (wrong.breaker == name_) return complain({exit_usage, wrong.sentence});
        }
        std::span<const policy_entry> policy;
        if (const auto found = with.policies.find(name_); found != with.policies.end()) {
            policy = found->second;
        }
        auto rules = flags_.rules(policy);
        if (const auto* why = std::get_if<problem>(&rules)) return complain(*why);
        const auto result = guarded(with, std::move(std::get<call_rules>(rules)), desk, words);
        if (const auto* code = std::get_if<int>(&result)) return *code;
        const ran& r = std::get<ran>(result);
        return finish(r.end, r.what);
    }

private:
    // Everything that is to be closed before finish().
    call_result guarded(const settings& with, call_rules rules, signal_desk& desk,
                        std::span<const std::string> words) const {
        // Before the store, which has threads.
        auto started = guardian::start();
        if (const auto* why = std::get_if<problem>(&started)) return complain(*why);
        one_call call(name_, std::move(rules), is_verbose_, std::get<guardian>(started), desk);
        return call.make(with, words);
    }

    std::string name_;
    call_flags flags_;
    bool is_verbose_ = false;
    store_flags where_;
};

}  // namespace

std::unique_ptr<command> make_call_command() {
    return std::make_unique<call_command>();
}

}  // namespace trinco::program
