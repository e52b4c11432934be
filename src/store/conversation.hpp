// The base of a store's call that takes several requests: whose steps run while its op lives, and
// whose completion runs once. `Known` is what a store knows and shares: link(), which is null once
// it is stopped, and on(), its loop.
//
//     class leaving : public conversation<leaving, int> {
//         void start() { request_ = link().txn(what, by_, then(&leaving::read)); }
//         void read(std::error_code error, txn_reply reply) { ... finish(error, 0); }
//     };
//     return leaving::begin(known, by, done, ...);       // the op
//
// Every request has the call's deadline, by which the rpc answers it; so does the call.
#pragma once

#include <memory>
#include <utility>

#include "core/loop.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {

template <class Self, class Value, class Known>
class store_conversation : public std::enable_shared_from_this<Self> {
public:
    store_conversation(const store_conversation&) = delete;
    store_conversation& operator=(const store_conversation&) = delete;

    template <class... Args>
    [[nodiscard]] static op begin(const std::shared_ptr<Known>& known, deadline by,
                                  completion<Value> done, Args&&... args) {
        auto self = std::make_shared<Self>(std::forward<Args>(args)...);
        self->known_ = known;
        self->by_ = by;
        self->done_ = std::move(done);
        if (known->link() == nullptr) {
            self->refuse(errc::unavailable);
        } else {
            self->start();
        }
        return op([self]() mutable {
            self->done_ = nullptr;
            self->request_.cancel();
            self.reset();
        });
    }

protected:
    store_conversation() = default;
    ~store_conversation() = default;

    [[nodiscard]] Known& known() const noexcept { return *known_; }
    [[nodiscard]] const std::shared_ptr<Known>& known_ptr() const noexcept { return known_; }
    [[nodiscard]] auto& link() const noexcept { return *known_->link(); }

    // The next step, as the completion of a request.
    template <class V>
    completion<V> then(void (Self::*step)(std::error_code, V)) {
        return [weak = this->weak_from_this(), step](std::error_code error, V value) {
            const auto self = weak.lock();
            if (!self || !self->done_ || self->known_->link() == nullptr) return;
            (self.get()->*step)(error, std::move(value));
        };
    }
    // The same of a timer, and of what else tells nothing.
    [[nodiscard]] unique_function<void()> then(void (Self::*step)()) {
        return [weak = this->weak_from_this(), step] {
            const auto self = weak.lock();
            if (!self || !self->done_ || self->known_->link() == nullptr) return;
            (self.get()->*step)();
        };
    }
    void finish(std::error_code error, Value value) {
        if (auto f = std::exchange(done_, nullptr)) f(error, std::move(value));
    }
    // Answered, or nobody wants the answer.
    [[nodiscard]] bool over() const noexcept { return !done_; }
    // Answers without having asked: in a later turn.
    void refuse(std::error_code error) { answer(error, Value{}); }
    void answer(std::error_code error, Value value) {
        request_ = known_->on().at(known_->on().now(), [weak = this->weak_from_this(), error,
                                                        value = std::move(value)]() mutable {
            if (const auto self = weak.lock()) self->finish(error, std::move(value));
        });
    }

    op request_;
    deadline by_;

private:
    std::shared_ptr<Known> known_;
    completion<Value> done_;
};

}  // namespace trinco::detail
