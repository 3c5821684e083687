// libFuzzer target: any bytes as an archive and as an array. What is read must hold together and survive
// being written.

#include "engine/interop/npz.h"

#include <cstdint>
#include <cstdlib>

using namespace planloom;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t *data, std::size_t size)
{
    const std::span<const std::byte> bytes{reinterpret_cast<const std::byte *>(data), size};
    const auto check = [](const TensorData &array) {
        if (static_cast<std::int64_t>(array.bytes.size())
            != elementCount(array.type.shape) * sizeOf(array.type.dataType))
            std::abort();
        const auto again = parseNpy(formatNpy(array), "again");
        if (!again || again->type != array.type || again->bytes != array.bytes)
            std::abort();
    };
    if (const auto array = parseNpy(bytes, "fuzz"))
        check(*array);
    if (const auto arrays = parseNpz(bytes, "fuzz"))
        for (const auto &[name, array] : *arrays)
            check(array);
    return 0;
}
