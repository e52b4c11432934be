#include "net/http_client.hpp"

#include <algorithm>
#include <list>
#include <optional>
#include <set>
#include <utility>
#include <variant>

#include "wire/http1/http_reader.hpp"
#include "wire/http1/http_writer.hpp"

namespace trinco::detail {
namespace {

// A connection that waits for its next call.
struct kept_connection {
    std::unique_ptr<byte_stream> stream;
    boot_clock::time_point since;
    op watch;  // anything that comes, an end above all, makes it useless
};

class pending_call {
public:
    virtual void drop() = 0;

protected:
    ~pending_call() = default;
};

std::errc code_of(const http_fault& fault) {
    using kind = http_fault::kind_t;
    const bool is_too_big = fault.kind == kind::header_too_big || fault.kind == kind::body_too_big;
    return is_too_big ? std::errc::message_size : std::errc::protocol_error;
}

bool may_be_repeated(const http_request& request) {
    return request.method == "GET" || request.method == "HEAD";
}

}  // namespace

struct http_client::impl : std::enable_shared_from_this<http_client::impl> {
    impl(loop& l, stream_factory& s, const stream_address& to, const http_client_options& o)
        : on(l), streams(s), server(to), options(o) {}

    loop& on;
    stream_factory& streams;
    const stream_address server;
    const http_client_options options;
    std::list<kept_connection> kept;  // the last used at the end
    std::set<pending_call*> calls;

    [[nodiscard]] std::unique_ptr<byte_stream> take();
    void keep(std::unique_ptr<byte_stream> stream);

private:
    void forget_old();
    void wait_for_oldest();

