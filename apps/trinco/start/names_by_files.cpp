// Who is who, for an executable without shared objects. The C library asks those that
// /etc/nsswitch.conf names, and they must be of its own version, which is not to be relied on here.
// So users and groups are looked for in their files; where that is not enough the process goes on
// as trinco-fleet (executables.hpp), which has the whole C library. Hosts are needed in figures
// only.
//
// The linker puts the functions below into the place of those whose names they carry (--wrap, see
// CMakeLists.txt).

#include <grp.h>
#include <netdb.h>
#include <pwd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <memory>
#include <string_view>

#include "apps/trinco/start/executables.hpp"

namespace {

using opened_file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

opened_file open_for_reading(const char* name) {
    return {std::fopen(name, "re"), &std::fclose};
}

// Comes back when there is none, or none that can be run; then the files are all there is.
void ask_the_whole_program() {
    const int error = errno;
    if (const auto fleet = trinco::program::fleet_file()) {
        static_cast<void>(trinco::program::go_on_as(*fleet));
    }
    errno = error;
}

}  // namespace

extern "C" {

int __wrap_getpwuid_r(::uid_t user, ::passwd* entry, char* space, std::size_t size,
                      ::passwd** found);
::passwd* __wrap_getpwuid(::uid_t user);
::group* __wrap_getgrnam(const char* name);
int __real_getaddrinfo(const char* host, const char* service, const ::addrinfo* wanted,
                       ::addrinfo** found);
int __wrap_getaddrinfo(const char* host, const char* service, const ::addrinfo* wanted,
                       ::addrinfo** found);
void* __wrap_dlopen(const char* file, int how);

int __wrap_getpwuid_r(::uid_t user, ::passwd* entry, char* space, std::size_t size,
                      ::passwd** found) {
    *found = nullptr;
    const auto users = open_for_reading("/etc/passwd");
    if (!users && errno != ENOENT) return errno;
    for (int error = 0; users != nullptr && error == 0;) {
        error = ::fgetpwent_r(users.get(), entry, space, size, found);
        if (error == ERANGE) return error;
        if (error == 0 && entry->pw_uid == user) return 0;
    }
    *found = nullptr;
    ask_the_whole_program();
    return 0;
}

::passwd* __wrap_getpwuid(::uid_t user) {
    static std::array<char, 16'384> space;
    static ::passwd entry;
    ::passwd* found = nullptr;
    const int error = __wrap_getpwuid_r(user, &entry, space.data(), space.size(), &found);
    if (error != 0) errno = error;
    return found;
}

::group* __wrap_getgrnam(const char* name) {
    const auto groups = open_for_reading("/etc/group");
    while (groups != nullptr) {
        ::group* const one = ::fgetgrent(groups.get());
        if (one == nullptr) break;
        if (one->gr_name == std::string_view(name)) return one;
    }
    ask_the_whole_program();
    return nullptr;
}

int __wrap_getaddrinfo(const char* host, const char* service, const ::addrinfo* wanted,
                       ::addrinfo** found) {
    const bool in_figures = wanted != nullptr && (wanted->ai_flags & AI_NUMERICHOST) != 0;
    return in_figures ? __real_getaddrinfo(host, service, wanted, found) : EAI_FAIL;
}

// SQLite's way to its extensions, which are not allowed here.
void* __wrap_dlopen(const char*, int) {
    return nullptr;
}

}  // extern "C"
