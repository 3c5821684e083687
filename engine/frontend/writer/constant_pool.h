#pragma once

#include "engine/frontend/writer/tensor_values.h"
#include "engine/graph/tensor.h"

#include <cstddef>
#include <map>
#include <memory>
#include <string>

namespace planloom {

/// The known values of a graph in the making: equal large ones share their memory, and those that are
/// computed may take so many bytes in all. Not thread-safe.
class ConstantPool
{
public:
    /// @param mostBytes  that computed values may take together
    explicit ConstantPool(std::size_t mostBytes)
        : m_mostBytes(mostBytes)
    {
    }

    /// The same values, in the memory of equal ones that were asked for before.
    std::shared_ptr<const TensorData> shared(std::shared_ptr<const TensorData> data);
    /// All elements of `type` equal to `value`, from one memory for equal requests. Null if too large.
    std::shared_ptr<const TensorData> filled(const TensorType &type, Number value);

    /// True if a value of this size may still be computed; counts it if so.
    bool take(const TensorType &type);
    /// How many bytes are taken by now: what `giveBack` returns to where nothing came of a try.
    std::size_t taken() const { return m_taken; }
    void giveBack(std::size_t taken) { m_taken = taken; }

private:
    std::size_t m_mostBytes = 0;
    std::size_t m_taken = 0;
    std::unordered_multimap<std::size_t, std::shared_ptr<const TensorData>> m_shared{}; ///< By hash.
    std::map<std::string, std::shared_ptr<const TensorData>> m_filled{}; ///< By type and value, as text.
};

} // namespace planloom
