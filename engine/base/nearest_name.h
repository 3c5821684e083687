#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// The names among `known` that are nearest to `name` by letters to change, add or leave out and neighbours
/// that change places, the nearest first, of equal ones the first in the alphabet; at most `count` of them.
/// O(names x length squared) at most: what is farther than those found is passed by early.
std::vector<std::string> nearestNames(
    std::string_view name, const std::vector<std::string_view> &known, std::size_t count = 1);

/// "did you mean 'tensor'?", of the nearest name that differs in a third of its letters at most; empty if
/// none does.
std::string didYouMean(std::string_view name, const std::vector<std::string_view> &known);

} // namespace planloom
