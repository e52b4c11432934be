#include "wire/http2/http2_client.hpp"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <new>
#include <unordered_map>
#include <utility>
#include <vector>

namespace trinco::detail {
namespace {

constexpr std::int32_t stream_window = 1024 * 1024;
constexpr std::int32_t connection_window = 4 * 1024 * 1024;
constexpr std::size_t fields_most = 16 * 1024;
constexpr std::size_t field_extra = 32;  // counted for each, by the protocol
constexpr std::size_t frame_head = 9;
constexpr std::string_view http1 = "HTTP/1.";

struct end_of {
    void operator()(nghttp2_session* s) const noexcept { ::nghttp2_session_del(s); }
    void operator()(nghttp2_session_callbacks* c) const noexcept {
        ::nghttp2_session_callbacks_del(c);
    }
    void operator()(nghttp2_option* o) const noexcept { ::nghttp2_option_del(o); }
};

// Of those that fail for lack of memory alone.
void must(int result) {
    if (result != 0) throw std::bad_alloc();
}

std::string_view view_of(const std::uint8_t* bytes, std::size_t size) {
    return {reinterpret_cast<const char*>(bytes), size};
}

// Settings, not an answer to ours, of the connection.
bool begins_with_settings(std::string_view head) {
    return head[3] == NGHTTP2_SETTINGS && head[4] == 0 && head.substr(5, 4) == std::string(4, '\0');
}

}  // namespace

std::string http2_code_name(http2_code code) {
    return ::nghttp2_http2_strerror(static_cast<std::uint32_t>(code));
}

struct http2_client::impl {
    using callbacks = std::unique_ptr<nghttp2_session_callbacks, end_of>;

    impl();
    [[nodiscard]] static callbacks listen();

    [[nodiscard]] http2_stream* find(std::int32_t id) const {
        const auto at = streams.find(id);
        return at == streams.end() ? nullptr : at->second;
    }
    void tell_end(std::int32_t id, http2_end how);
    void give_up(std::int32_t id, http2_code why) {
        must(::nghttp2_submit_rst_stream(session.get(), NGHTTP2_FLAG_NONE, id,
                                         static_cast<std::uint32_t>(why)));
    }
    void fail(http2_fault::kind_t kind, std::string sentence) {
        if (!fault) fault = http2_fault{kind, std::move(sentence)};
    }
    [[nodiscard]] bool greeting_is_good(std::string_view bytes);
    [[nodiscard]] static ::ssize_t fill(http2_stream& stream, std::uint8_t* to, std::size_t room,
                                        std::uint32_t& flags);
    void came(const nghttp2_frame& frame);
    void closed(std::int32_t id, http2_code code);
    void read(std::string_view bytes);
    [[nodiscard]] bool has_ended() const noexcept {
        return ::nghttp2_session_want_read(session.get()) == 0 &&
               ::nghttp2_session_want_write(session.get()) == 0;
    }
    void see_whether_it_is_broken();
    [[nodiscard]] bool take_field(std::int32_t id, std::string_view name, std::string_view value);

