// Any bytes are refused with a place, or read as an entry whose rows' pieces are whole.

#include "engine/gallery/gallery_find.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

using namespace planloom;

namespace {

void require(bool holds)
{
    if (!holds)
        std::abort();
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::string_view bytes(reinterpret_cast<const char *>(data), size);
    const auto entry = readGalleryFile(bytes, "fuzz.gallery");
    if (!entry) {
        require(entry.error().code != ErrorCode::Internal && !entry.error().message.empty()
            && entry.error().where.starts_with("fuzz.gallery"));
        return 0;
    }
    require(!entry->name.empty() && !entry->meaning.empty() && !entry->lines.empty());
    for (const GalleryLine &line : entry->lines)
        require(piecesOf(line.text).has_value());
    for (const GalleryParameter &parameter : entry->parameters)
        require(valueOf(parameter, exampleOf(parameter)).has_value() && !formOf(parameter).empty());
    return 0;
}
