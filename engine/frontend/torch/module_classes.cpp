#include "engine/frontend/torch/module_classes.h"

#include "engine/base/byte_source.h"
#include "engine/frontend/torch/pt2_archive.h"

#include <array>
#include <cstddef>
#include <system_error>
#include <utility>

namespace planloom {

Result<ModuleClasses> moduleClassesOf(const std::filesystem::path &path, std::string_view content)
{
    std::error_code failure;
    if (content.empty() && !std::filesystem::is_regular_file(path, failure))
        return ModuleClasses{}; // of the zoo
    std::unique_ptr<const ByteSource> source = sourceOf(content);
    if (content.empty()) {
        TRY(source, openByteSource(path));
    }
    std::array<std::byte, 2> head{};
    if (source->size() < head.size() || !source->read(0, head) || head[0] != std::byte{'P'}
        || head[1] != std::byte{'K'})
        return ModuleClasses{};
    TRY(Pt2Archive archive, readPt2Archive(std::move(source), path.filename().string()));
    return std::move(archive.program.moduleClasses);
}

} // namespace planloom
