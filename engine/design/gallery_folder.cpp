#include "engine/design/gallery_folder.h"

#include "engine/base/files.h"
#include "engine/base/user_folder.h"

#include <algorithm>

namespace planloom {

namespace fs = std::filesystem;

fs::path userGalleryFolder()
{
    return userFolder("gallery");
}

Result<GalleryEntry> readGalleryFileAt(const fs::path &path)
{
    TRY(const std::string text, readFile(path, {.what = "gallery file", .mostBytes = kMostGalleryFileBytes}));
    return readGalleryFile(text, path.string());
}

Gallery findGallery(const fs::path &folder)
{
    Gallery gallery = builtInGallery();
    for (const fs::path &path : filesIn(folder, kGalleryFileEnding)) {
        auto entry = readGalleryFileAt(path);
        if (!entry) {
            gallery.notes.push_back("a gallery file was passed by: " + describe(entry.error()));
            continue;
        }
        const auto known = std::find_if(gallery.entries.begin(), gallery.entries.end(),
            [&](const GalleryEntry &each) { return each.name == entry->name; });
        if (known == gallery.entries.end())
            gallery.entries.push_back(*std::move(entry));
        else
            *known = *std::move(entry);
    }
    return gallery;
}

} // namespace planloom
