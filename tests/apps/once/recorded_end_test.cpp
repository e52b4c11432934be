#include "apps/trinco/once/recorded_end.hpp"

#include <gtest/gtest.h>

namespace trinco::program {
namespace {

using state = detail::once_record::state_t;

recorded_end back(const recorded_end& end) {
    detail::once_record r;
    r.state = end.code == 0 ? state::done : state::failed;
    r.payload = payload_of(end);
    return end_of(r);
}

TEST(RecordedEnd, ComesBackAsItWas) {
    for (const auto& end :
         {recorded_end{0, ""}, recorded_end{0, "exit 7\nreally"}, recorded_end{7, ""},
          recorded_end{255, "a\n\nb"}, recorded_end{1, "exit 9\n"}}) {
        EXPECT_EQ(back(end), end);
    }
}

TEST(RecordedEnd, AFailureOfTheLibraryIsItsText) {
    for (const std::string text : {"card refused", "exit", "exit 0\n", "exit 999\nx", "exit 3"}) {
        detail::once_record r;
        r.state = state::failed;
        r.payload = text;
        EXPECT_EQ(end_of(r), (recorded_end{1, text}));
    }
}

}  // namespace
}  // namespace trinco::program
