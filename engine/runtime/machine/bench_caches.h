#pragma once

#include <cstddef>

namespace planloom {

/// Writes back what caches hold of this memory, so that the next to read it finds it in memory alone. Where
/// the compiler knows no such instruction, nothing happens.
void dropFromCaches(const std::byte *data, std::size_t bytes);

/// Reads the memory, in pieces (`forEachPiece`): the cores' own caches hold it then, as far as they can.
void bringToCaches(const std::byte *data, std::size_t bytes);

} // namespace planloom
