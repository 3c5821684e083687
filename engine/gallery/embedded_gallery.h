#pragma once

#include <span>
#include <string_view>

namespace planloom {

/// A file of resources/gallery, compiled in so that every program has it wherever it runs.
struct EmbeddedGalleryFile {
    std::string_view name{}; ///< Without its ending.
    std::string_view text{};
};

/// All of them, in the order in which they are shown.
std::span<const EmbeddedGalleryFile> embeddedGallery();

} // namespace planloom
