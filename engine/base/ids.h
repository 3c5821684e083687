#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace planloom {

/// An index that cannot be mistaken for another kind of index. `Tag` is only a name.
/// A default-made id is "none"; test it with `valid()`.
template<typename Tag> struct Id {
    std::int32_t index = -1;

    constexpr bool valid() const { return index >= 0; }
    constexpr explicit operator bool() const { return valid(); }
    friend constexpr auto operator<=>(const Id &, const Id &) = default;
};

using TensorId = Id<struct TensorTag>; ///< Index into `Graph::tensors`.
using OperatorId = Id<struct OperatorTag>; ///< Index into `Graph::operators`.
using ScopeId = Id<struct ScopeTag>; ///< Index into `Graph::scopes`; 0 is the model itself.
using DeviceId = Id<struct DeviceTag>; ///< A device of the cluster, 0-based.
using StageId = Id<struct StageTag>; ///< A pipeline stage; stage 0 holds the model's first operators.

/// Where the element with this index stands in a container; an index is signed, with -1 for "none", which
/// this must not be.
constexpr std::size_t at(std::int32_t index)
{
    return static_cast<std::size_t>(index);
}
template<typename Tag> constexpr std::size_t at(Id<Tag> id)
{
    return at(id.index);
}

} // namespace planloom

template<typename Tag> struct std::hash<planloom::Id<Tag>> {
    std::size_t operator()(planloom::Id<Tag> id) const noexcept
    {
        return std::hash<std::int32_t>{}(id.index);
    }
};
