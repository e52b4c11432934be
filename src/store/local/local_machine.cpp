#include "store/local/local_machine.hpp"

#include <fcntl.h>
#include <pwd.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <iterator>
#include <system_error>
#include <utility>
#include <vector>

#include "core/loop.hpp"
#include "core/quoted.hpp"
#include "trinco/store.hpp"

namespace trinco::detail {
namespace {

// Something ran out or broke, which says nothing about what was asked.
bool is_shortage(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == EIO;
}

namespace fs = std::filesystem;

constexpr std::size_t id_max = 256;

// The file's text without blanks and newlines at its end; empty when it cannot be read.
std::string first_words(const fs::path& path) {
    // Without a stream, whose first use in a process takes longer than all the rest.
    const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0 && is_shortage(errno)) {
        // Not the same as a file that is not there, which says something about the machine.
        throw open_error(errc::unavailable, std::string(path) + " cannot be read: " +
                                                std::generic_category().message(errno));
    }
    if (file < 0) return {};
    std::string text(id_max, '\0');
    const auto size = ::read(file, text.data(), text.size());
    ::close(file);
    text.resize(static_cast<std::size_t>(std::max<::ssize_t>(size, 0)));
    const auto end = text.find_last_not_of(" \t\r\n");
    text.resize(end == std::string::npos ? 0 : end + 1);
    return text;
}

fs::path home_of_user() {
    std::vector<char> space(16'384);
    ::passwd entry{};
    ::passwd* found = nullptr;
    const int error = ::getpwuid_r(::geteuid(), &entry, space.data(), space.size(), &found);
    const std::string user = "the user " + std::to_string(::geteuid());
    // Not that there is no such user, which some databases say by a number as well.
    if (is_shortage(error)) {
        throw open_error(errc::unavailable, "the home of " + user + " cannot be looked up: " +
                                                std::generic_category().message(error));
    }
    if (found == nullptr || found->pw_dir == nullptr || found->pw_dir[0] != '/') {
        throw open_error(
            errc::unavailable,
            user + " has no home in the password database; name the file: local:/path/to/file.db");
    }
    return found->pw_dir;
}

// For this user alone: a lock that others can delete is none.
void make_private_folder(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder.parent_path(), error);
    if (!error && ::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
        error = std::error_code(errno, std::generic_category());
    }
    if (error) {
        throw open_error(errc::denied, "the folder " + detail::quoted(folder.string(), id_max) +
                                           " cannot be made (" + error.message() +
                                           "); name another file: local:/path/to/file.db");
    }
}

}  // namespace

local_settings local_settings_for(fs::path file) {
    local_settings s;
    // One file, one gate, by whichever links it is reached.
    std::error_code error;
    s.file = fs::weakly_canonical(file, error);
    if (error) s.file = std::move(file);
    s.boot_id = first_words("/proc/sys/kernel/random/boot_id");
    if (s.boot_id.empty()) {
        throw open_error(errc::unavailable,
                         "/proc/sys/kernel/random/boot_id cannot be read, and without it nobody "
                         "knows whether the machine was restarted; mount /proc");
    }
    s.machine_id = first_words("/etc/machine-id");
    if (s.machine_id == "uninitialized") s.machine_id.clear();
    s.clock_offsets = first_words("/proc/self/timens_offsets");
    s.is_shared_by_machines = &lies_on_shared_file_system;
    s.boot_time = [] {
        return std::chrono::duration_cast<std::chrono::microseconds>(
            boot_clock::now().time_since_epoch());
    };
    return s;
}

fs::path default_local_name() {
    const fs::path folder = ::geteuid() == 0 ? fs::path("/var/lib/trinco")
                                             : home_of_user() / ".local" / "state" / "trinco";
    return folder / "local.db";
}

fs::path default_local_file() {
    fs::path file = default_local_name();
    make_private_folder(file.parent_path());
    return file;
}

bool is_shared_file_system(long kind) noexcept {
    constexpr std::array<std::uint32_t, 20> shared{
        0x00006969,  // nfs
        0x0000517b,  // smb
        0xff534d42,  // cifs
        0xfe534d42,  // smb2
        0x01021997,  // 9p
        0x65735546,  // fuse: sshfs, glusterfs, s3fs, virtiofs
        0x5346414f,  // afs of OpenAFS
        0x6b414653,  // afs of the kernel
        0x73757245,  // coda
        0x00c36400,  // ceph
        0x0bd00bd0,  // lustre
        0x47504653,  // gpfs
        0x7461636f,  // ocfs2
        0x01161970,  // gfs2
        0x786f4256,  // folders of VirtualBox
        0xbacbacbc,  // folders of VMware
        0x20030528,  // orangefs
        0x013111a8,  // ibrix
        0x19830326,  // beegfs
        0x0000564c,  // ncp
    };
    return std::find(shared.begin(), shared.end(), static_cast<std::uint32_t>(kind)) !=
           shared.end();
}

bool lies_on_shared_file_system(const fs::path& folder) {
    struct ::statfs found {};
    if (::statfs(folder.c_str(), &found) != 0) {
        throw std::system_error(errno, std::generic_category(), folder.string());
    }
    return is_shared_file_system(static_cast<long>(found.f_type));
}

}  // namespace trinco::detail
