// Any bytes are refused with an error or imported as a valid graph.

#include "engine/frontend/onnx/import_onnx.h"

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    planloom::ImportOptions options;
    options.mostFileBytes = std::size_t{1} << 20;
    options.mostFoldedBytes = std::size_t{1} << 20;
    options.mostOperators = 5'000;
    const std::string_view bytes(
        reinterpret_cast<const char *>(data), size); // bytes as the importer takes them
    for (const bool fuse : {false, true}) {
        options.fuse = fuse;
        const auto graph = planloom::importOnnxBytes(bytes, {}, options);
        const bool sound = graph
            ? static_cast<bool>(planloom::validate(*graph))
            : graph.error().code != planloom::ErrorCode::Internal && !graph.error().message.empty();
        if (!sound)
            std::abort();
    }
    return 0;
}
