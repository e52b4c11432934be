// Reading all that comes, by the socket's own way and one read after another, as every stream has
// it.
#include <memory>
#include <stdexcept>
#include <vector>

#include "net/socket_stream.hpp"
#include "stream_harness.hpp"
#include "trinco/error.hpp"

namespace trinco::detail::test {
namespace {

// A stream that knows single reads only.
class one_by_one final : public byte_stream {
public:
    explicit one_by_one(stream_ptr over) : over_(std::move(over)) {}
    op read_some(completion<std::string_view> done) override {
        return over_->read_some(std::move(done));
    }
    op write(std::string bytes, completion<std::size_t> done) override {
        return over_->write(std::move(bytes), std::move(done));
    }
    void finish() override { over_->finish(); }
    void close() override { over_->close(); }

private:
    stream_ptr over_;
};

class ReadingOn : public stream_test, public testing::WithParamInterface<bool> {
protected:
    void SetUp() override {
        connect_both();
        if (GetParam()) near_ = std::make_unique<one_by_one>(std::move(near_));
    }
    void TearDown() override {
        on_loop([this] { reading_.cancel(); });
    }

    // On the loop: notes all, and says when what came is as long as was wanted, or the end.
    void note(std::error_code error, std::string_view bytes) {
        const std::lock_guard hold(m_);
        all_ += bytes;
        if (error) errors_.push_back(error);
        if (!error && bytes.empty()) ++ends_;
        changed_.notify_all();
    }
    void read_on() {
        on_loop([this] {
            reading_ = near_->read_each(
                [this](std::error_code error, std::string_view bytes) { note(error, bytes); });
        });
    }
    template <class F>
    [[nodiscard]] bool until(F f) {
        std::unique_lock hold(m_);
        return changed_.wait_for(hold, patience, f);
    }

