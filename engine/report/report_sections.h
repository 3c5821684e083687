#pragma once

#include "engine/report/report.h"

#include <cstdint>
#include <string>

namespace planloom {

/// What a report is shown on. Paper has neither bars nor cards, but all of their figures.
enum class Medium : std::uint8_t { Screen, Paper };

// Sections of a report, each as HTML; empty where there is nothing to say.

std::string figuresHtml(const Report &report, Medium medium);
std::string stepPartsHtml(const Report &report, Medium medium);
std::string memoryHtml(const Report &report, Medium medium);
std::string communicationHtml(const Report &report);
std::string rowsHtml(const Report &report);
/// Of two plans: rows and operators that differ.
std::string differenceHtml(const Report &report);
std::string assumptionsHtml(const Report &report);
std::string tablesHtml(const Report &report);

/// "plan A: fast.json"; the name alone where there is one plan.
std::string titleOf(const Report &report, std::size_t plan);

} // namespace planloom
