#include "apps/trinco/demo/scratch.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include "apps/trinco/exit_codes.hpp"
#include "core/quoted.hpp"

namespace trinco::program::demo {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view prefix = "trinco-demo-";
constexpr const char* marker = "trinco-demo.lock";
constexpr std::size_t random_letters = 6;
// A folder without the file may be one that is being made right now.
constexpr std::time_t young = 60;

class descriptor {
public:
    explicit descriptor(int fd) noexcept : fd_(fd) {}
    descriptor(descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
    descriptor& operator=(descriptor&&) = delete;
    ~descriptor() {
        if (fd_ >= 0) ::close(fd_);
    }
    [[nodiscard]] int get() const noexcept { return fd_; }
    [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }
    explicit operator bool() const noexcept { return fd_ >= 0; }

private:
    int fd_;
};

bool is_ours(int fd, ::mode_t kind) {
    struct stat about {};
    return ::fstat(fd, &about) == 0 && (about.st_mode & S_IFMT) == kind &&
           about.st_uid == ::geteuid();
}

// The marker of a folder, locked; none when it has none, or its demonstration lives.
descriptor lock_marker(int folder, int how) {
    descriptor file(::openat(folder, marker, O_RDWR | O_NOFOLLOW | O_CLOEXEC | how, 0600));
    if (!file || !is_ours(file.get(), S_IFREG) || ::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
        return descriptor(-1);
    }
    return file;
}

void remove_if_left(const fs::path& folder) {
    const descriptor opened(
        ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
    if (!opened || !is_ours(opened.get(), S_IFDIR)) return;
    if (const descriptor lock = lock_marker(opened.get(), 0)) {
        std::error_code ignored;
        fs::remove_all(folder, ignored);
        return;
    }
    struct stat about {};
    if (::fstat(opened.get(), &about) == 0 && about.st_mtime + young < std::time(nullptr)) {
        ::rmdir(folder.c_str());  // does nothing unless it is empty
    }
}

void remove_leftovers(const fs::path& place) {
    std::error_code error;
    for (fs::directory_iterator at(place, error), end; !error && at != end; at.increment(error)) {
        const std::string name = at->path().filename().string();
        if (name.size() == prefix.size() + random_letters && name.starts_with(prefix)) {
            remove_if_left(at->path());
        }
    }
}

problem not_made(const fs::path& place, int number) {
    return {exit_unavailable,
            "the demo could not make a folder in " + detail::quoted(place.string(), 200) + ": " +
                std::generic_category().message(number) + "; TMPDIR names another place"};
}

fs::path place_of_environment() {
    const char* tmp = std::getenv("TMPDIR");
    return tmp != nullptr && *tmp != '\0' ? fs::path(tmp) : fs::path("/tmp");
}

}  // namespace

std::variant<scratch, problem> scratch::make(fs::path place) {
    std::error_code error;
    place = fs::absolute(place.empty() ? place_of_environment() : place, error);
    remove_leftovers(place);
    // Another demonstration may take the new folder for a leftover between making and locking it.
    for (int attempt = 0; attempt < 10; ++attempt) {
        std::string name = (place / prefix).string() + std::string(random_letters, 'X');
        if (::mkdtemp(name.data()) == nullptr) return not_made(place, errno);
        const descriptor opened(::open(name.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
        if (!opened) return not_made(place, errno);
        descriptor lock = lock_marker(opened.get(), O_CREAT | O_EXCL);
        if (!lock && errno != EWOULDBLOCK && errno != ENOENT) return not_made(place, errno);
        struct stat about {};
        if (lock && ::fstat(lock.get(), &about) == 0 && about.st_nlink > 0) {
            return scratch(name, lock.release());
        }
    }
    return not_made(place, EBUSY);
}

scratch::scratch(fs::path folder, int lock) noexcept : folder_(std::move(folder)), lock_(lock) {}

scratch::scratch(scratch&& other) noexcept
    : folder_(std::exchange(other.folder_, fs::path())), lock_(std::exchange(other.lock_, -1)) {}

scratch::~scratch() {
    remove();
    if (lock_ >= 0) ::close(lock_);
}

bool scratch::remove() noexcept {
    if (folder_.empty()) return true;
    std::error_code error;
    // The marker goes last: a demonstration that is killed meanwhile must leave it.
    for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
        if (at->path().filename() != marker) {
            std::error_code ignored;
            fs::remove_all(at->path(), ignored);
        }
    }
    fs::remove_all(folder_, error);
    if (error) return false;
    folder_.clear();
    return true;
}

}  // namespace trinco::program::demo
