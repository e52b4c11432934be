// Where a command waits that looks at a store again and again: for a change there, for a signal
// that ends it, for the end of whoever reads its output.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "apps/trinco/watching/ending_wish.hpp"

namespace trinco::program {

// Rung by the store's thread, which may do so late: share it. Rings before a wait count, once.
class bell {
public:
    bell();
    ~bell();
    bell(const bell&) = delete;
    bell& operator=(const bell&) = delete;

    void ring() const noexcept;
    [[nodiscard]] int descriptor() const noexcept { return event_; }
    // Whether it has rung since it was asked last.
    [[nodiscard]] bool has_rung() const noexcept;

private:
    int event_;
};

class waiting_room {
public:
    // Whether somebody has to read standard output: a command that only tells what it did goes on
    // when nobody does.
    enum class reader : std::uint8_t { needed, not_needed };
    waiting_room(ending_wish& end, reader of_output);

    [[nodiscard]] const std::shared_ptr<bell>& door() const noexcept { return door_; }

    enum class reason : std::uint8_t { time, change, signal, unread };
    // At most that long; nothing: however long it takes. `change`: the bell. `unread`: nobody reads
    // standard output any more.
    [[nodiscard]] reason wait(std::optional<std::chrono::milliseconds> most);

private:
    ending_wish& end_;
    const reader reader_;
    const std::shared_ptr<bell> door_ = std::make_shared<bell>();
};

}  // namespace trinco::program
