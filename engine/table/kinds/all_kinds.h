#pragma once

#include "engine/table/table.h"

#include <type_traits>
#include <utility>
#include <variant>

namespace planloom {

/// Calls `visit(std::type_identity<R>{})` for the kinds of rules in their order until one holds. @return whether one did
template<typename Visit> bool anyKind(Visit visit)
{
    return [&]<std::size_t... I>(std::index_sequence<I...>) {
        return (visit(std::type_identity<std::variant_alternative_t<I, Rule>>{}) || ...);
    }(std::make_index_sequence<std::variant_size_v<Rule>>{});
}

} // namespace planloom
