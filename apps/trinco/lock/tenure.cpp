#include "apps/trinco/lock/tenure.hpp"

#include <algorithm>

namespace trinco::program {

deadlines tenure::until(const lock_look& at) {
    // In doubt about the clocks the last word stands until the next renewal: a step of the wall
    // clock must not end a command.
    if (at.held && at.valid_for.count() > 0) believed_ = at.now + at.valid_for;
    if (!at.held || at.asked_back) {
        if (!stop_) stop_ = at.now;
    }
    if (ignores_) return said_;
    if (stop_) {
        said_.end = std::max(*stop_, std::min(*stop_ + grace_, believed_));
        said_.act = *stop_;
    } else {
        said_ = {believed_ - grace_, believed_};
    }
    return said_;
}

}  // namespace trinco::program
