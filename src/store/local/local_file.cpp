#include "store/local/local_file.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string_view>
#include <system_error>
#include <utility>

#include "core/loop.hpp"
#include "core/quoted.hpp"
#include "store/local/local_schema.hpp"
#include "trinco/store.hpp"

namespace trinco::detail {
namespace {

using std::chrono::microseconds;

constexpr std::size_t path_shown = 256;
constexpr const char* writers_only =
    "whoever uses a store must be allowed to write to its file and to the folder";
constexpr auto open_patience = std::chrono::seconds(3);

[[noreturn]] void refuse(errc code, const std::string& shown, const std::string& why) {
    throw open_error(code,
                     "the store " + detail::quoted(shown, path_shown) + " was not opened: " + why);
}

microseconds wall_clock() {
    return std::chrono::duration_cast<microseconds>(
        std::chrono::system_clock::now().time_since_epoch());
}

bool lock_now(int fd) {
    while (::flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK) return false;
        throw std::system_error(errno, std::generic_category(), "the gate cannot be locked");
    }
    return true;
}

void lock_in_turn(int fd) {
    while (::flock(fd, LOCK_EX) != 0) {
        if (errno == EINTR) continue;
        throw std::system_error(errno, std::generic_category(), "the gate cannot be locked");
    }
}

void unlock(int fd) noexcept {
    ::flock(fd, LOCK_UN);
}

[[noreturn]] void refuse_foreign(const std::string& shown, const std::string& name) {
    refuse(errc::unavailable, shown, name + " is not a database; name another file");
}

[[noreturn]] void refuse_damaged(const std::string& shown, const std::string& name) {
    refuse(errc::unavailable, shown,
           name + " is damaged; end what uses it and move it away with what lies beside it (" +
               name + "*), then the store begins anew");
}

// Something ran out, which says nothing about rights.
bool is_shortage(int error) noexcept {
    return error == EMFILE || error == ENFILE || error == ENOMEM || error == ENOSPC ||
           error == EDQUOT || error == EIO;
}

// A file of ours that the system did not open, by errno.
[[noreturn]] void refuse_unopened(const std::string& shown, const std::string& name) {
    const std::error_code error(errno, std::generic_category());
    const std::string why = name + " cannot be opened: " + error.message();
    if (is_shortage(error.value())) refuse(errc::unavailable, shown, why);
    refuse(errc::denied, shown, why + "; " + writers_only);
}

// One that stat() did not find to be a folder, by errno.
[[noreturn]] void refuse_folder(const std::string& shown, const std::string& name) {
    const std::error_code error(errno, std::generic_category());
    if (error == std::errc::permission_denied) {
        refuse(errc::denied, shown, "the folder " + name + " is closed: " + error.message());
    }
    refuse(errc::unavailable, shown, "the folder " + name + " does not exist; make it");
}

// By its first bytes, so that nothing is put beside it. SQLite looks again, and more closely.
bool is_foreign(const std::filesystem::path& file) {
    constexpr std::string_view beginning = "SQLite format 3";
    std::array<char, beginning.size()> found{};
    const owned_descriptor in(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (in.get() < 0) return false;
    const auto size = ::read(in.get(), found.data(), found.size());
    return size > 0 && std::string_view(found.data(), static_cast<std::size_t>(size)) != beginning;
}

bool has_write_ahead_log(sqlite_database& db) {
    statement mode(db, "PRAGMA journal_mode");
    query q(mode);
    return q.next() && q.bytes(0) == "wal";
}

// What an error of writing may come from. Begins with "; ".
std::string size_limit() {
    ::rlimit limit{};
    if (::getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return {};
    return "; this process may write files up to " + std::to_string(limit.rlim_cur) +
           " bytes only (ulimit -f)";
}

// Here a write beyond the process's limit of file sizes (RLIMIT_FSIZE) is an error and not the end
// of the program: blocked, the signal is held back, and taken away at the end.
class overflow_is_an_error {
public:
    overflow_is_an_error() noexcept {
        ::sigset_t pending{};
        ::sigpending(&pending);
        was_pending_ = ::sigismember(&pending, SIGXFSZ) == 1;
        ::sigemptyset(&mine_);
        ::sigaddset(&mine_, SIGXFSZ);
        ::pthread_sigmask(SIG_BLOCK, &mine_, &before_);
    }
    ~overflow_is_an_error() {
        const ::timespec none{};
        while (!was_pending_ && ::sigtimedwait(&mine_, nullptr, &none) < 0 && errno == EINTR) {
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    overflow_is_an_error(const overflow_is_an_error&) = delete;
    overflow_is_an_error& operator=(const overflow_is_an_error&) = delete;

private:
    ::sigset_t mine_{};
    ::sigset_t before_{};
    bool was_pending_ = false;
};

}  // namespace

owned_descriptor::owned_descriptor(owned_descriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)) {}

owned_descriptor& owned_descriptor::operator=(owned_descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

owned_descriptor::~owned_descriptor() {
    if (fd_ >= 0) ::close(fd_);
}

void local_rights::give_to(int fd) const noexcept {
    struct ::stat found {};
    if (::fstat(fd, &found) != 0) return;
    const bool as_it_was = (::geteuid() != 0 || found.st_uid == owner) && found.st_gid == group;
    if (!as_it_was) {
        static_cast<void>(::fchown(fd, ::geteuid() == 0 ? owner : static_cast<::uid_t>(-1), group));
    }
    if ((found.st_mode & 0777U) != mode) static_cast<void>(::fchmod(fd, mode));
}

void local_rights::give_to(int folder, const std::string& name) const noexcept {
    const bool as_it_was = (::geteuid() != 0 || owner == 0) && group == ::getegid();
    if (!as_it_was) {
        static_cast<void>(::fchownat(folder, name.c_str(),
                                     ::geteuid() == 0 ? owner : static_cast<::uid_t>(-1), group,
                                     AT_SYMLINK_NOFOLLOW));
    }
    static_cast<void>(::fchmodat(folder, name.c_str(), mode, 0));
}

// The gate for the time of opening, which must not take for ever: whoever holds it longer than
// this was stopped within a transaction.
class local_file::gate {
public:
    gate(int fd, const std::string& shown) : fd_(fd) {
        const auto until = boot_clock::now() + open_patience;
        while (!lock_now(fd)) {
            if (boot_clock::now() >= until) {
                refuse(errc::unavailable, shown,
                       "another process has been changing it for 3 s; is one stopped?");
            }
            const ::timespec moment{0, 1'000'000};
            ::pselect(0, nullptr, nullptr, nullptr, &moment, nullptr);
        }
    }
    ~gate() { unlock(fd_); }
    gate(const gate&) = delete;
    gate& operator=(const gate&) = delete;

private:
    int fd_;
};

local_file::local_file(local_settings settings, const std::string& shown)
    : settings_(std::move(settings)) {
    const overflow_is_an_error hold;
    try {
        open(shown);
    } catch (const sqlite_error& e) {
        const std::string name = settings_.file.string();
        const int primary = e.code() & 0xff;
        if (primary == SQLITE_NOTADB) refuse_foreign(shown, name);
        if (primary == SQLITE_CORRUPT) refuse_damaged(shown, name);
        const bool denied = e.as_error() == errc::denied ||
                            (primary == SQLITE_CANTOPEN && !is_shortage(e.system()));
        refuse(denied ? errc::denied : errc::unavailable, shown,
               name + ": " + e.what() + (primary == SQLITE_IOERR ? size_limit() : ""));
    }
}

local_file::~local_file() = default;

void local_file::open(const std::string& shown) {
    const auto folder = settings_.file.parent_path();
    struct ::stat found {};
    errno = 0;
    if (::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
        refuse_folder(shown, folder.string());
    }
    if (settings_.is_shared_by_machines(folder)) {
        refuse(errc::not_supported, shown,
               folder.string() +
                   " is on a network file system, where locks of processes do not hold; use a "
                   "file on a local disk");
    }
    if (::stat(settings_.file.c_str(), &found) == 0 && !S_ISREG(found.st_mode)) {
        refuse(errc::unavailable, shown, settings_.file.string() + " is no file; name one");
    }
    const std::string gate_name = settings_.file.string() + "-gate";
    // Not when it may be in use: closing a descriptor of a file ends SQLite's locks on it.
    if (::lstat(gate_name.c_str(), &found) != 0 && is_foreign(settings_.file)) {
        refuse_foreign(shown, settings_.file.string());
    }
    gate_ = owned_descriptor(::open(gate_name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (gate_.get() < 0) refuse_unopened(shown, gate_name);
    const gate hold(gate_.get(), shown);
    set_up(shown);
    if (::stat(settings_.file.c_str(), &found) == 0) {
        device_ = found.st_dev;
        inode_ = found.st_ino;
        rights_ = {found.st_mode & 0777U, found.st_uid, found.st_gid};
        rights_.give_to(gate_.get());
    }
    make_live_file(shown);
}

// Whoever made it anew while sessions hold bytes of the one that was removed would take them all
// for dead.
void local_file::make_live_file(const std::string& shown) {
    const std::string name = settings_.file.string() + "-live";
    owned_descriptor live(::open(name.c_str(), O_RDWR | O_CLOEXEC));
    if (live.get() < 0 && errno == ENOENT) {
        statement find(*db_, "SELECT max(ends) FROM sessions");
        query q(find);
        const auto left = q.next() ? microseconds(q.number(0)) - now() : microseconds(0);
        if (left > microseconds(0)) {
            refuse(errc::unavailable, shown,
                   name +
                       " was removed while sessions were open, so nobody can tell whether their "
                       "holders live; end those, or wait until they have run out (" +
                       std::to_string(std::chrono::ceil<std::chrono::seconds>(left).count()) +
                       " s)");
        }
        live = owned_descriptor(::open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    }
    if (live.get() < 0) refuse_unopened(shown, name);
    rights_.give_to(live.get());
}

void local_file::set_up(const std::string& shown) {
    db_ = std::make_unique<sqlite_database>(settings_.file.string());
    if (db_->is_read_only()) {
        refuse(errc::denied, shown,
               settings_.file.string() + " may only be read by this user; " + writers_only);
    }
    const auto version = db_->number("PRAGMA user_version");
    const auto owner = db_->number("PRAGMA application_id");
    const bool empty =
        owner != local_schema_owner && db_->number("SELECT count(*) FROM sqlite_schema") == 0;
    if (!empty && owner != local_schema_owner) {
        refuse(errc::unavailable, shown,
               settings_.file.string() + " is a database of another program; name another file");
    }
    if (version > local_schema_version) {
        refuse(errc::not_supported, shown,
               settings_.file.string() + " was made by a newer version of Trinco (layout " +
                   std::to_string(version) + ", this version knows " +
                   std::to_string(local_schema_version) + "); update this program");
    }
    if (!has_write_ahead_log(*db_)) {
        // Rows are short. What a transaction writes, and whoever opens the file alone reads again,
        // is whole pages.
        if (empty) db_->run("PRAGMA page_size = 1024");
        db_->run("PRAGMA journal_mode = WAL");
        if (!has_write_ahead_log(*db_)) {
            refuse(errc::unavailable, shown,
                   settings_.file.string() +
                       " cannot be kept with a write-ahead log; use a file on a local disk");
        }
    }
    db_->run("PRAGMA synchronous = NORMAL");
    // Mostly there is nothing to write. Who opens does so behind the gate: it stays as it is read.
    const bool older = !empty && version < local_schema_version;
    if (!empty && !older && enter_life(shown, false)) return;
    db_->run("PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
    try {
        if (empty || older) make_schema(older);
        static_cast<void>(enter_life(shown, true));
        db_->run("COMMIT");
    } catch (...) {
        if (db_->in_transaction()) db_->run("ROLLBACK");
        throw;
    }
    db_->run("PRAGMA synchronous = NORMAL");
}

void local_file::make_schema(bool from_older) {
    db_->run(from_older ? local_schema_update : local_schema);
    db_->run("PRAGMA application_id = " + std::to_string(local_schema_owner) +
             "; PRAGMA user_version = " + std::to_string(local_schema_version));
}

// False when a life begins, and that may not be written now.
bool local_file::enter_life(const std::string& shown, bool may_write) {
    statement find(*db_,
                   "SELECT machine_id, boot_id, clock_offsets, clock_offset, began, epoch, lost, "
                   "granted, changes FROM machine");
    query q(find);
    if (!q.next()) {
        if (may_write) begin_life(true, 1);
        return may_write;
    }
    changes_at_open_ = q.number(8);
    if (q.bytes(1) != settings_.boot_id) {
        if (q.bytes(0) != settings_.machine_id) {
            refuse(errc::not_supported, shown,
                   settings_.file.string() +
                       " belongs to another machine; a local store is shared by the processes of "
                       "one machine only: use a file of this one");
        }
        // Should so many have been granted in one life that they ran over into the next epoch, the
        // new one is beyond them, and beyond those whose commits were lost.
        const auto over = (static_cast<std::uint64_t>(q.number(7)) + (1ULL << 31U)) >> 32U;
        if (may_write) begin_life(false, static_cast<std::uint64_t>(q.number(5)) + 1 + over);
        return may_write;
    }
    if (q.bytes(2) != settings_.clock_offsets) {
        refuse(errc::not_supported, shown,
               settings_.file.string() +
                   " is used in another time namespace, where the boot clock is another one; use "
                   "a file of this one");
    }
    clock_offset_ = microseconds(q.number(3));
    life_began_ = microseconds(q.number(4));
    epoch_ = static_cast<std::uint64_t>(q.number(5));
    may_have_lost_ = q.number(6) != 0;
    return true;
}

void local_file::begin_life(bool first, std::uint64_t epoch) {
    clock_offset_ = wall_clock() - settings_.boot_time();
    life_began_ = now();
    epoch_ = epoch;
    may_have_lost_ = !first;
    db_->run(local_end_of_life);
    if (first) db_->run("INSERT INTO machine(id, epoch) VALUES(1, 0)");
    statement change(*db_,
                     "UPDATE machine SET machine_id = ?, boot_id = ?, clock_offsets = ?, "
                     "clock_offset = ?, began = ?, epoch = ?, lost = ?, granted = 0, sweep_at = 0");
    query(change, settings_.machine_id, settings_.boot_id, settings_.clock_offsets,
          std::int64_t{clock_offset_.count()}, std::int64_t{life_began_.count()}, epoch_,
          may_have_lost_ ? 1 : 0)
        .run();
}

microseconds local_file::now() const {
    return clock_offset_ + settings_.boot_time();
}

std::optional<microseconds> local_file::since_loss() const {
    return may_have_lost_ ? std::optional(now() - life_began_) : std::nullopt;
}

void local_file::enter() {
    if (!lock_now(gate_.get())) lock_in_turn(gate_.get());
}

bool local_file::enter_if_free() {
    return lock_now(gate_.get());
}

void local_file::leave() noexcept {
    unlock(gate_.get());
}

void local_file::begin(bool durable) {
    if (!is_in_place()) {
        throw std::system_error(std::make_error_code(std::errc::no_such_file_or_directory),
                                "the store's file was removed or replaced");
    }
    if (full_ != durable) {
        db_->run(durable ? "PRAGMA synchronous = FULL" : "PRAGMA synchronous = NORMAL");
        full_ = durable;
    }
    query(db_->prepared("BEGIN IMMEDIATE")).run();
}

void local_file::begin_reading() {
    query(db_->prepared("BEGIN")).run();
}

void local_file::commit() {
    query(db_->prepared("COMMIT")).run();
}

void local_file::roll_back() noexcept {
    try {
        if (db_->in_transaction()) db_->run("ROLLBACK");
    } catch (const sqlite_error&) {
        // A transaction that cannot be rolled back now is rolled back when the file is opened next.
    }
}

bool local_file::is_in_place() const noexcept {
    struct ::stat found {};
    if (::stat(settings_.file.c_str(), &found) != 0) return errno != ENOENT && errno != ENOTDIR;
    return found.st_dev == device_ && found.st_ino == inode_;
}

}  // namespace trinco::detail
