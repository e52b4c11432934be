#include "store/etcd/grpc_engine.hpp"

#include <pthread.h>

#include <thread>

namespace trinco::detail::etcd {

grpc::CompletionQueue& grpc_engine::queue() {
    if (!queue_) {
        queue_.emplace();
        running_ = true;
        std::thread([self = shared_from_this()] { self->run(); }).detach();
    }
    return *queue_;
}

void grpc_engine::run() {
    ::pthread_setname_np(::pthread_self(), "trinco-grpc");
    void* tag = nullptr;
    for (bool well = false; queue_->Next(&tag, &well);) {
        post([self = shared_from_this(), well,
              event = std::unique_ptr<grpc_event>(static_cast<grpc_event*>(tag))] {
            if (!self->closed_) event->happened(well);
        });
    }
    post([self = shared_from_this()] { self->tell_end(); });
    const std::lock_guard hold(m_);
    running_ = false;
    gone_.notify_all();
}

void grpc_engine::tell_end() {
    if (auto ended = std::exchange(ended_, nullptr)) ended();
}

void grpc_engine::post(unique_function<void()> f) {
    const std::lock_guard hold(m_);
    if (to_ != nullptr) to_->post(std::move(f));
}

void grpc_engine::close(unique_function<void()> ended) {
    ended_ = std::move(ended);
    const bool first = !std::exchange(closed_, true);
    if (queue_ && first) queue_->Shutdown();
    if (!queue_) post([self = shared_from_this()] { self->tell_end(); });
}

void grpc_engine::leave_loop(std::chrono::milliseconds bound) {
    std::unique_lock hold(m_);
    to_ = nullptr;
    gone_.wait_for(hold, bound, [this] { return !running_; });
}

}  // namespace trinco::detail::etcd
