#include "engine/frontend/writer/stored_tensor.h"

#include "engine/frontend/writer/tensor_values.h"

#include <filesystem>
#include <fstream>
#include <system_error>

namespace planloom {

Result<TensorData> loadTensorData(const Tensor &tensor)
{
    if (tensor.data)
        return *tensor.data;
    if (!tensor.external)
        return Error{ErrorCode::NotFound, "the model holds no values of '" + tensor.name + "'",
            "make them up with --random-weights SEED", "tensor:" + tensor.name};
    const ExternalData &place = *tensor.external;
    const auto bytes = checkedByteCount(tensor.type);
    if (!bytes || *bytes != place.length)
        return Error{ErrorCode::InvalidInput,
            "'" + tensor.name + "' takes another number of bytes than its file provides",
            "export the model anew", "tensor:" + tensor.name};
    std::error_code error;
    const auto size = std::filesystem::file_size(place.path, error);
    if (error)
        return Error{ErrorCode::NotFound,
            "the weights of '" + tensor.name + "' should lie in '" + place.path
                + "', which cannot be read: " + error.message(),
            "put the file beside the model, or make weights up with --random-weights SEED",
            "tensor:" + tensor.name};
    if (static_cast<std::uintmax_t>(place.offset) + static_cast<std::uintmax_t>(place.length) > size)
        return Error{ErrorCode::InvalidInput,
            "the weights of '" + tensor.name + "' end at byte " + std::to_string(place.offset + place.length)
                + " of '" + place.path + "', which has only " + std::to_string(size),
            "the file is truncated: copy it anew", "tensor:" + tensor.name};
    std::ifstream file(place.path, std::ios::binary);
    file.seekg(place.offset);
    TensorData data{tensor.type, std::vector<std::byte>(static_cast<std::size_t>(place.length))};
    file.read(
        reinterpret_cast<char *>(data.bytes.data()), place.length); // reading bytes: any type may alias char
    if (!file && place.length > 0)
        return Error{ErrorCode::Io,
            "could not read the weights of '" + tensor.name + "' from '" + place.path + "'", "",
            "tensor:" + tensor.name};
    return data;
}

std::shared_ptr<const TensorData> valuesUpTo(const Tensor &tensor, std::int64_t mostBytes)
{
    if (tensor.data)
        return tensor.data;
    if (!tensor.external || !tensor.external->present || tensor.external->length > mostBytes)
        return nullptr;
    auto loaded = loadTensorData(tensor);
    return loaded ? std::make_shared<const TensorData>(*std::move(loaded)) : nullptr;
}

} // namespace planloom
