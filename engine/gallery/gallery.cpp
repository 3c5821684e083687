#include "engine/gallery/gallery.h"

#include "engine/gallery/embedded_gallery.h"
#include "engine/gallery/gallery_maker.h"

#include <cassert>

namespace planloom {

namespace {

/// The entry that a spec names, and what is behind the colon.
Result<std::pair<const GalleryEntry *, std::string_view>> entryOf(
    std::string_view spec, const Gallery &gallery)
{
    const std::size_t colon = spec.find(':');
    const std::string_view name = spec.substr(0, colon);
    const GalleryEntry *entry = gallery.find(name);
    if (entry == nullptr)
        return Error{ErrorCode::NotFound,
            "there is no gallery plan '" + std::string(name.substr(0, 60)) + "'", gallery.names(), "gallery"};
    return std::pair{entry, colon == std::string_view::npos ? std::string_view{} : spec.substr(colon + 1)};
}

} // namespace

const GalleryEntry *Gallery::find(std::string_view name) const
{
    for (const GalleryEntry &entry : entries)
        if (entry.name == name)
            return &entry;
    return nullptr;
}

std::string Gallery::names() const
{
    std::string text;
    for (const GalleryEntry &entry : entries)
        text += (text.empty() ? "" : ", ") + entry.name;
    return text;
}

const Gallery &builtInGallery()
{
    static const Gallery kGallery = [] {
        Gallery gallery;
        for (const EmbeddedGalleryFile &file : embeddedGallery()) {
            auto entry = readGalleryFile(file.text, std::string(file.name) + kGalleryFileEnding);
            assert(entry && entry->name == file.name); // a test reads them all
            if (!entry)
                continue;
            entry->file.clear();
            gallery.entries.push_back(*std::move(entry));
        }
        return gallery;
    }();
    return kGallery;
}

Result<std::vector<GalleryValue>> galleryValues(
    std::string_view spec, const Gallery &gallery, const Model &model, std::int32_t deviceCount)
{
    TRY(const auto found, entryOf(spec, gallery));
    GalleryMaker maker(*found.first, model, deviceCount);
    TRY_VOID(maker.readValues(found.second));
    return maker.values();
}

Result<GalleryPlan> galleryPlan(std::string_view spec, const Gallery &gallery, const Model &model,
    std::int32_t deviceCount, const CostModel &costs, PrecisionPreset precision)
{
    if (!model || deviceCount < 1)
        return Error{
            ErrorCode::InvalidInput, "a gallery plan needs a model and at least one device", {}, "gallery"};
    TRY(const auto found, entryOf(spec, gallery));
    GalleryMaker maker(*found.first, model, deviceCount);
    TRY_VOID(maker.readValues(found.second));
    return maker.make(OperatorCosts(*model.graph, costs, precision));
}

Result<ConstraintTable> galleryTable(
    std::string_view spec, const Model &model, std::int32_t deviceCount, const CostModel &costs)
{
    TRY(GalleryPlan plan, galleryPlan(spec, builtInGallery(), model, deviceCount, costs));
    return std::move(plan.table);
}

} // namespace planloom
