#include "apps/trinco/watching/waiting_room.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

namespace trinco::program {

bell::bell() : event_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (event_ < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
}

bell::~bell() {
    ::close(event_);
}

void bell::ring() const noexcept {
    static_cast<void>(::eventfd_write(event_, 1));
}

bool bell::has_rung() const noexcept {
    ::eventfd_t rings = 0;
    return ::eventfd_read(event_, &rings) == 0;
}

waiting_room::waiting_room(ending_wish& end, reader of_output) : end_(end), reader_(of_output) {}

waiting_room::reason waiting_room::wait(std::optional<std::chrono::milliseconds> most) {
    // A pipe without a reader is ready at once and for ever: not asked about when it is all one.
    const int output = reader_ == reader::needed ? STDOUT_FILENO : -1;
    std::array<::pollfd, 3> fds{::pollfd{end_.descriptor(), POLLIN, 0},
                                ::pollfd{door_->descriptor(), POLLIN, 0}, ::pollfd{output, 0, 0}};
    ::poll(fds.data(), fds.size(), most ? static_cast<int>(most->count()) : -1);
    if (end_.signal() != 0) return reason::signal;
    if (fds[2].revents != 0) return reason::unread;
    return door_->has_rung() ? reason::change : reason::time;
}

}  // namespace trinco::program
