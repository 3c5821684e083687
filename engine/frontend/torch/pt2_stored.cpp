#include "engine/frontend/torch/pt2_stored.h"

#include "engine/frontend/writer/tensor_values.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

namespace planloom {

namespace {

constexpr std::int64_t kMostReadAtOnce = std::int64_t{1} << 20; ///< Bytes of a buffer or constant.
constexpr std::int64_t kMostSpread = 64; ///< How many places may read one element of a storage.
constexpr std::int64_t kLargestPlace = std::int64_t{1} << 62;

/// Where a tensor's elements lie in its storage.
struct StoredPlaces {
    std::vector<std::int64_t> strides{}; ///< In elements.
    std::int64_t first = 0; ///< In elements.
    std::int64_t last = 0; ///< The furthest one.
    bool isRowMajor = true;
};

/// @return nothing if sizes, strides and offset do not fit one another or the type
std::optional<StoredPlaces> placesOf(const TensorType &type, const Pt2Meta &meta)
{
    const std::size_t rank = type.shape.size();
    if (!meta.isStrided || meta.dataType != std::optional(type.dataType) || meta.sizes.size() != rank
        || meta.strides.size() != rank || !meta.storageOffset.value || *meta.storageOffset.value < 0
        || *meta.storageOffset.value > kLargestPlace)
        return std::nullopt;
    StoredPlaces places;
    places.first = *meta.storageOffset.value;
    places.last = places.first;
    std::int64_t expected = 1;
    for (std::size_t i = rank; i-- > 0;) {
        const std::int64_t extent = type.shape[i];
        if (meta.sizes[i].value != std::optional(extent) || !meta.strides[i].value
            || *meta.strides[i].value < 0)
            return std::nullopt;
        const std::int64_t stride = *meta.strides[i].value;
        if (extent > 1) {
            if (stride > (kLargestPlace - places.last) / (extent - 1))
                return std::nullopt;
            places.last += stride * (extent - 1);
            places.isRowMajor = places.isRowMajor && stride == expected;
        }
        expected *= std::max<std::int64_t>(1, extent);
        places.strides.insert(places.strides.begin(), stride);
    }
    return places;
}

/// The elements in row-major order, from `storage`, the bytes from `places.first` on.
std::vector<std::byte> inRows(
    const TensorType &type, const StoredPlaces &places, const std::vector<std::byte> &storage)
{
    const auto item = static_cast<std::size_t>(sizeOf(type.dataType));
    const auto count = static_cast<std::size_t>(elementCount(type.shape));
    std::vector<std::byte> bytes(count * item);
    std::vector<std::int64_t> index(type.shape.size(), 0);
    for (std::size_t i = 0; i < count; ++i) {
        std::int64_t at = 0;
        for (std::size_t d = 0; d < index.size(); ++d)
            at += index[d] * places.strides[d];
        std::memcpy(bytes.data() + i * item, storage.data() + static_cast<std::size_t>(at) * item, item);
        for (std::size_t d = index.size(); d-- > 0;) {
            if (++index[d] < type.shape[d])
                break;
            index[d] = 0;
        }
    }
    return bytes;
}

} // namespace

Result<StoredTensor> Pt2Values::stored(
    const std::string &name, const TensorType &type, const Pt2Storage &storage, bool isSmall) const
{
    const auto wrong = [&](const std::string &why) {
        return Error{ErrorCode::InvalidInput,
            "the values of '" + name + "' (" + nameOf(type.dataType) + toString(type.shape) + ") " + why,
            "save it anew with torch.export.save", "tensor:" + name};
    };
    StoredTensor tensor;
    tensor.name = name;
    tensor.type = type;
    const auto places = placesOf(type, storage.meta);
    const auto length = checkedByteCount(type);
    if (!places || !length)
        return wrong("are stored as something else");
    const Place &lies = storage.isBeside ? m_beside : m_archive;
    const std::int64_t item = sizeOf(type.dataType);
    const auto held =
        static_cast<std::int64_t>(std::min<std::uint64_t>(storage.length, kLargestPlace)) / item;
    const bool isEmpty = *length == 0;
    if (!isEmpty && places->last >= held)
        return wrong(
            "end at element " + std::to_string(places->last) + " of a storage of " + std::to_string(held));
    const auto begin = storage.offset + static_cast<std::uint64_t>(places->first * item);
    if (places->isRowMajor && !isEmpty && !lies.path.empty() && !(isSmall && *length <= kMostReadAtOnce)) {
        tensor.external = ExternalData{lies.path, static_cast<std::int64_t>(begin), *length, true};
        return tensor;
    }
    if (*length / item > kMostSpread * (held + 1024))
        return wrong("repeat the elements of their storage too often to be written out");
    auto data = std::make_shared<TensorData>();
    data->type = type;
    if (!isEmpty) {
        const std::int64_t count = places->isRowMajor ? *length : (places->last - places->first + 1) * item;
        std::vector<std::byte> bytes(static_cast<std::size_t>(count));
        TRY_VOID(lies.source->read(begin, bytes));
        data->bytes = places->isRowMajor ? std::move(bytes) : inRows(type, *places, bytes);
    }
    tensor.data = std::move(data);
    return tensor;
}

} // namespace planloom
