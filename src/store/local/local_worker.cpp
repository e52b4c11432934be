#include "store/local/local_worker.hpp"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <exception>
#include <new>
#include <thread>
#include <utility>

#include "core/quoted.hpp"
#include "store/local/local_worker_core.hpp"
#include "trinco/store.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t jobs_of_a_transaction = 64;
// Under so many calls that they never cease, watchers still get their turn.
constexpr auto listen_every = 10ms;
constexpr auto end_patience = 300ms;
// About what it takes to wake the loop's thread, its caller, and the loop's thread again.
constexpr auto stay_awake = 100us;

std::string socket_beginning(const std::filesystem::path& file) {
    return file.filename().string() + "-s";
}

std::string socket_name(const std::filesystem::path& file) {
    std::uint64_t random = 0;
    if (::getentropy(&random, sizeof random) != 0) {
        throw std::system_error(errno, std::generic_category(), "no random numbers");
    }
    std::array<char, 24> hex{};
    std::snprintf(hex.data(), hex.size(), "%016llx", static_cast<unsigned long long>(random));
    return socket_beginning(file) + hex.data();
}

int open_event() {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), "eventfd");
    return fd;
}

class gate_hold {
public:
    gate_hold(local_file& file, bool needed, bool is_within = false)
        : file_(needed ? &file : nullptr) {
        if (file_ != nullptr && !is_within) file_->enter();
    }
    ~gate_hold() {
        if (file_ != nullptr) file_->leave();
    }
    gate_hold(const gate_hold&) = delete;
    gate_hold& operator=(const gate_hold&) = delete;

private:
    local_file* file_;
};

// What went wrong while `committing` or before.
std::error_code reason_of(const std::exception& e, bool committing) {
    if (const auto* s = dynamic_cast<const sqlite_error*>(&e)) {
        const bool written =
            committing && (s->code() & 0xff) == SQLITE_IOERR && s->code() != SQLITE_IOERR_WRITE;
        return written ? make_error_code(errc::unknown_outcome) : s->as_error();
    }
    return errc::unavailable;
}

}  // namespace

local_worker::core::core(local_settings settings, const std::string& shown,
                         std::span<const std::string_view> statements, stay how)
    : file(std::in_place, std::move(settings), shown),
      event(open_event()),
      socket(socket_name(file->path())),
      path(file->path().string()),
      ahead(statements),
      epoch(file->epoch()),
      changes_at_open(file->changes_at_open()),
      brief(how == stay::moment) {
    if (brief) local_mail::check(file->path().parent_path().string(), socket);
}

void local_worker::core::poke() const noexcept {
    const std::uint64_t one = 1;
    static_cast<void>(::write(event.get(), &one, sizeof one));
}

// Who locks and unlocks without a pause asks again before this thread would have fallen asleep,
// and waking it on another core takes longer than its transaction.
bool local_worker::core::work_comes_soon() {
    if (!came_soon) return false;
    const auto until = boot_clock::now() + stay_awake;
    do {
        if (asked.load(std::memory_order_acquire)) return true;
        std::this_thread::yield();
    } while (boot_clock::now() < until);
    return false;
}

// Under the lock of the queue, so that whoever asks next knows whether to wake this thread.
bool local_worker::core::may_sleep() {
    const std::lock_guard hold(m);
    asleep = queue.empty() && !ending;
    return asleep;
}

bool local_worker::core::has_work(bool& writes) {
    const std::lock_guard hold(m);
    asleep = false;
    asked.store(false, std::memory_order_relaxed);
    writes = std::any_of(queue.begin(), queue.end(), [](const auto& job) { return job->writes(); });
    return !queue.empty();
}

// Only now do they begin: whoever waited for the gate in vain has not been carried out.
local_worker::core::jobs local_worker::core::take(bool may_write) {
    jobs batch;
    const std::lock_guard hold(m);
    while (!queue.empty() && batch.size() < jobs_of_a_transaction) {
        auto& next = queue.front();
        if (!may_write && next->writes()) break;
        if (next->begin()) batch.push_back(std::move(next));
        queue.pop_front();
    }
    return batch;
}

bool local_worker::core::turn() {
    bool writes = false;
    if (!has_work(writes)) {
        {
            const std::lock_guard hold(m);
            if (ending) return false;
        }
        if (prepare_one()) return true;
        if (work_comes_soon()) return true;
        file->db().checkpoint_if_long(true);
        listen(may_sleep());
        return true;
    }
    came_soon = boot_clock::now() < idle_since + stay_awake;
    if (boot_clock::now() >= listened + listen_every) listen(false);
    return work(writes, true);
}

