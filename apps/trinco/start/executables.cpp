#include "apps/trinco/start/executables.hpp"

#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/process/signals_at_start.hpp"
#include "apps/trinco/stores/server_stores.hpp"
#include "core/quoted.hpp"

namespace trinco::program {
namespace {

namespace fs = std::filesystem;

constexpr const char* trinco = "trinco";
constexpr const char* trinco_fleet = "trinco-fleet";
constexpr std::size_t path_shown = 500;

char** words = nullptr;

// The file of this process. Without /proc by what it was started with, if the working directory is
// still that one.
fs::path own_file() {
    std::error_code error;
    fs::path own = fs::read_symlink("/proc/self/exe", error);
    if (!error) return own;
    const auto* const started = reinterpret_cast<const char*>(::getauxval(AT_EXECFN));
    return started == nullptr ? fs::path() : fs::canonical(started, error);
}

bool is_program(const fs::path& file, const fs::path& own) {
    struct ::stat found {};
    if (::stat(file.c_str(), &found) != 0 || !S_ISREG(found.st_mode)) return false;
    // Not what is running already, under another name: that would go on as itself for ever.
    struct ::stat self {};
    return ::stat(own.c_str(), &self) != 0 || self.st_dev != found.st_dev ||
           self.st_ino != found.st_ino;
}

std::array<fs::path, 2> fleet_places(const fs::path& own) {
    const fs::path here = own.parent_path();
    return {(here / TRINCO_FROM_BIN_TO_FLEET / trinco_fleet).lexically_normal(),
            here / trinco_fleet};
}

}  // namespace

void remember_words(char** argv) noexcept {
    words = argv;
}

bool has_every_store() {
    return TRINCO_FLEET == 0 || !server_stores().empty();
}

std::optional<fs::path> fleet_file() {
    const fs::path own = own_file();
    if (!own.is_absolute()) return std::nullopt;  // its places would be in the working directory
    for (const fs::path& place : fleet_places(own)) {
        if (is_program(place, own)) return place;
    }
    return std::nullopt;
}

problem go_on_as(const fs::path& fleet) {
    restore_signals_at_start();
    ::execve(fleet.c_str(), words, environ);
    const int error = errno;
    return {exit_unavailable, "the executable " + detail::quoted(fleet.native(), path_shown) +
                                  ", which opens the stores that are servers, cannot be run: " +
                                  std::generic_category().message(error)};
}

problem go_on_anew() {
    restore_signals_at_start();
    // By its name, which the process then has, but for a file that was replaced meanwhile.
    const fs::path own = own_file();
    struct ::stat named {};
    struct ::stat running {};
    if (::stat("/proc/self/exe", &running) == 0 && ::stat(own.c_str(), &named) == 0 &&
        named.st_dev == running.st_dev && named.st_ino == running.st_ino) {
        ::execve(own.c_str(), words, environ);
    }
    ::execve("/proc/self/exe", words, environ);
    return {exit_unavailable,
            "the program cannot begin anew: " + std::generic_category().message(errno)};
}

problem no_fleet_for(const std::string& shown_url) {
    const fs::path own = own_file();
    const std::string what = "the store " + detail::quoted(shown_url, 100) +
                             " is opened by the executable " + trinco_fleet;
    if (!own.is_absolute()) {
        return {exit_unavailable,
                what +
                    ", which is looked for from where this program is, and nothing says where "
                    "that is; mount /proc, or use local:, which needs nothing else"};
    }
    const auto places = fleet_places(own);
    return {exit_unavailable,
            what + ", which is neither " + detail::quoted(places[0].native(), path_shown) +
                " nor " + detail::quoted(places[1].native(), path_shown) +
                "; install the whole of Trinco, or use local:, which needs nothing else"};
}

fs::path program_file() {
    const fs::path own = own_file();
    if (server_stores().empty() || !own.is_absolute()) return own;
    const fs::path here = own.parent_path();
    for (const fs::path& place :
         {(here / TRINCO_FROM_FLEET_TO_BIN / trinco).lexically_normal(), here / trinco}) {
        if (is_program(place, own)) return place;
    }
    return own;
}

}  // namespace trinco::program
