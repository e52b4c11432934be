// The calls of one store object: from the loop to the worker and back, with deadlines.
//
// What belongs to the caller (its completion) stays on the loop's thread; the worker gets a job
// with the request's own copy and posts the answer. A call that has not begun by its deadline is
// taken out of the queue and `unavailable`; one that has begun is an unknown outcome. A call whose
// op was destroyed before it began is not carried out.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>

#include "core/loop.hpp"
#include "store/local/local_worker.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

// The way to the loop's thread for as long as the store object lives; the loop may end with it.
class local_outlet {
public:
    explicit local_outlet(loop& on) noexcept : on_(&on) {}
    // Any thread. False when it is closed: f is destroyed here.
    bool post(unique_function<void()> f) {
        const std::lock_guard hold(m_);
        if (on_ == nullptr) return false;
        on_->post(std::move(f));
        return true;
    }
    void close() noexcept {
        const std::lock_guard hold(m_);
        on_ = nullptr;
    }

private:
    std::mutex m_;
    loop* on_;
};

class local_calls : public std::enable_shared_from_this<local_calls> {
public:
    static constexpr std::size_t max_under_way = 1'024;

    // The loop must outlive the store object, which closes the outlet. `is_run_here`: whether the
    // caller of the loop's thread waits for the answer alone, and may work for it.
    local_calls(loop& on, std::shared_ptr<local_worker> worker,
                std::shared_ptr<local_outlet> outlet, std::function<bool()> is_run_here = nullptr)
        : on_(on),
          worker_(std::move(worker)),
          outlet_(std::move(outlet)),
          is_run_here_(std::move(is_run_here)) {}
    // Nobody waits any more: what has not begun is not carried out.
    ~local_calls() {
        for (const auto& one : waiting_) {
            if (one.second->job) static_cast<void>(one.second->job->drop());
        }
    }
    local_calls(const local_calls&) = delete;
    local_calls& operator=(const local_calls&) = delete;

    // Runs `request(in, after, answer)`, which returns an error or none, in a transaction.
    template <class T, class F>
    [[nodiscard]] op start(local_job::kind needs, deadline by, completion<T> done, F request) {
        std::error_code hindrance;
        if (waiting_.size() >= max_under_way) hindrance = errc::busy;
        if (by <= on_.now()) hindrance = errc::unavailable;
        const auto id = add(std::move(done));
        if (hindrance) {
            answer_later<T>(id, hindrance, T{});
        } else {
            auto job = std::make_shared<typed_job<T, F>>(needs, *this, id, std::move(request));
            auto& entry = *waiting_.at(id);
            entry.job = job;
            entry.limit = on_.at(by, [this, id] { expire<T>(id); });
            worker_->submit(job, is_run_here_ && is_run_here_());
            wait_briefly(*job);
        }
        return interest(id);
    }

    // Whether no call is under way.
    [[nodiscard]] bool idle() const noexcept { return waiting_.empty(); }

    // Answers in a later turn, without asking the worker.
    template <class T>
    [[nodiscard]] op refuse(std::error_code error, completion<T> done) {
        return answer(error, T{}, std::move(done));
    }
    template <class T>
    [[nodiscard]] op answer(std::error_code error, T value, completion<T> done) {
        const auto id = add(std::move(done));
        answer_later<T>(id, error, std::move(value));
        return interest(id);
    }

private:
    struct waiting {
        virtual ~waiting() = default;
        std::shared_ptr<local_job> job;
        op limit;
    };
    template <class T>
    struct typed_waiting final : waiting {
        explicit typed_waiting(completion<T> f) noexcept : done(std::move(f)) {}
        completion<T> done;
    };

    template <class T, class F>
    class typed_job final : public local_job {
    public:
        typed_job(kind k, local_calls& calls, std::uint64_t id, F request)
            : local_job(k),
              calls_(calls.weak_from_this()),
              outlet_(calls.outlet_),
              id_(id),
              request_(std::move(request)) {}
        void run(local_file& in, local_round& after) override {
            value_ = T{};
            error_ = request_(in, after, value_);
        }
        void finish(std::error_code error) noexcept override {
            if (!error) error = error_;
            try {
                outlet_->post(
                    [calls = calls_, id = id_, error, value = std::move(value_)]() mutable {
                        if (const auto c = calls.lock())
                            c->complete<T>(id, error, std::move(value));
                    });
            } catch (const std::exception&) {
                // No memory for the answer: the call ends at its deadline, as unknown.
            }
        }

    private:
        std::weak_ptr<local_calls> calls_;
        std::shared_ptr<local_outlet> outlet_;
        std::uint64_t id_;
        F request_;
        std::error_code error_;
        T value_{};
    };

    // Who calls without a pause is answered before this thread would have fallen asleep, and waking
    // it on another core takes as long as a transaction. With several calls under way, which share
    // a transaction, others would have to wait.
    void wait_briefly(const local_job& job) {
        const auto now = boot_clock::now();
        if (waiting_.size() > 1 || now >= answered_ + at_once) return;
        while (!job.has_ended() && boot_clock::now() < now + at_once) std::this_thread::yield();
    }

    template <class T>
    std::uint64_t add(completion<T> done) {
        const auto id = next_++;
        waiting_.emplace(id, std::make_unique<typed_waiting<T>>(std::move(done)));
        return id;
    }
    op interest(std::uint64_t id) {
        return op([weak = weak_from_this(), id]() noexcept {
            if (const auto c = weak.lock()) c->cancel(id);
        });
    }
    template <class T>
    void answer_later(std::uint64_t id, std::error_code error, T value) {
        on_.post([weak = weak_from_this(), id, error, value = std::move(value)]() mutable {
            if (const auto c = weak.lock()) c->complete<T>(id, error, std::move(value));
        });
    }
    template <class T>
    void complete(std::uint64_t id, std::error_code error, T value) {
        const auto at = waiting_.find(id);
        if (at == waiting_.end()) return;
        answered_ = boot_clock::now();
        // Taken out first: the completion may destroy its op, and the store with it.
        const auto ended = std::move(at->second);
        waiting_.erase(at);
        static_cast<typed_waiting<T>&>(*ended).done(error, error ? T{} : std::move(value));
    }
    template <class T>
    void expire(std::uint64_t id) {
        const auto at = waiting_.find(id);
        if (at == waiting_.end()) return;
        const bool begun = at->second->job && !at->second->job->drop();
        const auto self = shared_from_this();
        complete<T>(id, begun ? errc::unknown_outcome : errc::unavailable, T{});
    }
    void cancel(std::uint64_t id) noexcept {
        const auto at = waiting_.find(id);
        if (at == waiting_.end()) return;
        const auto ended = std::move(at->second);
        waiting_.erase(at);
        if (ended->job) static_cast<void>(ended->job->drop());
    }

    loop& on_;
    std::shared_ptr<local_worker> worker_;
    std::shared_ptr<local_outlet> outlet_;
    const std::function<bool()> is_run_here_;
    static constexpr std::chrono::microseconds at_once{100};
    std::uint64_t next_ = 1;
    boot_clock::time_point answered_ = boot_clock::time_point::min();  // the last call
    std::unordered_map<std::uint64_t, std::unique_ptr<waiting>> waiting_;
};

}  // namespace trinco::detail
