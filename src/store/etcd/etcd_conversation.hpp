// The base of a call that takes several requests: whose steps run while its op lives, and whose
// completion runs once.
//
//     class leaving : public conversation<leaving, int> {
//         void start() { request_ = link().txn(what, by_, then(&leaving::read)); }
//         void read(std::error_code error, txn_reply reply) { ... finish(error, 0); }
//     };
//     return leaving::begin(claims, by, done, ...);       // the op
//
// Every request has the call's deadline, by which the rpc answers it; so does the call.
#pragma once

#include <memory>
#include <utility>

#include "store/etcd/etcd_claims.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::etcd {

template <class Self, class Value>
class conversation : public std::enable_shared_from_this<Self> {
public:
    conversation(const conversation&) = delete;
    conversation& operator=(const conversation&) = delete;

    template <class... Args>
    [[nodiscard]] static op begin(const std::shared_ptr<claims>& known, deadline by,
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
    conversation() = default;
    ~conversation() = default;

    [[nodiscard]] claims& known() const noexcept { return *known_; }
    [[nodiscard]] const std::shared_ptr<claims>& known_ptr() const noexcept { return known_; }
    [[nodiscard]] rpc& link() const noexcept { return *known_->link(); }

    // The next step, as the completion of a request.
    template <class V>
    completion<V> then(void (Self::*step)(std::error_code, V)) {
        return [weak = this->weak_from_this(), step](std::error_code error, V value) {
            const auto self = weak.lock();
            if (!self || !self->done_ || self->known_->link() == nullptr) return;
            (self.get()->*step)(error, std::move(value));
        };
    }
    void finish(std::error_code error, Value value) {
        if (auto f = std::exchange(done_, nullptr)) f(error, std::move(value));
    }
    // Answered, or nobody wants the answer.
    [[nodiscard]] bool over() const noexcept { return !done_; }
    // Answers without having asked: in a later turn.
    void refuse(std::error_code error) {
        request_ = known_->on().at(known_->on().now(), [weak = this->weak_from_this(), error] {
            if (const auto self = weak.lock()) self->finish(error, Value{});
        });
    }

    op request_;
    deadline by_;

private:
    std::shared_ptr<claims> known_;
    completion<Value> done_;
};

}  // namespace trinco::detail::etcd
