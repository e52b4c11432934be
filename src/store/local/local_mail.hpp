// The doorbell of one store object: a datagram socket beside the file, at which others ring when
// there is something to look at. A ring says nothing else, so one that cannot be delivered because
// another is still unread is not missed.
//
// The socket is a file, so that it reaches processes in other network namespaces, and it is named
// through its folder's descriptor, so that its path may be longer than an address allows.
#pragma once

#include <string>

namespace trinco::detail {

class local_mail {
public:
    // Binds the socket of this name in the folder; whoever may write to the database (`mode`, of
    // its file) may ring. Throws std::system_error.
    local_mail(const std::string& folder, std::string name, unsigned mode);
    ~local_mail();
    local_mail(const local_mail&) = delete;
    local_mail& operator=(const local_mail&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return name_; }
    // To poll for reading.
    [[nodiscard]] int descriptor() const noexcept { return socket_; }
    // Takes every ring; whether there was one.
    bool take_all() noexcept;
    // Never waits. False when nobody is bound to that name any more; its file is then removed.
    bool ring(const std::string& other) noexcept;

private:
    std::string name_;
    int folder_ = -1;
    int socket_ = -1;
};

}  // namespace trinco::detail
