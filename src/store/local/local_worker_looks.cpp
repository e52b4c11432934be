// When the worker's thread looks at the file for its watchers: somebody rang, a descriptor is
// ready, their time has come, or a transaction of this process concerns them.
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "store/local/local_worker_core.hpp"

namespace trinco::detail {

std::vector<std::shared_ptr<local_watcher>> local_worker::core::watching() {
    const std::lock_guard hold(m);
    std::vector<std::shared_ptr<local_watcher>> all;
    std::erase_if(watchers, [&](const auto& w) {
        auto one = w.lock();
        if (one) all.push_back(std::move(one));
        return w.expired();
    });
    return all;
}

void local_worker::core::look(const local_round* after) noexcept {
    for (const auto& w : watching()) {
        try {
            if (auto job = w->look(*file, after)) {
                const std::lock_guard hold(m);
                queue.push_front(std::move(job));
            }
        } catch (const std::exception&) {
            // Trouble with the file shows in the answers to calls; here it is tried again.
            have_trouble();
        }
    }
}

bool local_worker::core::must_look(boot_clock::time_point by) noexcept {
    try {
        const auto all = watching();
        return std::any_of(all.begin(), all.end(),
                           [&](const auto& w) { return w->must_look(*file, by); });
    } catch (const std::exception&) {
        have_trouble();  // after which all look
        return false;
    }
}

// Within a transaction that only renews there is nothing to see that was not committed, and no
// other transaction has to begin for it.
void local_worker::core::look_early(const jobs& batch, local_round& after) {
    if (!after.look_early || after.look || batch.size() > 1) return;
    after.look_early = false;
    if (must_look(boot_clock::now() + looked_at_early)) look(nullptr);
}

// Calls that fail go on being carried out meanwhile, and do not put it off.
void local_worker::core::have_trouble() noexcept {
    const auto now = boot_clock::now();
    if (trouble_until <= now) trouble_until = now + retry_after_trouble;
}

void local_worker::core::listen(bool may_wait) {
    const auto now = boot_clock::now();
    const bool in_trouble = now < trouble_until;
    std::vector<::pollfd> fds{{event.get(), POLLIN, 0}};
    auto next = boot_clock::time_point::max();
    if (!mail && may_wait && !leaving) {
        if (now >= born + moment) {
            need_mail();
        } else {
            next = born + moment;
        }
    }
    if (!in_trouble && mail) fds.push_back({mail->descriptor(), POLLIN, 0});
    for (const auto& w : watching()) {
        next = std::min(next, w->next_look());
        if (!in_trouble) w->add_descriptors(fds);
    }
    if (in_trouble) next = trouble_until;
    const bool for_ever = may_wait && next == boot_clock::time_point::max();
    ::timespec left{};
    if (may_wait && !for_ever) {
        const auto d = std::max(next, now) - now;
        left.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(d).count();
        left.tv_nsec = (d % std::chrono::seconds(1)).count();
    }
    if (may_wait) at_work.unlock();
    ::ppoll(fds.data(), fds.size(), for_ever ? nullptr : &left, nullptr);
    if (may_wait) at_work.lock();
    if (fds.front().revents != 0) {
        std::uint64_t poked = 0;
        static_cast<void>(::read(event.get(), &poked, sizeof poked));
    }
    const bool ready =
        std::any_of(fds.begin() + 1, fds.end(), [](const ::pollfd& p) { return p.revents != 0; });
    if (ready && mail) mail->take_all();
    listened = boot_clock::now();
    if (ready || (listened >= next && (in_trouble || must_look(listened)))) look(nullptr);
}

std::string local_worker::stuck_on() const {
    const std::lock_guard hold(core_->m);
    return core_->stuck_on;
}

}  // namespace trinco::detail
