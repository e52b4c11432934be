// A move-only function object, for completions that own what they complete (std::function demands
// copies, std::move_only_function is C++23).
//
// An empty one must not be called. Small callables (six pointers) live inside; others on the heap.
// Not thread-safe: one owner at a time.
#pragma once

#include <cassert>
#include <cstddef>
#include <memory>
#include <new>
#include <type_traits>
#include <utility>

namespace trinco::detail {

template <class Signature>
class unique_function;

template <class R, class... Args>
class unique_function<R(Args...)> {
public:
    unique_function() noexcept = default;
    unique_function(std::nullptr_t) noexcept {}

    template <class F>
    requires(!std::is_same_v<std::remove_cvref_t<F>, unique_function> &&
             std::is_invocable_r_v<R, std::decay_t<F>&, Args...>) unique_function(F&& f) {
        using target = std::decay_t<F>;
        if constexpr (fits<target>) {
            ::new (static_cast<void*>(storage_)) target(std::forward<F>(f));
        } else {
            ::new (static_cast<void*>(storage_)) target*(new target(std::forward<F>(f)));
        }
        table_ = &table_of<target>;
    }

    unique_function(unique_function&& other) noexcept { take(other); }
    unique_function& operator=(unique_function&& other) noexcept {
        if (this != &other) {
            reset();
            take(other);
        }
        return *this;
    }
    unique_function(const unique_function&) = delete;
    unique_function& operator=(const unique_function&) = delete;
    ~unique_function() { reset(); }

    explicit operator bool() const noexcept { return table_ != nullptr; }

    R operator()(Args... args) {
        assert(table_ != nullptr);
        return table_->call(storage_, std::forward<Args>(args)...);
    }

    void reset() noexcept {
        if (table_ != nullptr) std::exchange(table_, nullptr)->destroy(storage_);
    }

private:
    static constexpr std::size_t capacity = 6 * sizeof(void*);

    struct table {
        R (*call)(void*, Args&&...);
        void (*move)(void* from, void* to) noexcept;
        void (*destroy)(void*) noexcept;
    };

    template <class F>
    static constexpr bool fits =
        sizeof(F) <= capacity &&
        alignof(F) <= alignof(void*) && std::is_nothrow_move_constructible_v<F>;

    template <class F>
    static F& target_of(void* storage) noexcept {
        if constexpr (fits<F>) {
            return *std::launder(static_cast<F*>(storage));
        } else {
            return **std::launder(static_cast<F**>(storage));
        }
    }

    template <class F>
    static constexpr table table_of{[](void* storage, Args&&... args) -> R {
                                        return target_of<F>(storage)(std::forward<Args>(args)...);
                                    },
                                    [](void* from, void* to) noexcept {
                                        if constexpr (fits<F>) {
                                            ::new (to) F(std::move(target_of<F>(from)));
                                            target_of<F>(from).~F();
                                        } else {
                                            ::new (to) F*(&target_of<F>(from));
                                        }
                                    },
                                    [](void* storage) noexcept {
                                        if constexpr (fits<F>) {
                                            target_of<F>(storage).~F();
                                        } else {
                                            delete &target_of<F>(storage);
                                        }
                                    }};

    void take(unique_function& other) noexcept {
        if (other.table_ == nullptr) return;
        other.table_->move(other.storage_, storage_);
        table_ = std::exchange(other.table_, nullptr);
    }

    alignas(void*) std::byte storage_[capacity];
    const table* table_ = nullptr;
};

}  // namespace trinco::detail
