#pragma once

#include "engine/table/table.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace planloom {

/// Whether `visit(std::type_identity<R>{})` holds for a kind R; asks in their order, no more after the first.
template<typename Visit> bool anyKind(Visit visit)
{
    return [&]<std::size_t... I>(std::index_sequence<I...>)
    {
        return (visit(std::type_identity<std::variant_alternative_t<I, Rule>>{}) || ...);
    }
    (std::make_index_sequence<std::variant_size_v<Rule>>{});
}

} // namespace planloom