    op oldest_;  // while some are kept, its time or an earlier one
};

std::unique_ptr<byte_stream> http_client::impl::take() {
    forget_old();
    if (kept.empty()) return nullptr;
    auto stream = std::move(kept.back().stream);
    kept.pop_back();
    return stream;
}

void http_client::impl::keep(std::unique_ptr<byte_stream> stream) {
    if (options.kept == 0) return;
    const bool is_first = kept.empty();
    if (kept.size() == options.kept) kept.pop_front();
    kept.push_back({std::move(stream), on.now(), {}});
    const auto place = std::prev(kept.end());
    place->watch = place->stream->read_some([weak = weak_from_this(), place](auto, auto) {
        if (const auto self = weak.lock()) self->kept.erase(place);
    });
    if (is_first) wait_for_oldest();
}

void http_client::impl::forget_old() {
    const auto oldest = on.now() - options.kept_for;
    std::erase_if(kept, [&](const kept_connection& one) { return one.since <= oldest; });
}

void http_client::impl::wait_for_oldest() {
    if (kept.empty()) return;
    oldest_ = on.at(kept.front().since + options.kept_for, [this] {
        forget_old();
        wait_for_oldest();
    });
}

namespace {

// One call, from its start to its answer.
template <class Client>
class http_call final : public pending_call,
                        public std::enable_shared_from_this<http_call<Client>> {
public:
    http_call(const std::shared_ptr<Client>& client, http_request request,
              unique_function<void(http_answer)> done)
        : client_(client),
          on_(client->on),
          repeatable_(may_be_repeated(request)),
          keep_(request.keep_alive),
          head_(request.method == "HEAD"),
          done_(std::move(done)),
          reader_(client->options.limits) {
        client->calls.insert(this);
        if (field_of(request.fields, "Host").empty()) {
            const auto& to = client->server;
            const bool local = to.kind == stream_address::kind_t::local;
            request.fields.insert(request.fields.begin(),
                                  {"Host", local ? "localhost" : text_of(to)});
        }
        auto written = bytes_of(request);
        if (const auto* fault = std::get_if<http_fault>(&written)) {
            unwritable_ = fault->sentence;
        } else {
            bytes_ = std::move(std::get<std::string>(written));
        }
    }

    http_call(const http_call&) = delete;
    ~http_call() {
        if (const auto client = client_.lock()) client->calls.erase(this);
    }

    void start(deadline by) {
        const auto client = client_.lock();
        if (!client) return;
        by_ = by;
        timer_ = on_.at(by, [this] { fail(std::errc::timed_out, "no answer in time"); });
        if (!unwritable_.empty()) return fail(std::errc::invalid_argument, unwritable_);
        if (auto stream = client->take()) {
            reused_ = true;
            return use(std::move(stream));
        }
        connect();
    }

    void drop() override {
        const auto alive = this->shared_from_this();
        const auto dropped = std::move(done_);
        release();
    }

private:
    void connect() {
        const auto client = client_.lock();
        if (!client) return;
        connecting_ = client->streams.connect(
            client->server, by_,
            [this](std::error_code error, std::unique_ptr<byte_stream> stream) {
                const auto alive = this->shared_from_this();
                if (error) return fail(error, sentence_of(error));
                use(std::move(stream));
            });
    }

    std::string sentence_of(const std::error_code& error) const {
        const auto client = client_.lock();
        return client ? connect_sentence(client->server, error) : std::string();
    }

    void use(std::unique_ptr<byte_stream> stream) {
        stream_ = std::move(stream);
        reader_ = http_response_reader(limits());
        if (head_) reader_.expect_no_body();
        written_ = false;
        sent_ = true;
        writing_ = stream_->write(bytes_, [this](std::error_code error, std::size_t) {
            // An error here shows in reading, too, after an answer that may have come before it.
            written_ = !error;
        });
        read();
    }

    http_limits limits() const {
        const auto client = client_.lock();
        return client ? client->options.limits : http_limits{};
    }

    void read() {
        reading_ = stream_->read_some([this](std::error_code error, std::string_view bytes) {
            const auto alive = this->shared_from_this();
            if (error)
                return broken(error, "the connection to the server broke: " + error.message());
            const bool ended = bytes.empty();
            if (ended) {
                reader_.end();
            } else {
                came_ = true;
                reader_.feed(bytes);
            }
            if (auto response = reader_.next()) return answer(std::move(*response), ended);
            if (const auto* fault = reader_.fault()) {
                if (ended)
                    return broken(std::make_error_code(std::errc::connection_aborted),
                                  fault->sentence);
                return fail(code_of(*fault), fault->sentence);
            }
            if (ended) {
                return broken(std::make_error_code(std::errc::connection_aborted),
                              "the server ended the connection without an answer");
            }
            read();
        });
    }

    void broken(std::error_code error, const std::string& why) {
        if (reused_ && repeatable_ && !came_) {
            reused_ = false;
            writing_.cancel();
            stream_.reset();
            return connect();
        }
        fail(error, why);
    }

    void answer(http_response response, bool ended) {
        const bool keep = !ended && keep_ && response.keep_alive && written_ && reader_.idle();
        if (const auto client = client_.lock(); client && keep) {
            reading_.cancel();
            client->keep(std::move(stream_));
        }
        end({.error = {}, .why = {}, .sent = true, .response = std::move(response)});
    }

    void fail(std::errc error, const std::string& why) { fail(std::make_error_code(error), why); }
    void fail(std::error_code error, const std::string& why) {
        end({.error = error, .why = why, .sent = sent_, .response = {}});
    }

    void end(http_answer answer) {
        if (!done_) return;
        const auto alive = this->shared_from_this();
        auto done = std::move(done_);
        release();
        done(std::move(answer));
    }

    void release() {
        timer_.cancel();
        connecting_.cancel();
        reading_.cancel();
        writing_.cancel();
        stream_.reset();
    }

    const std::weak_ptr<Client> client_;
    loop& on_;
    const bool repeatable_;
    const bool keep_;
    const bool head_;
    unique_function<void(http_answer)> done_;
    http_response_reader reader_;
    std::string bytes_;
    std::string unwritable_;
    deadline by_{};
    bool reused_ = false;  // the connection has served a call before
    bool sent_ = false;
    bool written_ = false;  // all of the request
    bool came_ = false;     // something of the response
    std::unique_ptr<byte_stream> stream_;
    op timer_;
    op connecting_;
    op reading_;
    op writing_;
};

}  // namespace

http_client::http_client(loop& on, stream_factory& streams, const stream_address& server,
                         const http_client_options& options)
    : impl_(std::make_shared<impl>(on, streams, server, options)) {}

http_client::~http_client() {
    auto& calls = impl_->calls;
    while (!calls.empty()) calls.extract(calls.begin()).value()->drop();
}

op http_client::call(http_request request, deadline by, unique_function<void(http_answer)> done) {
    const auto made = std::make_shared<http_call<impl>>(impl_, std::move(request), std::move(done));
    impl_->on.post([weak = std::weak_ptr(made), by] {
        if (const auto self = weak.lock()) self->start(by);
    });
    return op([made] { made->drop(); });
}

}  // namespace trinco::detail
