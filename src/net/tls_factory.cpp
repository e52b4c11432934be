#include "net/tls_factory.hpp"

#include <string>
#include <utility>

#include "net/tls_session.hpp"
#include "net/tls_stream.hpp"
#include "trinco/error.hpp"

namespace trinco::detail {
namespace {

// One connection, from the stream below to the one with TLS. Its op owns it.
class tls_attempt final : public std::enable_shared_from_this<tls_attempt> {
public:
    tls_attempt(loop& on, tls_session session, std::string protocol,
                completion<std::unique_ptr<byte_stream>> done)
        : on_(on),
          session_(std::move(session)),
          protocol_(std::move(protocol)),
          done_(std::move(done)) {}

    void start(stream_factory& below, const stream_address& to, deadline by) {
        by_ = by;
        connecting_ =
            below.connect(to, by,
                          [weak = weak_from_this(), rest = unless_run([weak = weak_from_this()] {
                                                        if (const auto self = weak.lock())
                                                            self->drop();
                                                    })](std::error_code error,
                                                        std::unique_ptr<byte_stream> made) mutable {
                              rest.release();
                              const auto self = weak.lock();
                              if (!self || !self->done_) return;
                              if (error) return self->end(error, nullptr);
                              self->shake(std::move(made));
                          });
    }

    void drop() {
        const auto dropped = std::move(done_);
        connecting_.cancel();
        timer_.cancel();
        shaking_.cancel();
    }

private:
    void shake(std::unique_ptr<byte_stream> below) {
        timer_ = on_.at(by_, [this] { end(std::make_error_code(std::errc::timed_out), nullptr); });
        shaking_ = begin_tls(
            on_, std::move(session_), std::move(protocol_), std::move(below),
            [weak = weak_from_this()](std::error_code error, std::unique_ptr<byte_stream> made) {
                const auto self = weak.lock();
                if (self) self->end(error, std::move(made));
            });
    }

    void end(std::error_code error, std::unique_ptr<byte_stream> made) {
        if (!done_) return;
        const auto alive = shared_from_this();
        auto done = std::move(done_);
        drop();
        done(error, std::move(made));
    }

    loop& on_;
    tls_session session_;
    std::string protocol_;
    completion<std::unique_ptr<byte_stream>> done_;
    deadline by_{};
    op connecting_;
    op timer_;
    op shaking_;
};

class tls_factory final : public stream_factory {
public:
    tls_factory(loop& on, stream_factory& below) : on_(on), below_(below) {}
    tls_factory(loop& on, std::unique_ptr<stream_factory> below)
        : on_(on), owned_(std::move(below)), below_(*owned_) {}

    op connect(const stream_address& to, deadline by,
               completion<std::unique_ptr<byte_stream>> done) override {
        if (!to.tls) return below_.connect(to, by, std::move(done));
        std::error_code error;
        const auto& how = *to.tls;
        const auto& name = how.server_name.empty() ? to.host : how.server_name;
        if (name.empty() && how.verify) error = tls_errc::no_name;
        auto* const context = error ? nullptr : context_of(how, error);
        if (error) return refuse(error, std::move(done));
        const auto made = std::make_shared<tls_attempt>(
            on_, make_tls_session(*context, name, how.verify, how.protocol), how.protocol,
            std::move(done));
        auto plain = to;
        plain.tls.reset();
        made->start(below_, plain, by);
        return op([made] { made->drop(); });
    }

    std::unique_ptr<stream_listener> listen(const stream_address& at,
                                            std::error_code& error) override {
        return below_.listen(at, error);
    }

private:
    // Reading what the system believes takes long, so it is kept; named files are read again. The
    // result lives until the next call.
    SSL_CTX* context_of(const tls_settings& how, std::error_code& error) {
        const bool by_system = how.verify && how.ca_file.empty();
        auto& kept = by_system ? believing_system_ : believing_anybody_;
        if (how.ca_file.empty() && !kept) {
            kept = make_tls_context({.verify = how.verify}, error);
            if (error) return nullptr;
        }
        if (how.ca_file.empty() && how.certificate_file.empty()) return kept.get();
        of_files_ = make_tls_context(how, error, by_system ? kept.get() : nullptr);
        return of_files_.get();
    }

    op refuse(std::error_code error, completion<std::unique_ptr<byte_stream>> done) {
        return on_.at(on_.now(), [error, d = std::move(done)]() mutable { d(error, nullptr); });
    }

    loop& on_;
    const std::unique_ptr<stream_factory> owned_;
    stream_factory& below_;
    tls_context believing_system_;
    tls_context believing_anybody_;
    tls_context of_files_;
};

}  // namespace

std::unique_ptr<stream_factory> make_tls_factory(loop& on, stream_factory& below) {
    return std::make_unique<tls_factory>(on, below);
}

std::unique_ptr<stream_factory> make_tls_factory(loop& on, std::unique_ptr<stream_factory> below) {
    return std::make_unique<tls_factory>(on, std::move(below));
}

}  // namespace trinco::detail
