#include "apps/trinco/setup_machine/setup_command.hpp"

#include <filesystem>
#include <string>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/print.hpp"
#include "apps/trinco/setup_machine/machine_setup.hpp"

namespace trinco::program {
namespace {

class setup_command final : public command {
public:
    void declare(arguments& to) override {
        to.flag("--machine", machine_, "one store for all users of this machine in a group trinco");
        to.flag("--dry-run", how_.dry_run, "says what it would do, and does nothing");
        to.text("--root", root_, "DIR", "sets up the system in this folder, an image");
    }
    int run(std::span<const std::string>) override {
        if (!machine_) {
            return complain({exit_usage,
                             "say what to set up: 'trinco setup --machine' makes one store for all "
                             "users of this machine; everything else works without"});
        }
        std::error_code error;
        how_.root = std::filesystem::canonical(root_, error);
        if (error) return complain({exit_usage, "--root: " + root_ + ": " + error.message()});
        std::string lines;
        how_.tell = [&](const std::string& step) { lines += step + "\n"; };
        const auto failed = set_up_machine(how_);
        if (lines.empty() && !failed) lines = "nothing to do: all is as it should be\n";
        if (!failed) lines += "users join with: usermod --append --groups trinco USER\n";
        const int written = print(lines);
        return failed ? complain(*failed) : written;
    }

private:
    bool machine_ = false;
    std::string root_ = "/";
    machine_setup how_;
};

}  // namespace

std::unique_ptr<command> make_setup() {
    return std::make_unique<setup_command>();
}

}  // namespace trinco::program
