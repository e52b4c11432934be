#include "net/tls_stream.hpp"

#include <openssl/err.h>

#include <cstdint>
#include <string>
#include <utility>

#include "net/tls_factory.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t read_most = 64 * 1024;

// One side of the conversation waits for the other: reading may need writing and the reverse, so
// every step ends in drive(), which does what can be done now.
class tls_connection final : public std::enable_shared_from_this<tls_connection> {
public:
    tls_connection(loop& on, tls_session session, std::string protocol,
                   std::unique_ptr<byte_stream> below)
        : on_(on),
          session_(std::move(session)),
          protocol_(std::move(protocol)),
          below_(std::move(below)) {}

    void begin(completion<int> done);
    op read_some(completion<std::string_view> done);
    op write(std::string bytes, completion<std::size_t> done);
    void finish();
    void close();
    void abandon() noexcept;  // the stream is gone: nothing is answered

private:
    unless_run when_dropped();
    void drive_later();
    void drive();
    void shake();
    void decrypt();
    void want_more();
    void arrived(std::error_code error, std::string_view bytes);
    void send();
    void sent(std::error_code error);
    void fail(std::error_code error);
    void forget() noexcept;
    void answer_write(std::error_code error, std::size_t size);

    template <class T>
    op refuse(completion<T> done, std::error_code error);

    loop& on_;
    tls_session session_;
    const std::string protocol_;
    std::unique_ptr<byte_stream> below_;
    completion<int> begun_;  // while the handshake goes on
    completion<std::string_view> reading_;
    completion<std::size_t> writing_;
    std::uint64_t read_ticket_ = 0;
    std::uint64_t write_ticket_ = 0;
    std::size_t write_size_ = 0;
    bool shaken_ = false;    // the handshake is over, and its last words are on their way
    bool receives_ = false;  // a read of the stream below is pending
    bool sends_ = false;     // a write
    bool cut_off_ = false;   // the stream below has ended
    bool torn_ = false;      // a write was dropped
    bool finished_ = false;
    bool closed_ = false;
    std::error_code failed_;  // for good
    std::string plain_;       // what a completion is shown
    op receiving_;
    op sending_;
};

void tls_connection::begin(completion<int> done) {
    begun_ = std::move(done);
    drive_later();
}

// ---- what the user asks for -------------------------------------------------------------------

template <class T>
op tls_connection::refuse(completion<T> done, std::error_code error) {
    const auto held = std::make_shared<completion<T>>(std::move(done));
    on_.post([held, error] {
        if (!*held) return;
        auto call = std::move(*held);
        call(error, T{});
    });
    return op([rest = std::weak_ptr(held)] {
        if (const auto alive = rest.lock()) const auto dropped = std::move(*alive);
    });
}

op tls_connection::read_some(completion<std::string_view> done) {
    if (closed_) return refuse(std::move(done), errc::shut_down);
    if (reading_) return refuse(std::move(done), errc::busy);
    reading_ = std::move(done);
    const auto mine = ++read_ticket_;
    drive_later();
    return op([weak = weak_from_this(), mine] {
        const auto self = weak.lock();
        if (self && mine == self->read_ticket_) const auto dropped = std::move(self->reading_);
    });
}

op tls_connection::write(std::string bytes, completion<std::size_t> done) {
    if (closed_ || finished_) return refuse(std::move(done), errc::shut_down);
    if (torn_) return refuse(std::move(done), errc::canceled);
    if (writing_) return refuse(std::move(done), errc::busy);
    if (failed_) return refuse(std::move(done), failed_);
    writing_ = std::move(done);
    write_size_ = bytes.size();
    const auto mine = ++write_ticket_;
    ::ERR_clear_error();
    std::size_t taken = 0;
    if (!bytes.empty() && ::SSL_write_ex(session_.get(), bytes.data(), bytes.size(), &taken) != 1) {
        failed_ = tls_failure(*session_);
    }
    drive_later();
    return op([weak = weak_from_this(), mine] {
        const auto self = weak.lock();
        if (!self || mine != self->write_ticket_ || !self->writing_) return;
        self->torn_ = true;
        const auto dropped = std::move(self->writing_);
    });
}

void tls_connection::finish() {
    if (closed_ || std::exchange(finished_, true) || failed_) return;
    ::ERR_clear_error();
    (void)::SSL_shutdown(session_.get());
    ::ERR_clear_error();
    drive_later();
}

void tls_connection::close() {
    if (std::exchange(closed_, true)) return;
    receiving_.cancel();
    sending_.cancel();
    below_->close();
    drive_later();
}

void tls_connection::abandon() noexcept {
    closed_ = true;
    receiving_.cancel();
    sending_.cancel();
    const auto begun = std::move(begun_);
    const auto read = std::move(reading_);
    const auto written = std::move(writing_);
    below_.reset();
}

// ---- what goes on -----------------------------------------------------------------------------

void tls_connection::drive_later() {
    on_.post([weak = weak_from_this(), rest = when_dropped()]() mutable {
        rest.release();
        if (const auto self = weak.lock()) self->drive();
    });
}

unless_run tls_connection::when_dropped() {
    return unless_run([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->forget();
    });
}

void tls_connection::drive() {
    const auto alive = shared_from_this();  // completions may drop us
    if (closed_) return fail(errc::shut_down);
    if (shaken_ && begun_) {
        std::exchange(begun_, {})({}, 0);
        if (closed_) return;
    }
    if (!failed_ && begun_) shake();
    send();
    if (failed_) {
        // What was read before the failure has been given out; writing ends with it.
        if (!sends_) answer_write(failed_, 0);
        if (begun_) std::exchange(begun_, {})(failed_, 0);
    }
    if (reading_ && !begun_ && !closed_) decrypt();
}