    op reading_;
    std::mutex m_;
    std::condition_variable changed_;
    std::string all_;
    std::vector<std::error_code> errors_;
    int ends_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Streams, ReadingOn, testing::Bool(),
                         [](const auto& how) { return how.param ? "one_by_one" : "by_itself"; });

TEST_P(ReadingOn, tells_all_that_comes_in_order_and_the_end_once) {
    read_on();
    std::string sent;
    for (int i = 0; i < 300; ++i) {
        const auto part = std::to_string(i) + " ";
        sent += part;
        write(*far_, part);
    }
    ASSERT_TRUE(until([&] { return all_.size() == sent.size(); }));
    EXPECT_EQ(all_, sent);
    EXPECT_EQ(ends_, 0);
    on_loop([this] { far_.reset(); });
    ASSERT_TRUE(until([&] { return ends_ > 0; }));
    settle();
    EXPECT_EQ(ends_, 1);
    EXPECT_TRUE(errors_.empty());
    // It is over: whoever reads now reads the end again.
    EXPECT_EQ(read(*near_), "");
}

TEST_P(ReadingOn, what_comes_after_its_op_was_dropped_inside_is_the_next_reads) {
    on_loop([this] {
        reading_ = near_->read_each([this](std::error_code error, std::string_view bytes) {
            reading_.cancel();
            note(error, bytes);
        });
    });
    write(*far_, "1");
    ASSERT_TRUE(until([&] { return all_ == "1"; }));
    write(*far_, "2");
    settle();
    EXPECT_EQ(all_, "1");
    EXPECT_EQ(read(*near_), "2");
}

TEST_P(ReadingOn, a_dropped_one_is_told_nothing_and_a_new_one_all_the_rest) {
    read_on();
    write(*far_, "1");
    ASSERT_TRUE(until([&] { return all_ == "1"; }));
    on_loop([this] {
        reading_.cancel();
        reading_ = near_->read_each([this](std::error_code error, std::string_view bytes) {
            note(error, "(" + std::string(bytes) + ")");
        });
    });
    write(*far_, "2");
    ASSERT_TRUE(until([&] { return all_ == "1(2)"; }));
    write(*far_, "3");
    EXPECT_TRUE(until([&] { return all_ == "1(2)(3)"; }));
}

TEST_P(ReadingOn, another_takes_its_place_inside_it) {
    on_loop([this] {
        reading_ = near_->read_each([this](std::error_code, std::string_view bytes) {
            const std::string kept(bytes);  // the function that holds nothing else ends below
            auto* const self = this;
            reading_.cancel();
            self->reading_ =
                self->near_->read_each([self](std::error_code error, std::string_view more) {
                    self->note(error, "(" + std::string(more) + ")");
                });
            self->note({}, kept);
        });
    });
    write(*far_, "1");
    ASSERT_TRUE(until([&] { return all_ == "1"; }));
    for (const auto* part : {"2", "3"}) write(*far_, part);
    EXPECT_TRUE(until([&] { return all_ == "1(2)(3)" || all_ == "1(23)"; }));
}

TEST_P(ReadingOn, nothing_else_is_read_meanwhile) {
    read_on();
    EXPECT_EQ(read(*near_, errc::busy), "");
    write(*far_, "1");
    ASSERT_TRUE(until([&] { return all_ == "1"; }));
    EXPECT_EQ(read(*near_, errc::busy), "");
    write(*far_, "2");
    EXPECT_TRUE(until([&] { return all_ == "12"; }));
}

TEST_P(ReadingOn, nothing_else_is_read_inside_it) {
    awaited<std::string> second;
    op other;
    on_loop([&] {
        reading_ = near_->read_each([&](std::error_code error, std::string_view bytes) {
            if (all_.empty()) other = near_->read_some(second.next<std::string_view>());
            note(error, bytes);
        });
    });
    write(*far_, "1");
    ASSERT_TRUE(second.wait());
    EXPECT_EQ(second.error(), errc::busy);
    write(*far_, "2");
    EXPECT_TRUE(until([&] { return all_ == "12"; }));
    on_loop([&] { other.cancel(); });
}

TEST_P(ReadingOn, may_end_its_stream) {
    const auto witness = std::make_shared<int>(0);
    long owners = 0;
    on_loop([&, witness] {
        reading_ = near_->read_each([&, witness](std::error_code error, std::string_view bytes) {
            reading_.cancel();
            near_.reset();
            owners = witness.use_count();
            note(error, bytes);
        });
    });
    write(*far_, "x");
    ASSERT_TRUE(until([&] { return all_ == "x"; }));
    EXPECT_EQ(owners, 2);  // what it owns is there until it returns
    EXPECT_EQ(read(*far_), "");
    settle();
    EXPECT_EQ(witness.use_count(), 1);  // what it owned is gone
}

TEST_P(ReadingOn, a_stream_that_is_closed_says_so_also_inside) {
    on_loop([this] {
        reading_ = near_->read_each([this](std::error_code error, std::string_view bytes) {
            if (!error) near_->close();
            note(error, bytes);
        });
    });
    write(*far_, "x");
    ASSERT_TRUE(until([&] { return !errors_.empty(); }));
    settle();
    EXPECT_EQ(errors_, std::vector{make_error_code(errc::shut_down)});
    EXPECT_EQ(all_, "x");
}

TEST_P(ReadingOn, one_that_waits_hears_of_the_close) {
    read_on();
    on_loop([this] { near_->close(); });
    ASSERT_TRUE(until([&] { return !errors_.empty(); }));
    settle();
    EXPECT_EQ(errors_, std::vector{make_error_code(errc::shut_down)});
}

TEST_P(ReadingOn, an_exception_is_reported_and_the_next_bytes_are_told) {
    on_loop([this] {
        reading_ = near_->read_each([this](std::error_code error, std::string_view bytes) {
            note(error, bytes);
            if (bytes == "1") throw std::runtime_error("on purpose");
        });
    });
    testing::internal::CaptureStderr();
    write(*far_, "1");
    ASSERT_TRUE(until([&] { return all_ == "1"; }));
    settle();
    EXPECT_NE(testing::internal::GetCapturedStderr().find("on purpose"), std::string::npos);
    write(*far_, "2");
    EXPECT_TRUE(until([&] { return all_ == "12"; }));
}

TEST_P(ReadingOn, a_stopped_loop_destroys_it) {
    const auto witness = std::make_shared<int>(0);
    on_loop([this, witness] {
        reading_ = near_->read_each(
            [this, witness](std::error_code error, std::string_view bytes) { note(error, bytes); });
    });
    EXPECT_EQ(witness.use_count(), 2);
    on_->stop(patience);
    EXPECT_EQ(witness.use_count(), 1);
    reading_.cancel();
    EXPECT_TRUE(errors_.empty());
    near_.reset();
    far_.reset();
    listener_.reset();
    factory_.reset();
    open("another");
}

TEST(ReadingOnWithoutAThread, ends_with_the_loop_that_it_stops) {
    event_loop on;
    int ends[2];
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    const plain_socket far(ends[1]);
    std::error_code error;
    const auto near = make_socket_stream(loop_access::inside(on), own_descriptor(ends[0]), error);
    ASSERT_EQ(error, std::error_code());
    const auto witness = std::make_shared<int>(0);
    const op reading = near->read_each([&, witness](std::error_code, std::string_view) {
        ++*witness;
        on.stop(patience);
    });
    ASSERT_EQ(::send(far.get(), "x", 1, MSG_NOSIGNAL), 1);
    on.run_here([&] { return *witness > 0; }, on.now() + patience);
    EXPECT_EQ(*witness, 1);
    EXPECT_EQ(witness.use_count(), 1);
}

}  // namespace
}  // namespace trinco::detail::test
