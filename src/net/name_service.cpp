#include "net/name_service.hpp"

#include <netdb.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <exception>
#include <thread>
#include <utility>

#include "net/pending.hpp"
#include "net/socket_address.hpp"

namespace trinco::detail {
namespace {

constexpr int at_once = 2;

name_answer ask(const name_lookup& names, const std::string& host) noexcept {
    try {
        return names(host);
    } catch (const std::exception&) {
        return {net_errc::names_unavailable, {}};
    }
}

// Signals of the program are for the program's threads.
class no_signals {
public:
    no_signals() {
        ::sigset_t all{};
        ::sigfillset(&all);
        ::pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    no_signals(const no_signals&) = delete;
    ~no_signals() { ::pthread_sigmask(SIG_SETMASK, &before_, nullptr); }

private:
    ::sigset_t before_{};
};

}  // namespace

name_answer look_up_by_system(const std::string& host) {
    ::addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    ::addrinfo* found = nullptr;
    const int failed = ::getaddrinfo(host.c_str(), nullptr, &wanted, &found);
    if (failed == EAI_NONAME || failed == EAI_NODATA) return {net_errc::no_such_host, {}};
    if (failed != 0) return {net_errc::names_unavailable, {}};
    name_answer answer;
    for (const auto* a = found; a != nullptr; a = a->ai_next) {
        auto figures = figures_of(a->ai_addr, a->ai_addrlen);
        if (!figures.empty()) answer.addresses.push_back(std::move(figures));
    }
    ::freeaddrinfo(found);
    return answer;
}

name_service::name_service(std::shared_ptr<event_loop::impl> on, name_lookup names)
    : on_(std::move(on)), names_(std::move(names)) {
    on_->members.insert(this);
}

name_service::~name_service() {
    if (!on_->foreign()) on_->members.erase(this);
}

op name_service::resolve(const std::string& host, completion<std::vector<std::string>> done) {
    if (!on_->runs()) return {};
    const auto ticket = ++next_ticket_;
    asked_.emplace(ticket, std::move(done));
    waiting_.push_back({ticket, host});
    begin_next();
    return op([weak = weak_from_this(), ticket] {
        const auto self = weak.lock();
        if (!self || self->on_->foreign()) return;
        std::erase_if(self->waiting_, [&](const question& q) { return q.ticket == ticket; });
        const auto dropped = self->asked_.extract(ticket);
    });
}

void name_service::begin_next() {
    while (running_ < at_once && !waiting_.empty()) {
        const auto next = std::move(waiting_.front());
        waiting_.pop_front();
        ++running_;
        if (begin(next)) continue;
        on_->post([weak = weak_from_this(), ticket = next.ticket] {
            if (const auto self = weak.lock()) {
                self->answered(ticket, {net_errc::names_unavailable, {}});
            }
        });
    }
}

bool name_service::begin(const question& what) {
    const no_signals quiet;
    try {
        // It keeps nothing alive: the loop's descriptors do not wait for a name.
        std::thread([loop = std::weak_ptr(on_), weak = weak_from_this(), names = names_, what] {
            ::pthread_setname_np(::pthread_self(), "trinco-names");
            auto answer = ask(names, what.host);
            const auto on = loop.lock();
            if (!on) return;
            on->post([weak, ticket = what.ticket, answer = std::move(answer)]() mutable {
                if (const auto self = weak.lock()) self->answered(ticket, std::move(answer));
            });
        }).detach();
    } catch (const std::system_error&) {
        return false;
    }
    return true;
}

void name_service::answered(std::uint64_t ticket, name_answer answer) {
    --running_;
    begin_next();
    auto found = asked_.extract(ticket);
    if (found.empty()) return;  // nobody waits any more
    if (!answer.error && answer.addresses.empty()) answer.error = net_errc::no_such_host;
    if (answer.error) answer.addresses.clear();
    complete(std::move(found.mapped()), answer.error, std::move(answer.addresses));
}

void name_service::loop_ended() noexcept {
    const auto alive = shared_from_this();
    waiting_.clear();
    const auto dropped = std::exchange(asked_, {});
}

}  // namespace trinco::detail
