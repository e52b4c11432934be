#include "apps/trinco/version.hpp"

namespace trinco::program {
namespace {

#if defined(__clang__)
constexpr const char* compiler = "clang " __clang_version__;
#else
constexpr const char* compiler = "gcc " __VERSION__;
#endif

}  // namespace

std::string version_line() {
    return std::string("trinco ") + TRINCO_VERSION + " (" + TRINCO_BUILD + ", " + compiler + ")";
}

std::string version_json() {
    return std::string(R"({"schema":1,"version":")") + TRINCO_VERSION + R"(","build":")" +
           TRINCO_BUILD + R"(","compiler":")" + compiler + R"("})";
}

}  // namespace trinco::program
