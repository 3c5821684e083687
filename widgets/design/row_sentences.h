#pragma once

#include <QtCore/QString>

#include "engine/table/table_document.h"
#include "widgets/design/plan_update.h"

#include <initializer_list>
#include <string>

namespace planloom {

// What the engine says, as the window says it. The engine's messages are clauses that fit behind a place
// ("row 3: the mesh needs ..."), and count rows; a person reads sentences, and the numbers of the table's
// lines, of which some hold no row.

/// `message` with "row 3" replaced by the number of the line that the plan's third row stands in.
std::string withLineNumbers(const std::string &message, const PlanUpdate &update);

/// The clauses that are not empty as sentences, one behind the other: "The mesh needs 6 devices, the plan
/// has 4. Make an axis smaller." What begins with a name or a number stays as it begins.
QString sentences(std::initializer_list<std::string> clauses);

/// What an edit of the rows' text does, for the history: "edit row 3", "write rows 3-5", "remove row 4".
QString wordsOfTextEdit(const TableEdit &edit);

} // namespace planloom
