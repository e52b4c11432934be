#include "apps/trinco/process/channel.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <type_traits>

namespace trinco::program {

namespace {

static_assert(std::is_trivially_copyable_v<request>);
static_assert(std::is_trivially_copyable_v<guardian_event>);

// Below every limit of a socket's buffer.
constexpr std::size_t text_limit = 32UL * 1024;

sent outcome_of(::ssize_t result) {
    if (result >= 0) return sent::yes;
    return errno == EAGAIN ? sent::full : sent::closed;
}

sent send_packet(int channel, const request& what, std::string_view text, int descriptor,
                 int flags) {
    std::array<::iovec, 2> parts{};
    parts[0] = {const_cast<request*>(&what), sizeof what};
    parts[1] = {const_cast<char*>(text.data()), text.size()};
    ::msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    alignas(::cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    if (descriptor >= 0) {
        message.msg_control = control.data();
        message.msg_controllen = control.size();
        ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof descriptor);
        std::memcpy(CMSG_DATA(header), &descriptor, sizeof descriptor);
    }
    ::ssize_t result = -1;
    do {
        result = ::sendmsg(channel, &message, flags | MSG_NOSIGNAL);
    } while (result < 0 && errno == EINTR);
    return outcome_of(result);
}

void append(std::string& text, std::string_view string) {
    text.append(string);
    text.push_back('\0');
}

received_request next_request(int channel, int flags) {
    received_request result;
    std::array<char, text_limit> text;  // not cleared, as most requests have none
    std::array<::iovec, 2> parts{};
    parts[0] = {&result.what, sizeof result.what};
    parts[1] = {text.data(), text.size()};
    alignas(::cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    ::msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ::ssize_t size = ::recvmsg(channel, &message, flags | MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    if (size < static_cast<::ssize_t>(sizeof(request))) {
        result.what = {};
        result.closed = size >= 0 || (errno != EAGAIN && errno != EINTR);
        return result;
    }
    result.text.assign(text.data(), static_cast<std::size_t>(size) - sizeof(request));
    const ::cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS) {
        std::memcpy(&result.descriptor, CMSG_DATA(header), sizeof result.descriptor);
    }
    return result;
}

}  // namespace

channel_ends make_channel() {
    std::array<int, 2> ends{};
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()) != 0) return {};
    return {ends[0], ends[1]};
}

sent send_run(int channel, const command_spec& what) {
    std::string text;
    for (const std::string& word : what.words) append(text, word);
    for (const auto& [name, value] : what.environment) append(text, name + '=' + value);

    std::string_view rest = text;
    for (; rest.size() > text_limit; rest.remove_prefix(text_limit)) {
        const request part{.kind = request::kind_t::text};
        const sent result = send_packet(channel, part, rest.substr(0, text_limit), -1, 0);
        if (result != sent::yes) return result;
    }
    const request last{.kind = request::kind_t::run,
                       .at_act = what.at_act,
                       .words = static_cast<std::uint32_t>(what.words.size()),
                       .environment = static_cast<std::uint32_t>(what.environment.size()),
                       .until = what.until};
    return send_packet(channel, last, rest, what.keep_open, 0);
}

sent send_request(int channel, const request& what) {
    return send_packet(channel, what, {}, -1, MSG_DONTWAIT);
}

sent send_event(int channel, const guardian_event& what) {
    return outcome_of(::send(channel, &what, sizeof what, MSG_DONTWAIT | MSG_NOSIGNAL));
}

received_request receive_request(int channel) {
    return next_request(channel, 0);
}

received_request look_at_request(int channel) {
    return next_request(channel, MSG_PEEK);
}

received_event receive_event(int channel) {
    guardian_event event;
    ::ssize_t size = -1;
    do {
        size = ::recv(channel, &event, sizeof event, MSG_DONTWAIT);
        // ECONNRESET: it left without having read all that we sent; what it said still waits here.
    } while (size < 0 && (errno == EINTR || errno == ECONNRESET));
    if (size == static_cast<::ssize_t>(sizeof event)) return {.event = event, .closed = false};
    return {.event = std::nullopt, .closed = size >= 0 || errno != EAGAIN};
}

std::vector<const char*> strings_of(std::string_view text) {
    std::vector<const char*> strings;
    while (!text.empty()) {
        strings.push_back(text.data());
        text.remove_prefix(std::min(text.size(), text.find('\0') + 1));
    }
    return strings;
}

}  // namespace trinco::program
