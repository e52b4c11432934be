#include <array>

#include "apps/trinco/completion/completion_commands.hpp"
#include "apps/trinco/completion/scripts.hpp"
#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

class completion_command final : public command {
public:
    void declare(arguments& to) override {
        to.positional("SHELL", shell_, "bash, zsh or fish");
        to.complete_with("SHELL", [] { return std::vector<std::string>{"bash", "fish", "zsh"}; });
    }
    int run(std::span<const std::string>) override {
        const std::string_view script = completion_script(shell_);
        if (!script.empty()) return print(script);
        return complain({exit_usage, "there is no completion for " + detail::quoted(shell_) +
                                         "; it is bash, zsh or fish"});
    }

private:
    std::string shell_;
};

}  // namespace

std::unique_ptr<command> make_completion() {
    return std::make_unique<completion_command>();
}

}  // namespace trinco::program
