#include "engine/frontend/writer/constant_pool.h"

#include <functional>
#include <string_view>

namespace planloom {

namespace {

constexpr std::size_t kSharedFrom = 1024; ///< Constants of this many bytes share memory with equal ones.

} // namespace

std::shared_ptr<const TensorData> ConstantPool::shared(std::shared_ptr<const TensorData> data)
{
    if (data->bytes.size() < kSharedFrom)
        return data;
    const std::string_view bytes(
        reinterpret_cast<const char *>(data->bytes.data()), data->bytes.size()); // to hash
    const std::size_t hash = std::hash<std::string_view>{}(bytes);
    const auto [first, last] = m_shared.equal_range(hash);
    for (auto entry = first; entry != last; ++entry) {
        if (entry->second->type == data->type && entry->second->bytes == data->bytes)
            return entry->second;
    }
    m_shared.emplace(hash, data);
    return data;
}

std::shared_ptr<const TensorData> ConstantPool::filled(const TensorType &type, Number value)
{
    TensorData one = filledTensor({type.dataType, {}}, value);
    std::string key = nameOf(type.dataType) + toString(type.shape);
    for (const std::byte byte : one.bytes)
        key += static_cast<char>(byte);
    auto &data = m_filled[key];
    if (!data && take(type))
        data = std::make_shared<const TensorData>(filledTensor(type, value));
    return data;
}

bool ConstantPool::take(const TensorType &type)
{
    const auto bytes = checkedByteCount(type);
    if (!bytes || static_cast<std::size_t>(*bytes) > m_mostBytes - m_taken)
        return false;
    m_taken += static_cast<std::size_t>(*bytes);
    return true;
}

} // namespace planloom
