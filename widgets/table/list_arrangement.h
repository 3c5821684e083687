#pragma once

#include <QtCore/QString>

#include "widgets/table/constraint_table_model.h"

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>
#include <vector>

namespace planloom {

/// By what the rows are put together under headings.
enum class RowGrouping : std::uint8_t { None, Rule, Origin };

/// Which rows a list shows, in which order, under which headings.
struct ListArrangement {
    /// A row's key, or a heading's group with the top bit set, or 0 for the row that is not there yet.
    using Id = std::uint64_t;
    static constexpr Id kHeading = Id{1} << 63;

    std::vector<std::string> words{}; ///< That a shown row has in some cell; in lower case (ASCII).
    RowGrouping grouping = RowGrouping::None;
    std::set<int> collapsed{}; ///< Groups whose rows are not shown.
    int sortColumn = -1; ///< -1: as in the text.
    Qt::SortOrder sortOrder = Qt::AscendingOrder;
    std::unordered_set<ConstraintTableModel::RowKey> chosen{}; ///< Rows that the next two speak of.
    bool chosenOnly = false;
    bool chosenFirst = false;

    /// Rows stand as in the text: moving them makes sense.
    bool isInTextOrder() const;
};

/// What a list shows, from top to bottom.
struct ArrangedRows {
    std::vector<ListArrangement::Id> ids{};
    std::vector<int> groupSizes{}; ///< Rows of each group, shown or collapsed; empty without groups.
};

/// The rows of `rows` as `arrangement` wants them, with the row that is not there yet at the end. O(rows log
/// rows).
ArrangedRows arranged(const ConstraintTableModel &rows, const ListArrangement &arrangement);

/// The words of `text`, as a filter takes them.
std::vector<std::string> filterWords(const QString &text);

/// The heading of a group: "split", "not yet rows", "gesture".
QString titleOfGroup(RowGrouping grouping, int group);

} // namespace planloom
