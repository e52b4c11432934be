#include "net/byte_stream.hpp"

#include <memory>
#include <utility>

#include "net/event_loop_impl.hpp"

namespace trinco::detail {
namespace {

// One read after another, until its op ends. It belongs to the read under way, so that it ends with
// whatever ends that.
class repeated_read final : public std::enable_shared_from_this<repeated_read> {
public:
    repeated_read(byte_stream& from, completion<std::string_view> each) noexcept
        : from_(&from), each_(std::move(each)) {}

    void read_on() {
        reading_ = from_->read_some(
            [self = shared_from_this()](std::error_code error, std::string_view bytes) {
                self->came(error, bytes);
            });
    }
    void end() noexcept {
        from_ = nullptr;
        reading_.cancel();
        if (!telling_) each_.reset();
    }

private:
    // The next read first: nobody else reads in between.
    void came(std::error_code error, std::string_view bytes) {
        const auto alive = shared_from_this();
        const bool over = error || bytes.empty();
        if (!over) read_on();
        telling_ = true;
        try {
            each_(error, bytes);
        } catch (...) {
            report_failure();
        }
        telling_ = false;
        if (over || from_ == nullptr) each_.reset();
    }

    byte_stream* from_;  // null: nobody is told any more
    completion<std::string_view> each_;
    op reading_;
    bool telling_ = false;
};

}  // namespace

op byte_stream::read_each(completion<std::string_view> each) {
    const auto reads = std::make_shared<repeated_read>(*this, std::move(each));
    reads->read_on();
    return op([weak = std::weak_ptr(reads)] {
        if (const auto alive = weak.lock()) alive->end();
    });
}

}  // namespace trinco::detail
