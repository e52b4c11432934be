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
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <thread>
#include <utility>

#include "core/quoted.hpp"
#include "store/local/local_mail.hpp"
#include "trinco/store.hpp"

namespace trinco::detail {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t jobs_of_a_transaction = 64;
constexpr auto retry_after_trouble = 200ms;
// Under so many calls that they never cease, watchers still get their turn.
constexpr auto listen_every = 10ms;
constexpr auto end_patience = 300ms;
// A third of the usual TTL: a look that would wake a waiting process before its next renewal
// follows this one, and costs little then.
constexpr auto looked_at_early = 5s;
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
    gate_hold(local_file& file, bool needed) : file_(needed ? &file : nullptr) {
        if (file_ != nullptr) file_->enter();
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

struct local_worker::core {
    core(local_settings settings, const std::string& shown)
        : file(std::in_place, std::move(settings), shown),
          event(open_event()),
          mail(std::in_place, file->path().parent_path().string(), socket_name(file->path()),
               file->rights()),
          socket(mail->name()),
          path(file->path().string()),
          epoch(file->epoch()),
          changes_at_open(file->changes_at_open()) {}

    using jobs = std::vector<std::shared_ptr<local_job>>;

    void run() noexcept;
    // False at the end.
    bool turn();
    bool has_work(bool& writes);
    jobs take(bool may_write);
    std::error_code carry_out(const jobs& batch, local_round& after);
    void apply(const jobs& batch, local_round& after, bool& committing);
    void forget_gone();
    void find_peers(local_round& after);
    void ring(const local_round& after) noexcept;
    void look(const local_round* after) noexcept;
    [[nodiscard]] bool is_looked_at_soon();
    void listen(bool may_wait);
    void have_trouble() noexcept;
    void say_goodbye() noexcept;
    void poke() const noexcept;
    bool work_comes_soon();
    bool may_sleep();
    [[nodiscard]] std::vector<std::shared_ptr<local_watcher>> watching();

    // The worker's thread, after the constructor.
    std::optional<local_file> file;
    const owned_descriptor event;
    std::optional<local_mail> mail;
    const std::string socket;
    const std::string path;
    const std::uint64_t epoch;
    const std::int64_t changes_at_open;
    std::vector<std::string> gone;  // peers that do not answer any more
    bool among_peers = false;
    // Until then nothing is a reason to look: what was found could not be changed.
    boot_clock::time_point trouble_until = boot_clock::time_point::min();
    boot_clock::time_point listened = boot_clock::time_point::min();
    boot_clock::time_point idle_since = boot_clock::time_point::min();
    bool came_soon = false;  // the last job, after this thread had run out of jobs
    bool complained = false;
    std::atomic<bool> replaced = false;

    std::mutex m;
    std::condition_variable over;
    std::deque<std::shared_ptr<local_job>> queue;
    std::atomic<bool> asked = false;  // since the queue was looked at
    bool asleep = false;              // the thread; must be woken
    std::vector<std::weak_ptr<local_watcher>> watchers;
    bool ending = false;
    bool ended = false;
};

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
        if (work_comes_soon()) return true;
        file->db().checkpoint_if_long(true);
        listen(may_sleep());
        return true;
    }
    came_soon = boot_clock::now() < idle_since + stay_awake;
    if (boot_clock::now() >= listened + listen_every) listen(false);
    local_round after;
    std::error_code error;
    jobs batch;
    {
        const gate_hold gate(*file, writes);
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
    if (after.look_early && is_looked_at_soon()) look(nullptr);
    file->db().checkpoint_if_long(false);
    idle_since = boot_clock::now();
    return true;
}

void local_worker::core::run() noexcept {
    ::pthread_setname_np(::pthread_self(), "trinco-local");
    // Now and then: one in sixteen, by its random name.
    if (socket.ends_with('0')) gone = mail->remove_dead(socket_beginning(path));
    for (bool go_on = true; go_on;) {
        try {
            go_on = turn();
        } catch (const std::exception& e) {
            if (!std::exchange(complained, true)) {
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
    if (after.ring_peers) find_peers(after);
    among_peers = among_peers || after.joins_peers;
    committing = true;
    if (needs != kind::nothing) file->commit();
}

void local_worker::core::forget_gone() {
    for (const auto& name : gone) {
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
        if (name == mail->name() || mail->ring(name)) continue;
        try {
            gone.push_back(name);
        } catch (const std::bad_alloc&) {
            // Then it is found gone another time.
        }
    }
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

bool local_worker::core::is_looked_at_soon() {
    const auto soon = boot_clock::now() + looked_at_early;
    const auto all = watching();
    return std::any_of(all.begin(), all.end(),
                       [&](const auto& w) { return w->next_look() <= soon; });
}

// Calls that fail go on being carried out meanwhile, and do not put it off.
void local_worker::core::have_trouble() noexcept {
    const auto now = boot_clock::now();
    if (trouble_until <= now) trouble_until = now + retry_after_trouble;
}

void local_worker::core::listen(bool may_wait) {
    const auto now = boot_clock::now();
    const bool in_trouble = now < trouble_until;
    listened = now;
    std::vector<::pollfd> fds{{event.get(), POLLIN, 0}};
    auto next = boot_clock::time_point::max();
    if (!in_trouble) fds.push_back({mail->descriptor(), POLLIN, 0});
    for (const auto& w : watching()) {
        next = std::min(next, w->next_look());
        if (!in_trouble) w->add_descriptors(fds);
    }
    if (in_trouble) next = trouble_until;
    const bool for_ever = may_wait && next == boot_clock::time_point::max();
    ::timespec left{};
    if (may_wait && !for_ever) {
        const auto d = std::max(next - now, boot_clock::duration(0));
        left.tv_sec = std::chrono::duration_cast<std::chrono::seconds>(d).count();
        left.tv_nsec = (d % 1s).count();
    }
    ::ppoll(fds.data(), fds.size(), for_ever ? nullptr : &left, nullptr);
    if (fds.front().revents != 0) {
        std::uint64_t poked = 0;
        static_cast<void>(::read(event.get(), &poked, sizeof poked));
    }
    const bool ready =
        std::any_of(fds.begin() + 1, fds.end(), [](const ::pollfd& p) { return p.revents != 0; });
    if (ready) mail->take_all();
    if (ready || boot_clock::now() >= next) look(nullptr);
}

void local_worker::core::say_goodbye() noexcept {
    // Only a row that says nothing: whoever rings at it removes it.
    if (among_peers) {
        try {
            const gate_hold gate(*file, true);
            file->begin(false);
            query(file->db().prepared("DELETE FROM peers WHERE socket = ?"), mail->name()).run();
            file->commit();
        } catch (const std::exception&) {
            file->roll_back();
        }
    }
    mail.reset();
    file.reset();
}

local_worker::local_worker(local_settings settings, const std::string& shown) try
    : core_(std::make_shared<core>(std::move(settings), shown)) {
    // The signals of the program are for the program's threads.
    ::sigset_t all{};
    ::sigset_t before{};
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    std::error_code error;
    try {
        std::thread([own = core_] { own->run(); }).detach();
    } catch (const std::system_error& e) {
        error = e.code();
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (error) throw std::system_error(error, "no thread can be started");
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
    core_->poke();
    core_->over.wait_for(hold, end_patience, [this] { return core_->ended; });
}

void local_worker::submit(std::shared_ptr<local_job> job) {
    bool wake = false;
    {
        const std::lock_guard hold(core_->m);
        core_->queue.push_back(std::move(job));
        core_->asked.store(true, std::memory_order_release);
        wake = std::exchange(core_->asleep, false);
    }
    if (wake) core_->poke();
}

void local_worker::before_exit() noexcept {
    core_->mail->remove();
}

void local_worker::attach(std::weak_ptr<local_watcher> watcher) {
    {
        const std::lock_guard hold(core_->m);
        core_->watchers.push_back(std::move(watcher));
    }
    core_->poke();
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