void tls_connection::shake() {
    ::ERR_clear_error();
    const int result = ::SSL_do_handshake(session_.get());
    if (result == 1) {
        if (!speaks(*session_, protocol_)) {
            failed_ = tls_errc::other_protocol;
            return;
        }
        shaken_ = true;
        drive_later();
        return;
    }
    if (::SSL_get_error(session_.get(), result) == SSL_ERROR_WANT_READ) return want_more();
    failed_ = tls_failure(*session_);
}

void tls_connection::decrypt() {
    plain_.resize(read_most);
    std::size_t filled = 0;
    bool ended = false;
    while (filled < read_most && !ended) {
        ::ERR_clear_error();
        std::size_t n = 0;
        const int result =
            ::SSL_read_ex(session_.get(), plain_.data() + filled, read_most - filled, &n);
        filled += n;
        if (result == 1) continue;
        const int why = ::SSL_get_error(session_.get(), result);
        if (why == SSL_ERROR_WANT_READ) {
            if (filled > 0) break;
            plain_ = {};
            if (failed_) break;
            return want_more();
        }
        ended = why == SSL_ERROR_ZERO_RETURN && !failed_;
        if (!ended && !failed_) failed_ = tls_failure(*session_);
        break;
    }
    auto done = std::move(reading_);
    drive_later();  // answers of TLS itself
    if (filled > 0 || ended) {
        done({}, std::string_view(plain_.data(), filled));
    } else {
        done(failed_, {});
    }
    plain_ = {};
}

void tls_connection::want_more() {
    if (closed_) return;
    if (cut_off_) {
        failed_ = std::make_error_code(std::errc::connection_aborted);
        return drive_later();
    }
    if (std::exchange(receives_, true)) return;
    receiving_ = below_->read_some([weak = weak_from_this(), rest = when_dropped()](
                                       std::error_code error, std::string_view bytes) mutable {
        rest.release();
        if (const auto self = weak.lock()) self->arrived(error, bytes);
    });
}

void tls_connection::arrived(std::error_code error, std::string_view bytes) {
    receives_ = false;
    if (error) {
        if (!failed_) failed_ = error;
    } else if (bytes.empty()) {
        cut_off_ = true;
    } else {
        const auto size = static_cast<int>(bytes.size());  // at most 64 KiB
        if (::BIO_write(::SSL_get_rbio(session_.get()), bytes.data(), size) != size) {
            failed_ = std::make_error_code(std::errc::not_enough_memory);
        }
    }
    drive();
}

// What TLS has to say goes out, one write at a time.
void tls_connection::send() {
    if (sends_ || closed_) return;
    auto* out = ::SSL_get_wbio(session_.get());
    const auto size = ::BIO_ctrl_pending(out);
    if (size == 0) {
        if (!failed_) answer_write({}, write_size_);
        if (finished_ && !begun_ && !closed_) below_->finish();
        return;
    }
    std::string bytes(size, '\0');
    std::size_t taken = 0;
    (void)::BIO_read_ex(out, bytes.data(), bytes.size(), &taken);
    bytes.resize(taken);
    sends_ = true;
    sending_ = below_->write(std::move(bytes), [weak = weak_from_this(),
                                                rest = unless_run([weak = weak_from_this()] {
                                                    if (const auto self = weak.lock())
                                                        self->forget();
                                                })](std::error_code error, std::size_t) mutable {
        rest.release();
        if (const auto self = weak.lock()) self->sent(error);
    });
}

void tls_connection::sent(std::error_code error) {
    const auto alive = shared_from_this();
    sends_ = false;
    if (!error) return drive();
    // The peer may have said why before it went: that is read first.
    if (begun_) return want_more();
    torn_ = true;
    answer_write(error, 0);
}

void tls_connection::answer_write(std::error_code error, std::size_t size) {
    if (!writing_) return;
    auto done = std::move(writing_);
    done(error, error ? 0 : size);
}

// All that waits ends with it.
void tls_connection::fail(std::error_code error) {
    auto begun = std::move(begun_);
    auto read = std::move(reading_);
    auto written = std::move(writing_);
    if (begun) begun(error, 0);
    if (read) read(error, {});
    if (written) written(error, 0);
}

void tls_connection::forget() noexcept {
    if (closed_) return;  // we dropped it ourselves, and answer
    const auto alive = weak_from_this().lock();
    const auto begun = std::move(begun_);
    const auto read = std::move(reading_);
    const auto written = std::move(writing_);
}

class tls_stream final : public byte_stream {
public:
    explicit tls_stream(std::shared_ptr<tls_connection> what) noexcept : what_(std::move(what)) {}
    ~tls_stream() override { what_->abandon(); }
    op read_some(completion<std::string_view> done) override {
        return what_->read_some(std::move(done));
    }
    op write(std::string bytes, completion<std::size_t> done) override {
        return what_->write(std::move(bytes), std::move(done));
    }
    void finish() override { what_->finish(); }
    void close() override { what_->close(); }

private:
    std::shared_ptr<tls_connection> what_;
};

}  // namespace

op begin_tls(loop& on, tls_session session, std::string protocol,
             std::unique_ptr<byte_stream> below, completion<std::unique_ptr<byte_stream>> done) {
    auto made = std::make_shared<tls_connection>(on, std::move(session), std::move(protocol),
                                                 std::move(below));
    // The op keeps it until there is a stream that does.
    const auto held = std::make_shared<std::shared_ptr<tls_connection>>(made);
    made->begin([held, done = std::move(done)](std::error_code error, int) mutable {
        auto connection = std::exchange(*held, nullptr);
        if (!connection) return;
        done(error, error ? nullptr : std::make_unique<tls_stream>(std::move(connection)));
    });
    return op([held] { held->reset(); });
}

}  // namespace trinco::detail
