// Any bytes are refused with a place, or read as a config whose keys are all accounted for; what a config
// says is written in every format, and read again.

#include "engine/interop/configs/read_config.h"
#include "engine/interop/configs/write_config.h"

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
    for (const char *name : {"a.sh", "a.yaml", "a.py", "a.toml"}) {
        const auto read = readConfig(bytes, {.fileName = name});
        if (!read) {
            require(read.error().code != ErrorCode::Internal && !read.error().message.empty());
            continue;
        }
        require(read->format != nullptr && read->config.count("devices") >= 1
            && read->config.count("micro_batches") >= 1);
        for (const ConfigFormat &format : configFormats()) {
            const auto again =
                readConfig(printConfig(format, read->config), {.format = std::string(format.name)});
            require(again || again.error().code != ErrorCode::Internal);
        }
    }
    return 0;
}
