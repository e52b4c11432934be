// The thread that waits for gRPC, and hands over to the loop whatever happens. For grpc_*.cpp only.
//
// gRPC's callbacks would need none of it, but the threads behind these end with the last channel
// that has them (gRPC 1.51), and one that is let go in a callback waits for itself.
//
// Everything is called on the loop's thread; what happens is told there.
#pragma once

#include <grpcpp/completion_queue.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "core/loop.hpp"

namespace trinco::detail::etcd {

// Something that gRPC was asked for. Deleted when it has happened, or will not be told.
class grpc_event {
public:
    virtual ~grpc_event() = default;
    virtual void happened(bool well) = 0;
};

class grpc_engine : public std::enable_shared_from_this<grpc_engine> {
public:
    explicit grpc_engine(loop& to) : to_(&to) {}

    [[nodiscard]] grpc::CompletionQueue& queue();  // begins the thread
    // The tag of what gRPC is asked for; f(bool) runs when it has happened. It owns what it needs.
    template <class F>
    [[nodiscard]] static void* tag(F f) {
        struct event final : grpc_event {
            explicit event(F g) : run(std::move(g)) {}
            void happened(bool well) override { run(well); }
            F run;
        };
        return static_cast<grpc_event*>(new event(std::move(f)));
    }

    // Nothing is told any more, and nothing may be begun. Ends the thread when all has happened,
    // which is soon if all was cancelled; `ended` runs then.
    void close(unique_function<void()> ended);
    [[nodiscard]] bool is_closed() const noexcept { return closed_; }
    // The loop is about to go: nothing is posted to it any more. Waits that long for the thread.
    void leave_loop(std::chrono::milliseconds bound);

private:
    void run();
    void tell_end();
    void post(unique_function<void()> f);

    std::optional<grpc::CompletionQueue> queue_;  // with it gRPC begins threads of its own
    bool closed_ = false;
    unique_function<void()> ended_;
    std::mutex m_;
    std::condition_variable gone_;
    loop* to_;  // guarded by m_, as is
    bool running_ = false;
};

}  // namespace trinco::detail::etcd
