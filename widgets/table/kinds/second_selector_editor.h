#pragma once

#include "widgets/table/selector_completions.h"

#include <string>

class QWidget;

namespace planloom {

class CellEditor;

/// A value as text that begins with `word`, as "before" or "with", and goes on with a selector, which is
/// completed.
CellEditor *newSecondSelectorEditor(
    std::string word, const SelectorCompletionsSnapshot &completions, QWidget *parent);

} // namespace planloom
