// A worker that was opened for a moment: who carries requests out, and when others can ring.
#include "store/local/local_worker.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/file.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <thread>

#include "store/local/local_driver.hpp"
#include "tests/store/local/scratch_folder.hpp"

namespace trinco::detail::test {
namespace {

using namespace std::chrono_literals;

class LocalWorker : public testing::Test {
protected:
    // Tells by whom it was carried out, and whether there was a socket when it was.
    class note final : public local_job {
    public:
        note(const LocalWorker& of, bool needs_mail)
            : local_job(kind::write), of_(of), needs_mail_(needs_mail) {}
        void run(local_file&, local_round& after) override {
            by = std::this_thread::get_id();
            after.needs_mail = needs_mail_;
        }
        void finish(std::error_code why) noexcept override {
            error = why;
            sockets = of_.sockets();
        }
        std::thread::id by;
        std::error_code error;
        long sockets = -1;

    private:
        const LocalWorker& of_;
        const bool needs_mail_;
    };

    template <class F>
    static bool until(F condition) {
        const auto end = boot_clock::now() + 10s;
        while (!condition()) {
            if (boot_clock::now() > end) return false;
            ::poll(nullptr, 0, 1);
        }
        return true;
    }
    [[nodiscard]] long sockets() const {
        const std::filesystem::directory_iterator all(folder_.path());
        return std::count_if(begin(all), end(all), [](const auto& e) { return e.is_socket(); });
    }
    [[nodiscard]] std::unique_ptr<local_worker> open_for_a_moment() const {
        return std::make_unique<local_worker>(local_settings_for(folder_.file()), "local:x",
                                              statements_of_a_lock(), local_worker::stay::moment);
    }
    // Whether it was done when submit came back.
    bool submit(local_worker& to, const std::shared_ptr<note>& job, bool may_work_here = true) {
        to.submit(job, may_work_here);
        return job->has_ended();
    }
    std::shared_ptr<note> make(bool needs_mail = false) const {
        return std::make_shared<note>(*this, needs_mail);
    }
    // Until its thread has nothing to do.
    void let_it_sleep(local_worker& one) {
        const auto me = std::this_thread::get_id();
        ASSERT_TRUE(until([&] {
            const auto job = make();
            return submit(one, job) && job->by == me;
        }));
    }

    scratch_folder folder_;
};

TEST_F(LocalWorker, WhoWaitsForNothingElseWorksWhileTheThreadSleeps) {
    const auto one = open_for_a_moment();
    let_it_sleep(*one);
    const auto job = make();
    EXPECT_FALSE(submit(*one, job, false) && job->by == std::this_thread::get_id());
    ASSERT_TRUE(until([&] { return job->has_ended(); }));
    EXPECT_NE(job->by, std::this_thread::get_id());
    EXPECT_FALSE(job->error);
}

TEST_F(LocalWorker, HasNoThreadBeforeItIsNeeded) {
    const auto one = open_for_a_moment();
    const auto job = make();
    EXPECT_TRUE(submit(*one, job));
    EXPECT_EQ(job->by, std::this_thread::get_id());
    EXPECT_FALSE(one->serves());
    EXPECT_EQ(job->sockets, 0);
    const auto other = make();
    submit(*one, other, false);
    EXPECT_TRUE(one->serves());
    ASSERT_TRUE(until([&] { return other->has_ended(); }));
    EXPECT_NE(other->by, std::this_thread::get_id());
    let_it_sleep(*one);
}

TEST_F(LocalWorker, GetsReadyOnceByWhoHasTime) {
    const auto one = open_for_a_moment();
    EXPECT_EQ(one->get_ready(), statements_of_a_lock().size());
    EXPECT_EQ(one->get_ready(), 0U);
    const auto other = open_for_a_moment();
    const auto job = make();
    submit(*other, job, false);
    ASSERT_TRUE(until([&] { return job->has_ended(); }));
    let_it_sleep(*other);
    EXPECT_EQ(other->get_ready(), 0U) << "the thread has done so";
}

TEST_F(LocalWorker, NobodyIsKeptWaitingAtTheGate) {
    const auto one = open_for_a_moment();
    let_it_sleep(*one);
    const owned_descriptor gate(
        ::open((folder_.file().string() + "-gate").c_str(), O_RDWR | O_CLOEXEC));
    ASSERT_EQ(::flock(gate.get(), LOCK_EX), 0);
    const auto job = make();
    EXPECT_FALSE(submit(*one, job));
    EXPECT_FALSE(job->has_ended());
    ASSERT_EQ(::flock(gate.get(), LOCK_UN), 0);
    ASSERT_TRUE(until([&] { return job->has_ended(); }));
    EXPECT_NE(job->by, std::this_thread::get_id());
    EXPECT_FALSE(job->error);
    let_it_sleep(*one);
}

TEST_F(LocalWorker, ASocketIsMadeBeforeSomebodyMayRing) {
    const auto one = open_for_a_moment();
    const auto job = make(true);
    submit(*one, job);
    ASSERT_TRUE(until([&] { return job->has_ended(); }));
    EXPECT_EQ(job->sockets, 1);
}

TEST_F(LocalWorker, ASocketIsMadeAfterAWhileByWhoServes) {
    const auto one = open_for_a_moment();
    EXPECT_TRUE(one->serve());
    EXPECT_TRUE(until([&] { return sockets() == 1; }));
    one->before_exit();
    EXPECT_EQ(sockets(), 0);
}

TEST_F(LocalWorker, WhoLeavesMakesNone) {
    const auto one = open_for_a_moment();
    one->before_exit();
    EXPECT_TRUE(one->serve());
    ::poll(nullptr, 0, 60);
    EXPECT_EQ(sockets(), 0);
    let_it_sleep(*one);
}

TEST_F(LocalWorker, WhoStaysHasOneFromTheBeginning) {
    const local_worker one(local_settings_for(folder_.file()), "local:x");
    EXPECT_EQ(sockets(), 1);
}

}  // namespace
}  // namespace trinco::detail::test
