#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

constexpr std::int64_t kOpenEnd = std::numeric_limits<std::int64_t>::max(); ///< No largest size.

/// A size of a model's inputs that whoever opens the model chooses: a batch, a length of sequences. A row
/// (`dim batch = 64`) makes it a knob of the design.
struct InputDimension {
    std::string name{}; ///< As the file calls it ("batch", "s77"), or "<input>.<axis>" where it has no name.
    std::int64_t size = 0; ///< What the graph was made with; 0 where nobody has said it yet.
    std::int64_t least = 1; ///< The sizes that the file allows.
    std::int64_t most = kOpenEnd;
    std::int64_t suggested = 1; ///< A usual size, within the range.
    /// Where it occurs, "<input>.<axis>", the inputs in the file's order; for a zoo model what it is.
    std::vector<std::string> places{};
    /// Of `places` those where it is the whole size, not a factor or term of it: they name it, too.
    std::vector<std::string> aliases{};
    friend bool operator==(const InputDimension &, const InputDimension &) = default;
};

/// The dimension of that name or alias; null if there is none.
const InputDimension *findDimension(const std::vector<InputDimension> &dimensions, std::string_view name);

/// "1 and more", "2 to 64".
std::string rangeText(const InputDimension &dimension);

/// "'batch', 'seq'": for sentences.
std::string namesText(const std::vector<InputDimension> &dimensions);

} // namespace planloom
