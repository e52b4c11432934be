#include <array>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "core/quoted.hpp"
#include "net/loop_owner.hpp"
#include "store/driver.hpp"
#include "store/local/local_breakers.hpp"
#include "store/local/local_driver.hpp"
#include "store/local/local_locks.hpp"
#include "store/local/local_machine.hpp"
#include "store/local/local_worker.hpp"
#include "store/local/sqlite.hpp"
#include "trinco/local.hpp"

namespace trinco::detail {
namespace {

constexpr std::size_t path_max = 4'000;  // room for what is put beside the file

std::filesystem::path file_of(const store_url& url) {
    if (url.rest.empty()) return default_local_file();
    const bool sound = url.rest.front() == '/' && url.rest.back() != '/' &&
                       url.rest.size() <= path_max && url.rest.find('\0') == std::string::npos;
    if (!sound) {
        throw open_error(errc::invalid, "the store's URL is " + detail::quoted(url.shown) +
                                            ", but after local: there is nothing, or the absolute "
                                            "path of a file: local:/path/to/file.db");
    }
    return url.rest;
}

class local_driver final : public store_driver {
public:
    explicit local_driver(std::span<const std::string_view> ahead = {}) noexcept : ahead_(ahead) {}

    [[nodiscard]] std::span<const std::string_view> schemes() const noexcept override {
        static constexpr std::array<std::string_view, 1> all{"local"};
        return all;
    }

    [[nodiscard]] opened_stores open(const store_url& url, event_loop& on,
                                     std::string_view name_space,
                                     const breaker_identity& who) override {
        const auto how =
            has_thread(on) ? local_worker::stay::long_time : local_worker::stay::moment;
        auto worker = std::make_shared<local_worker>(local_settings_for(file_of(url)), url.shown,
                                                     ahead_, how);
        opened_stores all;
        all.breakers = std::make_unique<local_breakers>(on, worker, std::string(name_space), who);
        all.locks =
            std::make_unique<local_locks>(on, std::move(worker), [&on] { return is_run_here(on); });
        return all;
    }

private:
    std::span<const std::string_view> ahead_;
};

}  // namespace

driver local_for_locks() {
    leave_out_sqlite_statistics();
    return driver(std::make_shared<local_driver>(statements_of_a_lock()));
}

}  // namespace trinco::detail

namespace trinco::drivers {

driver local() {
    return driver(std::make_shared<detail::local_driver>());
}

}  // namespace trinco::drivers
