#include "store/local/sqlite.hpp"

#include <sqlite3.h>

#include <algorithm>

#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

// Only other programs (a shell, a backup) are ever waited for here: our own processes meet at the
// gate.
constexpr int busy_wait_ms = 1'000;
// 16 MiB: so long that hardly one call in a hundred meets it, and read back in a moment.
constexpr int long_log = 4'000;
// By who has just opened the file: whoever opens it alone reads the whole log first, 2 us a page,
// and a command that takes a lock for a moment does so each time.
constexpr int long_for_openers = 100;
// And so many more when a reader kept the log from being begun anew.
constexpr int longer_by = 1'000;

// "disk I/O error: File too large": what SQLite says, and what the system had said to it.
std::string sentence(sqlite3* db, int code) {
    std::string text = sqlite3_errmsg(db);
    const int primary = code & 0xff;
    const int system = sqlite3_system_errno(db);
    if (system != 0 && (primary == SQLITE_IOERR || primary == SQLITE_CANTOPEN)) {
        text += ": " + std::generic_category().message(system);
    }
    return text;
}

[[noreturn]] void fail(sqlite3* db, int result) {
    if (db == nullptr) throw sqlite_error(result, sqlite3_errstr(result));
    const int code = sqlite3_extended_errcode(db);
    throw sqlite_error(code, sentence(db, code), sqlite3_system_errno(db));
}

}  // namespace

sqlite_error::sqlite_error(int extended, const std::string& text, int system)
    : std::runtime_error(text + " (SQLite " + std::to_string(extended) + ")"),
      code_(extended),
      system_(system) {}

bool sqlite_error::is_busy() const noexcept {
    const int primary = code_ & 0xff;
    return primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
}

std::error_code sqlite_error::as_error() const noexcept {
    // A limit of file sizes, a quota; the mark of a commit is what a log ends with.
    if (code_ == SQLITE_IOERR_WRITE) return errc::busy;
    switch (code_ & 0xff) {
        case SQLITE_READONLY:
        case SQLITE_PERM:
        case SQLITE_AUTH: return errc::denied;
        case SQLITE_FULL:
        case SQLITE_TOOBIG: return errc::busy;
        default: return errc::unavailable;
    }
}

void leave_out_sqlite_statistics() noexcept {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

sqlite_database::sqlite_database(const std::string& file) {
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const int result = sqlite3_open_v2(file.c_str(), &handle_, flags, nullptr);
    if (result != SQLITE_OK) {
        const sqlite_error error(
            result, handle_ != nullptr ? sentence(handle_, result) : sqlite3_errstr(result),
            handle_ != nullptr ? sqlite3_system_errno(handle_) : 0);
        sqlite3_close_v2(handle_);
        throw error;
    }
    sqlite3_busy_timeout(handle_, busy_wait_ms);
    checkpoint_from_ = long_for_openers;
    sqlite3_wal_hook(handle_, &sqlite_database::committed, this);  // instead of SQLite's own
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(handle_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
}

sqlite_database::~sqlite_database() {
    ahead_.clear();
    prepared_.clear();
    sqlite3_close_v2(handle_);
}

void sqlite_database::run(const std::string& sql) {
    const int result = sqlite3_exec(handle_, sql.c_str(), nullptr, nullptr, nullptr);
    if (result != SQLITE_OK) fail(handle_, result);
}

std::int64_t sqlite_database::number(const std::string& sql) {
    statement s(*this, sql);
    query q(s);
    return q.next() ? q.number(0) : 0;
}

int sqlite_database::committed(void* self, sqlite3*, const char*, int pages) noexcept {
    static_cast<sqlite_database*>(self)->log_pages_ = pages;
    return SQLITE_OK;
}

void sqlite_database::checkpoint_if_long(bool idle) {
    if (log_pages_ == 0) return;                 // no commit yet
    if (!idle && log_pages_ < long_log) return;  // somebody waits, and it can
    const bool is_long = log_pages_ >= checkpoint_from_;
    if (!is_long || log_pages_ < long_log) checkpoint_from_ = long_log;
    if (!is_long) return;
    if (log_pages_ >= long_log) checkpoint_from_ = log_pages_ + longer_by;
    // What it could not do is done at the next one, and errors show in the next commit.
    sqlite3_wal_checkpoint_v2(handle_, nullptr, SQLITE_CHECKPOINT_PASSIVE, nullptr, nullptr);
}

statement& sqlite_database::prepared(const char* sql) {
    auto& known = prepared_[sql];
    if (!known) {
        if (auto ready = ahead_.extract(sql)) known = std::move(ready.mapped());
    }
    if (!known) known = std::make_unique<statement>(*this, sql);
    return *known;
}

void sqlite_database::prepare_ahead(std::string_view sql) {
    const bool is_known = std::any_of(prepared_.begin(), prepared_.end(),
                                      [&](const auto& one) { return one.first == sql; });
    if (is_known) return;
    auto& ready = ahead_[sql];
    if (!ready) ready = std::make_unique<statement>(*this, sql);
}

bool sqlite_database::in_transaction() const noexcept {
    return sqlite3_get_autocommit(handle_) == 0;
}

bool sqlite_database::is_read_only() const noexcept {
    return sqlite3_db_readonly(handle_, "main") == 1;
}

int sqlite_database::changes() const noexcept {
    return sqlite3_changes(handle_);
}

std::int64_t sqlite_database::last_row() const noexcept {
    return sqlite3_last_insert_rowid(handle_);
}

statement::statement(sqlite_database& db, std::string_view sql) {
    const int result = sqlite3_prepare_v3(db.handle(), sql.data(), static_cast<int>(sql.size()),
                                          SQLITE_PREPARE_PERSISTENT, &handle_, nullptr);
    if (result != SQLITE_OK) fail(db.handle(), result);
}

statement::~statement() {
    sqlite3_finalize(handle_);
}

query::~query() {
    sqlite3_reset(handle_);
    sqlite3_clear_bindings(handle_);
}

bool query::next() {
    const int result = sqlite3_step(handle_);
    if (result == SQLITE_ROW) return true;
    if (result == SQLITE_DONE) return false;
    fail(sqlite3_db_handle(handle_), result);
}

std::int64_t query::number(int column) const noexcept {
    return sqlite3_column_int64(handle_, column);
}

std::string_view query::bytes(int column) const noexcept {
    const auto* const at = static_cast<const char*>(sqlite3_column_blob(handle_, column));
    const int size = sqlite3_column_bytes(handle_, column);
    return at != nullptr ? std::string_view(at, static_cast<std::size_t>(size))
                         : std::string_view();
}

bool query::is_null(int column) const noexcept {
    return sqlite3_column_type(handle_, column) == SQLITE_NULL;
}

void query::bind(int at, std::int64_t n) {
    check(sqlite3_bind_int64(handle_, at, n));
}

void query::bind(int at, std::string_view s) {
    check(sqlite3_bind_text64(handle_, at, s.data() != nullptr ? s.data() : "", s.size(),
                              SQLITE_STATIC, SQLITE_UTF8));
}

void query::bind(int at, blob b) {
    check(sqlite3_bind_blob64(handle_, at, b.bytes.data() != nullptr ? b.bytes.data() : "",
                              b.bytes.size(), SQLITE_STATIC));
}

void query::bind(int at, null) {
    check(sqlite3_bind_null(handle_, at));
}

void query::check(int result) const {
    if (result != SQLITE_OK) fail(sqlite3_db_handle(handle_), result);
}

}  // namespace trinco::detail