    std::unique_ptr<nghttp2_session, end_of> session;
    std::unordered_map<std::int32_t, http2_stream*> streams;
    std::string greeting;    // the head of the peer's first frame
    std::size_t fields = 0;  // bytes of the head that is being read
    bool ready = false;
    std::optional<http2_goodbye> goodbye;
    std::optional<http2_fault> fault;
    std::string complaint;  // the library's, about the peer
};

void http2_client::impl::tell_end(std::int32_t id, http2_end how) {
    const auto node = streams.extract(id);
    if (!node.empty()) node.mapped()->on_end(how);
}

bool http2_client::impl::greeting_is_good(std::string_view bytes) {
    if (greeting.size() == frame_head) return true;
    greeting += bytes.substr(0, frame_head - greeting.size());
    const auto same = std::min(greeting.size(), http1.size());
    if (greeting.size() >= http1.size() && greeting.compare(0, same, http1) == 0) {
        fail(http2_fault::kind_t::http1, "it speaks HTTP/1");
    } else if (greeting.size() == frame_head && !begins_with_settings(greeting)) {
        fail(http2_fault::kind_t::not_http2, "it does not speak HTTP/2");
    }
    return !fault;
}

::ssize_t http2_client::impl::fill(http2_stream& stream, std::uint8_t* to, std::size_t room,
                                   std::uint32_t& flags) {
    std::size_t filled = 0;
    while (filled < room && !stream.out_.empty()) {
        const auto& first = stream.out_.front();
        const auto n = std::min(room - filled, first.size() - stream.out_from_);
        if (n > 0) std::memcpy(to + filled, first.data() + stream.out_from_, n);
        filled += n;
        stream.out_from_ += n;
        if (stream.out_from_ < first.size()) break;
        stream.out_.pop_front();
        stream.out_from_ = 0;
    }
    if (stream.out_.empty() && stream.ends_) {
        stream.sent_ = true;
        flags |= NGHTTP2_DATA_FLAG_EOF;
    } else if (filled == 0) {
        stream.waits_ = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return static_cast<::ssize_t>(filled);
}

bool http2_client::impl::take_field(std::int32_t id, std::string_view name,
                                    std::string_view value) {
    auto* const stream = find(id);
    if (stream == nullptr) return true;
    fields += name.size() + value.size() + field_extra;
    if (fields > fields_most) {
        tell_end(id, {http2_end::kind_t::too_large, http2_code::none});
        return false;
    }
    stream->on_field(name, value);
    return true;
}

void http2_client::impl::came(const nghttp2_frame& frame) {
    const auto id = frame.hd.stream_id;
    switch (frame.hd.type) {
        case NGHTTP2_SETTINGS: ready = true; return;
        case NGHTTP2_GOAWAY:
            goodbye = http2_goodbye{
                static_cast<http2_code>(frame.goaway.error_code),
                std::string(view_of(frame.goaway.opaque_data, frame.goaway.opaque_data_len))};
            return;
        case NGHTTP2_HEADERS:
            if (auto* const stream = find(id)) stream->on_fields_end();
            break;
        case NGHTTP2_DATA: break;
        default: return;
    }
    if ((frame.hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return;
    auto* const stream = find(id);
    if (stream == nullptr) return;
    // What we still had to say is of no use any more.
    if (!stream->sent_) give_up(id, http2_code::cancel);
    tell_end(id, {});
}

void http2_client::impl::closed(std::int32_t id, http2_code code) {
    const auto* const stream = find(id);
    if (stream == nullptr) return;
    const bool untouched = code == http2_code::refused_stream || !stream->begun_;
    tell_end(id, {untouched ? http2_end::kind_t::refused : http2_end::kind_t::reset, code});
}

void http2_client::impl::read(std::string_view bytes) {
    if (bytes.empty()) return;
    const auto n = ::nghttp2_session_mem_recv(
        session.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
    if (n == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
    if (n < 0) fail(http2_fault::kind_t::broken, ::nghttp2_strerror(static_cast<int>(n)));
}

// When the peer broke the rules, the library ends the session when it has told the peer.
void http2_client::impl::see_whether_it_is_broken() {
    if (!has_ended() || goodbye) return;
    fail(http2_fault::kind_t::broken,
         "it broke the rules of HTTP/2" + (complaint.empty() ? "" : ": " + complaint));
}

// What the library tells goes to the session's user, which is the client.
http2_client::impl::callbacks http2_client::impl::listen() {
    nghttp2_session_callbacks* to = nullptr;
    must(::nghttp2_session_callbacks_new(&to));
    callbacks made(to);
    ::nghttp2_session_callbacks_set_on_begin_headers_callback(
        to, [](nghttp2_session*, const nghttp2_frame*, void* user) {
            static_cast<impl*>(user)->fields = 0;
            return 0;
        });
    ::nghttp2_session_callbacks_set_on_header_callback(
        to, [](nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
               std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
               std::uint8_t, void* user) {
            const bool taken = static_cast<impl*>(user)->take_field(
                frame->hd.stream_id, view_of(name, name_size), view_of(value, value_size));
            return taken ? 0 : static_cast<int>(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE);
        });
    ::nghttp2_session_callbacks_set_on_data_chunk_recv_callback(
        to, [](nghttp2_session*, std::uint8_t, std::int32_t id, const std::uint8_t* bytes,
               std::size_t size, void* user) {
            auto* const stream = static_cast<impl*>(user)->find(id);
            if (stream != nullptr) stream->on_data(view_of(bytes, size));
            return 0;
        });
    ::nghttp2_session_callbacks_set_on_frame_recv_callback(
        to, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
            static_cast<impl*>(user)->came(*frame);
            return 0;
        });
    ::nghttp2_session_callbacks_set_on_stream_close_callback(
        to, [](nghttp2_session*, std::int32_t id, std::uint32_t code, void* user) {
            static_cast<impl*>(user)->closed(id, static_cast<http2_code>(code));
            return 0;
        });
    ::nghttp2_session_callbacks_set_before_frame_send_callback(
        to, [](nghttp2_session*, const nghttp2_frame* frame, void* user) {
            auto* const stream = static_cast<impl*>(user)->find(frame->hd.stream_id);
            if (stream != nullptr && frame->hd.type == NGHTTP2_HEADERS) stream->begun_ = true;
            return 0;
        });
    ::nghttp2_session_callbacks_set_error_callback2(
        to, [](nghttp2_session*, int, const char* text, std::size_t size, void* user) {
            static_cast<impl*>(user)->complaint.assign(text, size);
            return 0;
        });
    return made;
}

http2_client::impl::impl() {
    const auto to = listen();
    nghttp2_option* with = nullptr;
    must(::nghttp2_option_new(&with));
    const std::unique_ptr<nghttp2_option, end_of> options(with);
    ::nghttp2_option_set_max_reserved_remote_streams(with, 0);
    ::nghttp2_option_set_no_closed_streams(with, 1);
    nghttp2_session* made = nullptr;
    must(::nghttp2_session_client_new2(&made, to.get(), this, with));
    session.reset(made);
    const std::array<nghttp2_settings_entry, 3> settings{{
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, stream_window},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, fields_most},
    }};
    must(::nghttp2_submit_settings(made, NGHTTP2_FLAG_NONE, settings.data(), settings.size()));
    must(::nghttp2_session_set_local_window_size(made, NGHTTP2_FLAG_NONE, 0, connection_window));
}

http2_client::http2_client() : impl_(std::make_unique<impl>()) {}
http2_client::~http2_client() = default;

bool http2_client::begin(http2_stream& stream, std::span<const http2_field> head) {
    std::vector<nghttp2_nv> fields;
    fields.reserve(head.size());
    for (const auto& [name, value] : head) {
        // Copied by the library; it takes no bytes that cannot change.
        fields.push_back({reinterpret_cast<std::uint8_t*>(const_cast<char*>(name.data())),
                          reinterpret_cast<std::uint8_t*>(const_cast<char*>(value.data())),
                          name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
    }
    nghttp2_data_provider body{};
    body.read_callback = [](nghttp2_session*, std::int32_t id, std::uint8_t* to, std::size_t room,
                            std::uint32_t* flags, nghttp2_data_source*, void* user) -> ::ssize_t {
        auto& self = *static_cast<impl*>(user);
        auto* const from = self.find(id);
        return from != nullptr ? impl::fill(*from, to, room, *flags)
                               : ::ssize_t{NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE};
    };
    const auto id = ::nghttp2_submit_request(impl_->session.get(), nullptr, fields.data(),
                                             fields.size(), &body, nullptr);
    if (id == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
    if (id < 0) return false;
    stream.id_ = id;
    impl_->streams.emplace(id, &stream);
    return true;
}

void http2_client::send(http2_stream& stream, std::string bytes, bool last) {
    if (stream.ends_) return;
    stream.out_.push_back(std::move(bytes));
    stream.ends_ = last;
    if (!std::exchange(stream.waits_, false)) return;
    // An error: the stream has ended, and is told so.
    (void)::nghttp2_session_resume_data(impl_->session.get(), stream.id_);
}

void http2_client::cancel(http2_stream& stream) {
    const auto at = impl_->streams.find(stream.id_);
    if (at == impl_->streams.end() || at->second != &stream) return;
    impl_->streams.erase(at);
    impl_->give_up(stream.id_, http2_code::cancel);
}

void http2_client::ping() {
    must(::nghttp2_submit_ping(impl_->session.get(), NGHTTP2_FLAG_NONE, nullptr));
}

void http2_client::feed(std::string_view bytes) {
    auto& self = *impl_;
    const auto before = self.greeting.size();
    if (self.fault || bytes.empty() || !self.greeting_is_good(bytes)) return;
    // What was kept of the greeting has not been read yet.
    if (before < frame_head) {
        const auto own = self.greeting.size() - before;
        if (self.greeting.size() < frame_head) return;
        self.read(self.greeting);
        bytes.remove_prefix(own);
    }
    self.read(bytes);
}

std::string http2_client::take(std::size_t most) {
    std::string out;
    auto& self = *impl_;
    while (out.size() < most) {
        const std::uint8_t* bytes = nullptr;
        const auto n = ::nghttp2_session_mem_send(self.session.get(), &bytes);
        if (n < 0) {
            if (n == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
            self.fail(http2_fault::kind_t::broken, ::nghttp2_strerror(static_cast<int>(n)));
        }
        if (n <= 0) break;
        out.append(view_of(bytes, static_cast<std::size_t>(n)));
    }
    self.see_whether_it_is_broken();
    return out;
}

bool http2_client::is_ready() const noexcept {
    return impl_->ready;
}

const std::optional<http2_goodbye>& http2_client::goodbye() const noexcept {
    return impl_->goodbye;
}

bool http2_client::is_over() const noexcept {
    return impl_->fault || impl_->has_ended();
}

const std::optional<http2_fault>& http2_client::fault() const noexcept {
    return impl_->fault;
}

}  // namespace trinco::detail
