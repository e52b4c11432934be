#include "apps/trinco/version.hpp"

#include <array>

#include "apps/trinco/output/json.hpp"
#include "apps/trinco/output/print.hpp"

namespace trinco::program {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "gcc " __VERSION__;
#endif

class version_command final : public command {
public:
    void declare(arguments& to) override {
        constexpr std::array<std::string_view, 2> formats = {"table", "json"};
        to.choice("-o,--output", format_, formats, "how it is printed");
    }
    int run(std::span<const std::string>) override {
        return print((format_ == "json" ? version_json() : version_line()) + "\n");
    }

private:
    std::string format_ = "table";
};

}  // namespace

std::string version_line() {
    return std::string("trinco ") + TRINCO_VERSION + " (" + TRINCO_BUILD + ", " + compiler + ")";
}

std::string version_json() {
    return json_object()
        .add("schema", 1)
        .add("version", TRINCO_VERSION)
        .add("build", TRINCO_BUILD)
        .add("compiler", compiler)
        .text();
}

std::unique_ptr<command> make_version() {
    return std::make_unique<version_command>();
}

}  // namespace trinco::program
