#include "store/local/local_file.hpp"

#include <fcntl.h>
#include <sqlite3.h>
#include <sys/file.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
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
    try {
        open(shown);
    } catch (const sqlite_error& e) {
        const std::string name = settings_.file.string();
        if ((e.code() & 0xff) == SQLITE_NOTADB) {
            refuse(errc::invalid, shown, name + " is not a database; name another file");
        }
        const bool denied = e.as_error() == errc::denied || (e.code() & 0xff) == SQLITE_CANTOPEN;
        refuse(denied ? errc::denied : errc::unavailable, shown, name + ": " + e.what());
    }
}

local_file::~local_file() = default;

void local_file::open(const std::string& shown) {
    const auto folder = settings_.file.parent_path();
    struct ::stat found {};
    if (::stat(folder.c_str(), &found) != 0 || !S_ISDIR(found.st_mode)) {
        refuse(errc::invalid, shown, "the folder " + folder.string() + " does not exist; make it");
    }
    if (settings_.is_shared_by_machines(folder)) {
        refuse(errc::not_supported, shown,
               folder.string() +
                   " is on a network file system, where locks of processes do not hold; use a "
                   "file on a local disk");
    }
    const std::string gate_name = settings_.file.string() + "-gate";
    gate_ = owned_descriptor(::open(gate_name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
    if (gate_.get() < 0) {
        const std::error_code error(errno, std::generic_category());
        refuse(errc::denied, shown, gate_name + " cannot be opened: " + error.message());
    }
    const gate hold(gate_.get(), shown);
    set_up(shown);
    if (::stat(settings_.file.c_str(), &found) == 0) {
        device_ = found.st_dev;
        inode_ = found.st_ino;
        mode_ = found.st_mode & 0777U;
        // Who may use the file must be able to pass its gate. Only the owner can say so, and has.
        static_cast<void>(::fchmod(gate_.get(), mode_));
    }
}

void local_file::set_up(const std::string& shown) {
    db_ = std::make_unique<sqlite_database>(settings_.file.string());
    const auto version = db_->number("PRAGMA user_version");
    const auto owner = db_->number("PRAGMA application_id");
    const bool empty = db_->number("SELECT count(*) FROM sqlite_schema") == 0;
    if (!empty && owner != local_schema_owner) {
        refuse(errc::invalid, shown,
               settings_.file.string() + " is a database of another program; name another file");
    }
    if (version > local_schema_version) {
        refuse(errc::not_supported, shown,
               settings_.file.string() + " was made by a newer version of Trinco (layout " +
                   std::to_string(version) + ", this version knows " +
                   std::to_string(local_schema_version) + "); update this program");
    }
    if (db_->number("SELECT 1 FROM pragma_journal_mode WHERE journal_mode = 'wal'") == 0) {
        db_->run("PRAGMA journal_mode = WAL");
        if (db_->number("SELECT 1 FROM pragma_journal_mode WHERE journal_mode = 'wal'") == 0) {
            refuse(errc::unavailable, shown,
                   settings_.file.string() +
                       " cannot be kept with a write-ahead log; use a file on a local disk");
        }
    }
    db_->run("PRAGMA synchronous = FULL; BEGIN IMMEDIATE");
    try {
        if (empty) make_schema();
        enter_life(shown);
        changes_at_open_ = db_->number("SELECT changes FROM machine");
        db_->run("COMMIT");
    } catch (...) {
        if (db_->in_transaction()) db_->run("ROLLBACK");
        throw;
    }
    db_->run("PRAGMA synchronous = NORMAL");
}

void local_file::make_schema() {
    db_->run(local_schema);
    db_->run("PRAGMA application_id = " + std::to_string(local_schema_owner) +
             "; PRAGMA user_version = " + std::to_string(local_schema_version));
}

void local_file::enter_life(const std::string& shown) {
    statement find(*db_,
                   "SELECT machine_id, boot_id, clock_offsets, clock_offset, began, epoch, lost, "
                   "granted FROM machine");
    query q(find);
    if (!q.next()) return begin_life(true, 1);
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
        return begin_life(false, static_cast<std::uint64_t>(q.number(5)) + 1 + over);
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
                     "clock_offset = ?, began = ?, epoch = ?, lost = ?, granted = 0");
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
    db_->run("BEGIN IMMEDIATE");
}

void local_file::begin_reading() {
    db_->run("BEGIN");
}

void local_file::commit() {
    db_->run("COMMIT");
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
    return ::stat(settings_.file.c_str(), &found) == 0 && found.st_dev == device_ &&
           found.st_ino == inode_;
}

}  // namespace trinco::detail
