// The file of a local store: opened, checked, and changed in transactions behind a gate.
//
// Gate         flock on <file>-gate before each transaction that writes. The kernel wakes the next
//              one at once; SQLite's own waiting is a back-off that sleeps up to a tenth of a
//              second a time. It also covers opening, where journal mode and schema are set.
// Journal      WAL, synchronous=NORMAL: a process that dies loses nothing, a machine that dies may
//              lose the last commits, never the file's soundness. durable() transactions and the
//              epoch are written with FULL. The log is copied into the file outside of the gate, by
//              who made it long, never when a process closes: a command that takes a lock for
//              a second should not pay for everybody.
// Lives        The first to open the file in another life of the machine (boot id) raises the
//              epoch, durably, before anybody is granted anything, and clears what lived in the
//              life before. So tokens, epoch * 2^32 + n, grow even when the last commits were lost.
// Clock        now() is the boot clock, moved in each life to the wall clock as it was when the
//              first process opened the file: nobody's step of the wall clock reaches it.
// Replaced     A file that was removed or replaced under a running process is noticed before each
//              transaction: two processes must never work on two files of one name.
//
// One thread at a time. Errors of SQLite are thrown as sqlite_error.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "store/local/local_machine.hpp"
#include "store/local/sqlite.hpp"

namespace trinco::detail {

// A descriptor that closes itself.
class owned_descriptor {
public:
    owned_descriptor() noexcept = default;
    explicit owned_descriptor(int fd) noexcept : fd_(fd) {}
    owned_descriptor(owned_descriptor&& other) noexcept;
    owned_descriptor& operator=(owned_descriptor&& other) noexcept;
    ~owned_descriptor();
    [[nodiscard]] int get() const noexcept { return fd_; }

private:
    int fd_ = -1;
};

// Who may use the database. What is put beside it is given the same owner, group and mode, as far
// as this process may: root would otherwise leave a gate that the file's owner cannot pass.
struct local_rights {
    unsigned mode = 0600;
    ::uid_t owner = 0;
    ::gid_t group = 0;
    void give_to(int fd) const noexcept;
    void give_to(int folder, const std::string& name) const noexcept;
};

class local_file {
public:
    // Throws open_error: one sentence. `shown` is the store's URL.
    local_file(local_settings settings, const std::string& shown);
    ~local_file();
    local_file(const local_file&) = delete;
    local_file& operator=(const local_file&) = delete;

    [[nodiscard]] sqlite_database& db() noexcept { return *db_; }
    [[nodiscard]] const std::filesystem::path& path() const noexcept { return settings_.file; }
    [[nodiscard]] const local_rights& rights() const noexcept { return rights_; }
    // Microseconds since 1970, see Clock.
    [[nodiscard]] std::chrono::microseconds now() const;

    [[nodiscard]] std::uint64_t epoch() const noexcept { return epoch_; }
    // The number of the last change of a breaker, when this was opened.
    [[nodiscard]] std::int64_t changes_at_open() const noexcept { return changes_at_open_; }
    // When commits of the life before may have been lost: how long this life has been running since
    // the file was opened in it first.
    [[nodiscard]] std::optional<std::chrono::microseconds> since_loss() const;

    // The gate, around every transaction that writes. enter() waits for whoever is within. Throws
    // std::system_error.
    void enter();
    [[nodiscard]] bool enter_if_free();
    void leave() noexcept;
    // commit or roll_back ends it. `durable`: with FULL. Throws sqlite_error, and std::system_error
    // when the file is not in its place.
    void begin(bool durable);
    void begin_reading();
    void commit();
    void roll_back() noexcept;
    // Whether the name still leads to the file that is open, as far as this user may look.
    [[nodiscard]] bool is_in_place() const noexcept;

private:
    class gate;
    void open(const std::string& shown);
    void set_up(const std::string& shown);
    void make_schema(bool from_older);
    [[nodiscard]] bool enter_life(const std::string& shown, bool may_write);
    void begin_life(bool first, std::uint64_t epoch);
    void make_live_file(const std::string& shown);

    local_settings settings_;
    owned_descriptor gate_;
    std::unique_ptr<sqlite_database> db_;
    std::chrono::microseconds clock_offset_{0};
    std::chrono::microseconds life_began_{0};
    std::uint64_t epoch_ = 0;
    std::int64_t changes_at_open_ = 0;
    bool may_have_lost_ = false;
    bool full_ = false;
    local_rights rights_;
    ::dev_t device_ = 0;
    ::ino_t inode_ = 0;
};

}  // namespace trinco::detail
