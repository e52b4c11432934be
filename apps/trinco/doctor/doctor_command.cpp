#include "apps/trinco/doctor/doctor_command.hpp"

#include <string>
#include <variant>
#include <vector>

#include "apps/trinco/config/settings.hpp"
#include "apps/trinco/doctor/examine_local.hpp"
#include "apps/trinco/doctor/examine_mirror.hpp"
#include "apps/trinco/doctor/examine_use.hpp"
#include "apps/trinco/doctor/finding.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/stores/open_store.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "apps/trinco/stores/settings_for.hpp"
#include "store/shown_url.hpp"

namespace trinco::program {
namespace {

using doctor::examination;
using doctor::level;

constexpr int exit_warned = 1;

// Of a store that nobody here knows how to examine: what opening it says.
void examine_other(const settings& with, needs what, examination& to) {
    const auto opened = open_store(with, what);
    if (const auto* const why = std::get_if<problem>(&opened)) {
        to.code = why->code;
        return to.bad("url", why->sentence, "'trinco help urls' lists what there is");
    }
    to.good("url", "opened");
}

examination examine(const settings& with, needs what, std::string use) {
    const std::string& url = what == needs::locks ? with.locks_url : with.breakers_url;
    examination all{std::move(use), trinco::detail::shown_url(url)};
    if (what == needs::breakers) all.name_space = with.name_space;
    if (trinco::detail::scheme_of(url) == "local") {
        doctor::examine_local(with, what, all);
        return all;
    }
    const server_store* const server = server_of(url);
    auto* const own = server == nullptr      ? nullptr
                      : what == needs::locks ? server->examine_locks
                                             : server->examine_breakers;
    own != nullptr ? own(with, all) : examine_other(with, what, all);
    if (what == needs::breakers) doctor::examine_mirror(with, all);
    return all;
}

class doctor_command final : public command {
public:
    void declare(arguments& to) override {
        to.flag("--strict", strict_, "warnings end with 1");
        to.output_option(format_);
        to.store_options(where_, arguments::stores::both);
    }

    int run(std::span<const std::string>) override {
        auto loaded = settings_for(where_, {needs::breakers, needs::locks});
        if (const auto* const why = std::get_if<problem>(&loaded)) return complain(*why);
        auto& with = std::get<settings>(loaded);
        for (const std::string& warning : with.warnings) say(warning);
        with.warnings.clear();  // said; each store that is opened would say them again
        std::vector<examination> all;
        const bool is_one = with.breakers_url == with.locks_url;
        all.push_back(examine(with, needs::breakers, is_one ? "breakers and locks" : "breakers"));
        if (!is_one) all.push_back(examine(with, needs::locks, "locks"));
        doctor::examine_use(with, all.back());
        const int printed = print(format_ == "json"   ? doctor::json_of(all)
                                  : format_ == "name" ? doctor::names_of(all)
                                                      : doctor::text_of(all));
        return printed != exit_ok ? printed : code_of(all);
    }

private:
    [[nodiscard]] int code_of(const std::vector<examination>& all) const {
        for (const examination& one : all) {
            if (one.worst() == level::bad) return one.code;
        }
        return strict_ && doctor::worst_of(all) == level::warn ? exit_warned : exit_ok;
    }

    bool strict_ = false;
    std::string format_ = "table";
    store_flags where_;
};

}  // namespace

std::unique_ptr<command> make_doctor() {
    return std::make_unique<doctor_command>();
}

}  // namespace trinco::program
