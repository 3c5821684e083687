#pragma once

#include "engine/gallery/gallery.h"

#include <filesystem>

namespace planloom {

/// The user's folder of gallery files: "planloom/gallery" in $XDG_CONFIG_HOME, or in ~/.config. Empty where
/// neither is known. It need not exist.
std::filesystem::path userGalleryFolder();

/// The gallery that comes with Planloom and all "*.gallery" of a folder, by name: an entry there stands in
/// for one of the same name. Files with errors are passed by, and noted. Waits for the disk.
Gallery findGallery(const std::filesystem::path &folder = userGalleryFolder());

/// One gallery file. @return NotFound, Io, or what is wrong in it with its path, line and column
Result<GalleryEntry> readGalleryFileAt(const std::filesystem::path &path);

} // namespace planloom
