#pragma once

#include <span>
#include <string_view>

namespace planloom {

/// A file of resources/torch.
struct RuntimeFile {
    std::string_view path{}; ///< "runtime/queues.py"
    std::string_view text{};
};

/// All of them, compiled in.
std::span<const RuntimeFile> embeddedRuntime();

} // namespace planloom
