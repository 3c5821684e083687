#pragma once

#include "engine/design/make_plan.h"
#include "engine/interop/torch/modules/plan_words.h"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace planloom {

/// What the scripts are written of.
struct ModulesText {
    const PlanWords &words;
    const PlanAnswer &answer;
    const OpenedModel &model;
    std::string module{}; ///< As `ModulesOptions::module`.
    std::vector<std::string> rows{}; ///< That are said.
    std::vector<std::string> notes{}; ///< For the README, a paragraph each.
};

/// The files of the folder, by path.
std::map<std::string, std::string> filesOf(const ModulesText &text);

/// A text of resources/torch/modules with its lines chosen and its words filled in: between `#if NAME`,
/// `#else` and `#end` stands what is there where NAME has a word, and "{{NAME}}" is that word.
std::string filledIn(std::string_view text, const std::map<std::string, std::string> &words);

} // namespace planloom