// False: the gate is another's, and this one must not wait.
bool local_worker::core::work(bool writes, bool may_wait) {
    if (writes && !may_wait && !file->enter_if_free()) return false;
    local_round after;
    std::error_code error;
    jobs batch;
    {
        const gate_hold gate(*file, writes, !may_wait);
        batch = take(writes);
        if (batch.empty()) return true;
        error = carry_out(batch, after);
    }
    // Others are told first: who is answered may be a program that ends at once.
    if (!error) ring(after);
    for (const auto& job : batch) job->end(error);
    if (error) {
        have_trouble();
        return true;
    }
    if (after.look || after.ring_peers) look(&after);
    if (after.look_early && must_look(boot_clock::now() + looked_at_early)) look(nullptr);
    if (may_wait) file->db().checkpoint_if_long(false);
    idle_since = boot_clock::now();
    return true;
}

// On the thread of a caller, who waits for the answer. False: the thread has something to do.
bool local_worker::core::work_here() noexcept {
    const std::unique_lock mine(at_work, std::try_to_lock);
    if (!mine || !file) return false;
    try {
        bool writes = false;
        if (!has_work(writes) || !work(writes, false)) return false;
    } catch (const std::exception&) {
        return false;  // the thread tells of it
    }
    const std::lock_guard hold(m);
    asleep = queue.empty() && !ending && !file->db().is_log_long();
    return asleep;
}

void local_worker::core::make_mail() {
    const auto tell = [this] {
        const std::lock_guard hold(m);
        is_made = true;
        made.notify_all();
    };
    try {
        mail.emplace(file->path().parent_path().string(), socket, file->rights());
    } catch (...) {
        tell();
        throw;
    }
    tell();
}

// Of a store that was opened for a moment.
void local_worker::core::need_mail() {
    if (mail) return;
    {
        const std::lock_guard hold(m);
        if (leaving) return;
        mail.emplace(file->path().parent_path().string(), socket, file->rights());
    }
    clear_away();
}

// Now and then: one in sixteen, by its random name.
void local_worker::core::clear_away() {
    if (!socket.ends_with('0')) return;
    for (auto& name : mail->remove_dead(socket_beginning(path))) gone.push_back(std::move(name));
}

// False: there is none, and nobody who will ask for anything.
bool local_worker::core::wait_for_mail() noexcept {
    const auto is_over = [this] {
        const std::lock_guard hold(m);
        return is_made;
    };
    while (!is_over() && prepare_one()) {
    }
    std::unique_lock hold(m);
    made.wait(hold, [this] { return is_made; });
    return mail.has_value();
}

// False: there is none left.
bool local_worker::core::prepare_one() noexcept {
    if (ahead.empty()) return false;
    try {
        file->db().prepare_ahead(ahead.front());
        ahead = ahead.subspan(1);
    } catch (const std::exception&) {
        ahead = {};  // what is wrong shows where it is needed
    }
    return true;
}

void local_worker::core::run() noexcept {
    ::pthread_setname_np(::pthread_self(), "trinco-local");
    const std::lock_guard working(at_work);
    if (!brief && !wait_for_mail()) return;
    bool has_cleared = brief;  // who makes his socket later does it then
    bool stuck = false;
    const auto stuck_at = [this](const char* what) {
        const std::lock_guard hold(m);
        stuck_on = what;
    };
    for (bool go_on = true; go_on;) {
        try {
            if (!std::exchange(has_cleared, true)) clear_away();
            go_on = turn();
            if (std::exchange(stuck, false)) stuck_at("");
        } catch (const std::exception& e) {
            stuck = true;
            stuck_at(e.what());
            // Who has opened it for a moment is about to be told by what he asked for.
            if (!brief && !std::exchange(complained, true)) {
                std::fprintf(stderr, "trinco: the thread of a local store goes on after: %s\n",
                             e.what());
            }
            ::poll(nullptr, 0, static_cast<int>(retry_after_trouble / 1ms));
        }
    }
    say_goodbye();
    const std::lock_guard hold(m);
    ended = true;
    over.notify_all();
}

std::error_code local_worker::core::carry_out(const jobs& batch, local_round& after) {
    std::error_code error;
    bool committing = false;
    try {
        apply(batch, after, committing);
    } catch (const std::exception& e) {
        error = reason_of(e, committing);
        replaced = !file->is_in_place();
        file->roll_back();
    }
    // Before anybody is answered: what he asks next is to find it done.
    if (!error) {
        for (auto& f : after.committed) f();
    }
    return error;
}

void local_worker::core::apply(const jobs& batch, local_round& after, bool& committing) {
    using kind = local_job::kind;
    auto needs = kind::nothing;
    for (const auto& job : batch) needs = std::max(needs, job->needs());
    if (needs >= kind::write) {
        file->begin(needs == kind::durable);
        forget_gone();
    } else if (needs == kind::read) {
        file->begin_reading();
    }
    for (const auto& job : batch) job->run(*file, after);
    look_early(batch, after);
    // Before anybody can read where to ring.
    if (after.needs_mail || after.joins_peers) need_mail();
    if (after.ring_peers) find_peers(after);
    among_peers = among_peers || after.joins_peers;
    committing = true;
    if (needs != kind::nothing) file->commit();
}

