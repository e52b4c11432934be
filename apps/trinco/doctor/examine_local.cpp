#include "apps/trinco/doctor/examine_local.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <string>
#include <system_error>
#include <variant>

#include "apps/trinco/exit_codes.hpp"
#include "apps/trinco/output/bytes_text.hpp"
#include "apps/trinco/output/distribution.hpp"
#include "trinco/store.hpp"
#if TRINCO_LOCAL
#include "store/local/local_machine.hpp"
#endif

namespace trinco::program::doctor {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::uint64_t mebibyte = 1024 * 1024;
constexpr std::uint64_t little_space = 100 * mebibyte;
constexpr std::uint64_t no_space = 4 * mebibyte;
constexpr std::size_t reads = 20;

std::optional<fs::path> file_of(const std::string& url, examination& to) {
    const std::string rest = url.substr(url.find(':') + 1);
    if (!rest.empty()) return fs::path(rest);
#if TRINCO_LOCAL
    try {
        return trinco::detail::default_local_name();
    } catch (const open_error& why) {
        to.bad("file", why.what(), "name a file: local:/path/to/file.db");
    }
#else
    to.bad("file", "this program was built without local:", "name another store");
#endif
    return std::nullopt;
}

// What can be opened may be foreign, damaged, or not ours: the store says so itself.
void check_answer(const settings& with, needs what, examination& to) {
    const auto opened = open_store(with, what);
    if (const auto* const why = std::get_if<problem>(&opened)) {
        to.code = why->code;
        return to.bad("answer", why->sentence, "");
    }
    distribution took;
    for (std::size_t i = 0; i < reads; ++i) {
        const auto began = std::chrono::steady_clock::now();
        const std::error_code error =
            what == needs::locks ? ask_locks<trinco::detail::entries>(
                                       std::get<store>(opened), 5s,
                                       [](auto& at, auto by, auto done) {
                                           return at.list("", "", 1, by, std::move(done));
                                       })
                                       .error
                                 : ask_breakers<trinco::detail::page>(
                                       std::get<store>(opened), 5s,
                                       [](auto& at, auto by, auto done) {
                                           return at.inspect("", "", 1, by, std::move(done));
                                       })
                                       .error;
        if (error) {
            const problem why = store_problem(std::get<store>(opened), "be read", error);
            to.code = why.code;
            return to.bad("answer", why.sentence, "");
        }
        took.add(std::chrono::steady_clock::now() - began);
    }
    to.good("answer", "by " + std::to_string(reads) + " reads: " + summary_of(took), json_of(took));
}

// The first folder on the way to the file that is there.
fs::path nearest_folder(fs::path folder) {
    std::error_code error;
    while (!fs::is_directory(folder, error) && folder.has_relative_path()) {
        folder = folder.parent_path();
    }
    return folder;
}

void check_file_system(const fs::path& folder, examination& to) {
#if TRINCO_LOCAL
    if (trinco::detail::lies_on_shared_file_system(folder)) {
        return to.bad("file-system",
                      folder.string() +
                          " lies on a network file system, where locks of several "
                          "machines do not keep each other out",
                      "name a file on a disk of this machine: local:/path/to/file.db");
    }
    to.good("file-system", "a disk of this machine");
#endif
}

void check_space(const fs::path& folder, examination& to) {
    struct ::statvfs found {};
    if (::statvfs(folder.c_str(), &found) != 0) return;
    const std::uint64_t left = std::uint64_t{found.f_bavail} * found.f_frsize;
    const std::string text = bytes_text(left) + " left in " + folder.string();
    if (left < no_space) {
        return to.bad("space", text + ": nothing can be written soon", "make room there");
    }
    if (left < little_space) return to.warn("space", text, "make room there");
    to.good("space", text);
}

// Who may use it: the file's own rights, and those of its folder, where the log lies beside it.
void check_rights(const fs::path& file, examination& to) {
    struct ::stat found {};
    if (::stat(file.c_str(), &found) != 0) return;
    std::array<char, 8> mode{};
    std::snprintf(mode.data(), mode.size(), "%04o", static_cast<unsigned>(found.st_mode) & 07777U);
    std::string text = "mode " + std::string(mode.data()) + ", of user " +
                       std::to_string(found.st_uid) + " and group " + std::to_string(found.st_gid);
    if ((found.st_mode & S_IWOTH) != 0) {
        return to.warn("rights", text + ": every user of this machine may change it",
                       "chmod o-w " + file.string() + "*");
    }
    to.good("rights", text);
}

std::uint64_t size_of(const fs::path& file) {
    std::error_code error;
    const auto size = fs::file_size(file, error);
    return error ? 0 : size;
}

}  // namespace

void examine_local(const settings& with, needs what, examination& to) {
    const std::string& url = what == needs::locks ? with.locks_url : with.breakers_url;
    const auto file = file_of(url, to);
    if (!file) return;
    const fs::path folder = file->parent_path();
    std::error_code error;
    if (!fs::exists(*file, error)) {
        const fs::path there = nearest_folder(folder);
        if (::access(there.c_str(), W_OK | X_OK) != 0 && !fs::exists(*file, error)) {
            to.code = exit_denied;
            return to.bad("file",
                          file->string() + " is not there, and cannot be made: " +
                              std::generic_category().message(errno) + " (" + there.string() + ")",
                          "let this user write there, or name another file");
        }
        if (there != folder && url != "local:") {
            return to.bad("file", "the folder " + folder.string() + " is not there", "make it");
        }
        to.good("file", file->string() + " is not there yet; the first use makes it");
        check_file_system(there, to);
        return check_space(there, to);
    }
    to.good("file", file->string() + ", " +
                        bytes_text(size_of(*file) + size_of(file->string() + "-wal")) +
                        " with its log");
    check_rights(*file, to);
    check_file_system(folder, to);
    check_space(folder, to);
    check_answer(with, what, to);
}

}  // namespace trinco::program::doctor
