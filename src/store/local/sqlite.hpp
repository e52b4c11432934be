// SQLite as values that clean up after themselves. The only files that include sqlite3.h are
// sqlite.cpp and those who need its codes.
//
// Errors are thrown as sqlite_error: a worker's transaction either succeeds as a whole or is rolled
// back where it is caught. One thread at a time uses a database and its statements.
#pragma once

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <unordered_map>

struct sqlite3;
struct sqlite3_stmt;

namespace trinco::detail {

class sqlite_error : public std::runtime_error {
public:
    // `extended` is SQLite's extended result code; the text says what SQLite says. `system`: the
    // errno behind it, if any.
    sqlite_error(int extended, const std::string& text, int system = 0);
    [[nodiscard]] int code() const noexcept { return code_; }
    [[nodiscard]] int system() const noexcept { return system_; }
    [[nodiscard]] bool is_busy() const noexcept;
    // As an answer to a caller: nothing was applied, and why not.
    [[nodiscard]] std::error_code as_error() const noexcept;

private:
    int code_;
    int system_;
};

// For a program that has SQLite to itself, before it opens the first file: nobody asks what its
// allocations sum up to, and each would take a mutex for that. Later it has no effect.
void leave_out_sqlite_statistics() noexcept;

class statement;

class sqlite_database {
public:
    // Opens or creates the file; throws.
    explicit sqlite_database(const std::string& file);
    ~sqlite_database();
    sqlite_database(const sqlite_database&) = delete;
    sqlite_database& operator=(const sqlite_database&) = delete;

    // One or more statements without parameters and without rows.
    void run(const std::string& sql);
    [[nodiscard]] std::int64_t number(const std::string& sql);
    // The statement, prepared at its first use. Known by its address: the text must be a literal.
    // One query at a time may use it.
    [[nodiscard]] statement& prepared(const char* sql);
    // Prepares a literal for prepared(), which takes the one of the same text when it is asked
    // first: in time that nobody waits for. Not one that has been asked for.
    void prepare_ahead(std::string_view sql);
    // How many of those nobody has asked for.
    [[nodiscard]] std::size_t left_ahead() const noexcept { return ahead_.size(); }
    // Whether a transaction is open: an error may have ended it.
    [[nodiscard]] bool in_transaction() const noexcept;
    // Whether this user may only read the file. SQLite opens it all the same, and begins what was
    // to be written as if it were reading.
    [[nodiscard]] bool is_read_only() const noexcept;
    // Rows changed by the last statement.
    [[nodiscard]] int changes() const noexcept;
    // The number of the row inserted last. Statements of ours do not use RETURNING: it keeps its
    // rows in a table of its own, for which SQLite takes and gives back 100 KiB each time.
    [[nodiscard]] std::int64_t last_row() const noexcept;
    [[nodiscard]] sqlite3* handle() const noexcept { return handle_; }

    // Copies the log into the file when this connection's commits have made it long, as far as that
    // goes without waiting for anybody. Nothing else does: a commit should not wait for the disk,
    // and those behind the gate not for another's copying. Unless it is very long, that is done
    // when there is nothing else to do: while a command runs under its lock, say.
    void checkpoint_if_long(bool idle);
    // Whether it would, with nothing else to do.
    [[nodiscard]] bool is_log_long() const noexcept { return log_pages_ >= checkpoint_from_; }

private:
    static int committed(void* self, sqlite3*, const char*, int pages) noexcept;

    sqlite3* handle_ = nullptr;
    int log_pages_ = 0;        // at the last commit
    int checkpoint_from_ = 0;  // at so many
    std::unordered_map<const char*, std::unique_ptr<statement>> prepared_;
    std::unordered_map<std::string_view, std::unique_ptr<statement>> ahead_;
};

// A prepared statement. Parameters are numbered from 1, columns from 0.
//
//     query q(find, name);            // binds in order, resets at its end
//     if (q.next()) use(q.number(0));
class statement {
public:
    statement(sqlite_database& db, std::string_view sql);
    ~statement();
    statement(const statement&) = delete;
    statement& operator=(const statement&) = delete;

private:
    friend class query;
    sqlite3_stmt* handle_ = nullptr;
};

class query {
public:
    // Texts are bound as text, bytes as blob; they must live as long as the query.
    struct blob {
        std::string_view bytes;
    };
    struct null {};
    template <class... Args>
    explicit query(statement& s, const Args&... args) : handle_(s.handle_) {
        int at = 0;
        (bind(++at, args), ...);
    }
    ~query();
    query(const query&) = delete;
    query& operator=(const query&) = delete;

    // The next row; false after the last.
    bool next();
    // For statements without rows.
    void run() {
        while (next()) {
        }
    }
    [[nodiscard]] std::int64_t number(int column) const noexcept;
    // Valid until the next row.
    [[nodiscard]] std::string_view bytes(int column) const noexcept;
    [[nodiscard]] std::string text(int column) const { return std::string(bytes(column)); }
    [[nodiscard]] bool is_null(int column) const noexcept;

private:
    void bind(int at, std::int64_t n);
    void bind(int at, std::uint64_t n) { bind(at, static_cast<std::int64_t>(n)); }
    void bind(int at, std::uint32_t n) { bind(at, static_cast<std::int64_t>(n)); }
    void bind(int at, int n) { bind(at, static_cast<std::int64_t>(n)); }
    void bind(int at, std::string_view s);
    void bind(int at, const std::string& s) { bind(at, std::string_view(s)); }
    void bind(int at, blob b);
    void bind(int at, null);
    void check(int result) const;

    sqlite3_stmt* handle_;
};

}  // namespace trinco::detail