void local_worker::core::forget_gone() {
    for (const auto& name : gone) {
        if (mail && mail->ring(name)) continue;  // it had not made its socket yet
        query(file->db().prepared("DELETE FROM peers WHERE socket = ?"), name).run();
        query(file->db().prepared("DELETE FROM observers WHERE socket = ?"), name).run();
    }
    gone.clear();
}

void local_worker::core::find_peers(local_round& after) {
    query q(file->db().prepared("SELECT socket FROM peers"));
    while (q.next()) after.rings.insert(q.text(0));
}

void local_worker::core::ring(const local_round& after) noexcept {
    for (const auto& name : after.rings) {
        if (name == socket) continue;
        try {
            need_mail();
            if (mail && !mail->ring(name)) gone.push_back(name);
        } catch (const std::exception&) {
            // Who is not rung at looks by himself, and who is gone is found so another time.
        }
    }
}

void local_worker::core::say_goodbye() noexcept {
    // Only a row that says nothing: whoever rings at it removes it.
    if (among_peers) {
        try {
            const gate_hold gate(*file, true);
            file->begin(false);
            query(file->db().prepared("DELETE FROM peers WHERE socket = ?"), socket).run();
            file->commit();
        } catch (const std::exception&) {
            file->roll_back();
        }
    }
    mail.reset();
    file.reset();
}

void local_worker::begin(const std::shared_ptr<core>& what) {
    {
        const std::lock_guard hold(what->m);
        if (std::exchange(what->begun, true)) return;
    }
    // The signals of the program are for the program's threads.
    ::sigset_t all{};
    ::sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::error_code error;
    try {
        std::thread([own = what] { own->run(); }).detach();
    } catch (const std::system_error& e) {
        error = e.code();
    } catch (const std::bad_alloc&) {
        error = std::make_error_code(std::errc::not_enough_memory);
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (!error) return;
    const std::lock_guard hold(what->m);
    what->begun = false;
    what->asleep = what->brief;
    throw std::system_error(error, "no thread can be started");
}

local_worker::local_worker(local_settings settings, const std::string& shown,
                           std::span<const std::string_view> ahead, stay how) try
    : core_(std::make_shared<core>(std::move(settings), shown, ahead, how)) {
    if (core_->brief) return;
    begin(core_);
    core_->make_mail();
} catch (const open_error&) {
    throw;
} catch (const std::system_error& e) {
    const bool denied = e.code() == std::errc::permission_denied ||
                        e.code() == std::errc::operation_not_permitted ||
                        e.code() == std::errc::read_only_file_system;
    throw open_error(
        denied ? errc::denied : errc::unavailable,
        "the store " + detail::quoted(shown, 256) + " was not opened: " + e.what() +
            (denied ? "; whoever uses a store must be allowed to write to the folder" : ""));
} catch (const std::exception& e) {
    throw open_error(errc::unavailable,
                     "the store " + detail::quoted(shown, 256) + " was not opened: " + e.what());
}

local_worker::~local_worker() {
    std::unique_lock hold(core_->m);
    core_->ending = true;
    if (!core_->begun) {
        hold.unlock();
        core_->say_goodbye();
        return;
    }
    core_->poke();
    core_->over.wait_for(hold, end_patience, [this] { return core_->ended; });
}

void local_worker::submit(std::shared_ptr<local_job> job, bool may_work_here) {
    bool wake = false;
    {
        const std::lock_guard hold(core_->m);
        core_->queue.push_back(std::move(job));
        core_->asked.store(true, std::memory_order_release);
        wake = std::exchange(core_->asleep, false);
    }
    if (!wake || (may_work_here && core_->work_here())) return;
    // Where the system has no thread the call ends by its deadline, and the next one tries again.
    if (serve()) core_->poke();
}

bool local_worker::serve() noexcept {
    try {
        begin(core_);
    } catch (const std::exception&) {
        return false;
    }
    return true;
}

bool local_worker::serves() const noexcept {
    const std::lock_guard hold(core_->m);
    return core_->begun;
}

std::size_t local_worker::get_ready() noexcept {
    const std::unique_lock mine(core_->at_work, std::try_to_lock);
    std::size_t prepared = 0;
    while (mine && core_->prepare_one()) ++prepared;
    return prepared;
}

void local_worker::before_exit() noexcept {
    const std::lock_guard hold(core_->m);
    core_->leaving = true;
    if (core_->mail) core_->mail->remove();
}

void local_worker::attach(std::weak_ptr<local_watcher> watcher) {
    bool wake = false;
    {
        const std::lock_guard hold(core_->m);
        core_->watchers.push_back(std::move(watcher));
        wake = core_->begun && std::exchange(core_->asleep, false);
    }
    if (wake) core_->poke();
}

const std::string& local_worker::socket() const noexcept {
    return core_->socket;
}

const std::string& local_worker::file() const noexcept {
    return core_->path;
}

std::uint64_t local_worker::epoch() const noexcept {
    return core_->epoch;
}

bool local_worker::is_replaced() const noexcept {
    return core_->replaced;
}

std::int64_t local_worker::changes_at_open() const noexcept {
    return core_->changes_at_open;
}

}  // namespace trinco::detail
