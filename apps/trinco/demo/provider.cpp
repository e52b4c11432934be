#include "apps/trinco/demo/provider.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <vector>

#include "apps/trinco/output/print.hpp"

namespace trinco::program::demo {
namespace {

struct charged {
    std::string id;
    std::string invoice;
};

std::vector<charged> ledger_of(const std::filesystem::path& folder) {
    std::vector<charged> all;
    std::ifstream text(folder / "ledger");
    for (charged one; text >> one.id >> one.invoice;) all.push_back(one);
    return all;
}

std::string receipt_of(std::string_view id) {
    return "receipt-" + std::string(id.substr(0, 8));
}

}  // namespace

std::optional<std::string> provider::charge(std::string_view id, std::string_view invoice) const {
    const std::string line = std::string(id) + " " + std::string(invoice) + "\n";
    const auto name = folder_ / "ledger";
    const int file = ::open(name.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const bool written = file >= 0 && write_all(file, line) == 0;
    if (file >= 0) ::close(file);
    if (!written) return std::nullopt;
    return receipt_of(id);
}

std::optional<std::string> provider::receipt(std::string_view id) const {
    for (const charged& one : ledger_of(folder_)) {
        if (one.id == id) return receipt_of(id);
    }
    return std::nullopt;
}

std::size_t provider::charges(std::string_view invoice) const {
    const auto all = ledger_of(folder_);
    return static_cast<std::size_t>(std::count_if(
        all.begin(), all.end(), [&](const charged& one) { return one.invoice == invoice; }));
}

}  // namespace trinco::program::demo
