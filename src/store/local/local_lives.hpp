// Who is alive, by the kernel's word: each session holds a lock on one byte of <file>-live through
// an open file description of its own, and is dead when nobody holds it. Unlike a pid, that means
// the same in every container, cannot be taken for another process's, and is inherited: a command
// that got the descriptor keeps the session alive until its last descendant is gone.
//
// The file stays empty; the byte's position is the session's number.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "store/local/local_file.hpp"

namespace trinco::detail {

class local_lives {
public:
    // Opens the file, which local_file has made. Throws std::system_error.
    explicit local_lives(std::string file);

    // A descriptor that holds this byte; none when another holds it. Throws when the file was
    // removed: nobody who comes later would see the byte.
    [[nodiscard]] owned_descriptor hold(std::int64_t session) const;
    // True also when it cannot be told, because the file was removed: then its time decides.
    [[nodiscard]] bool is_alive(std::int64_t session) const;

    // The descriptors of this process's own sessions. Any thread.
    void keep(std::int64_t session, owned_descriptor held);
    void drop(std::int64_t session);
    void drop_all();
    // -1 when it is not one of ours.
    [[nodiscard]] int descriptor_of(std::int64_t session) const;
    [[nodiscard]] std::vector<std::int64_t> own() const;

private:
    [[nodiscard]] bool is_removed() const noexcept;

    std::string file_;
    owned_descriptor probe_;
    mutable std::mutex m_;
    std::map<std::int64_t, owned_descriptor> own_;
};

}  // namespace trinco::detail
