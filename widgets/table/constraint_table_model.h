#pragma once

#include <QtCore/QAbstractTableModel>
#include <QtCore/QTimer>

#include "widgets/design/plan_update.h"
#include "widgets/table/id_index.h"
#include "widgets/table/row_cells.h"

#include "engine/table/table_document.h"

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace planloom {

/// What a row's selection comes to.
struct RowReach {
    std::int32_t operators = -1; ///< Bound by the row; -1 while unknown.
    std::int32_t devices = -1; ///< On which they run; -1 while unknown.
    friend bool operator==(const RowReach &, const RowReach &) = default;
};

/// What the solver says of a row: what it costs, the step time gained if it were off.
struct RowPrice {
    enum class State : std::uint8_t { Unknown, Asked, Known, Needed, Failed };
    State state = State::Unknown; ///< Asked: it is being found.
    double seconds = 0; ///< Positive: off would be faster.
    std::int32_t editsAgo = 0; ///< How many edits of the table it is old.
    std::string remark{}; ///< Of Needed and Failed: why.
    bool isFound() const { return state != State::Unknown && state != State::Asked; }
    friend bool operator==(const RowPrice &, const RowPrice &) = default;
};

/// The constraint table as a grid: one model row for each line that holds a row or should; remarks belong to
/// the note of the row below them.
///
/// Changes of the document are told as rows inserted, removed and changed; rows keep an identity while they
/// stay. Edits go out through the function given, as steps of the history with words for people; the model
/// changes when the document does.
class ConstraintTableModel : public QAbstractTableModel
{
    Q_OBJECT
public:
    using RowKey = std::uint64_t; ///< Of one row for as long as it is there.
    /// Carries an edit out. @return false if it could not be
    using Edit = std::function<bool(const QString &words, const TableEdit &edit, const QString &mergeKey)>;

    enum Role {
        LineRole = Qt::UserRole + 1, ///< int: 0-based line of the document.
        KeyRole, ///< qulonglong: RowKey.
        ProblemRole, ///< QString: the sentence of an error at this cell; empty for none.
        WarningRole, ///< QString: the same for a warning.
        EnabledRole, ///< bool
        SortRole, ///< What to sort by: numbers or lower-case text.
        OldRole, ///< bool: the value may not be that of the rows as they are.
        ChosenRole, ///< bool: a row of the solver, which chooses it anew unless it is kept.
        RuleRole, ///< QString: the row's rule word, for any column.
    };

    explicit ConstraintTableModel(QObject *parent = nullptr);

    void setEdit(Edit edit) { m_edit = std::move(edit); }
    /// Takes the document over; O(lines), signals for what differs.
    void setDocument(const TableDocument &document);
    const TableDocument &document() const { return m_document; }
    /// What the engine says of the rows as they are; null takes it away.
    void setUpdate(const PlanUpdateSnapshot &update);
    /// Operators and devices of lines, found elsewhere. Belongs to the update of `revision`.
    void setReach(std::uint64_t revision, const std::vector<std::pair<std::int32_t, RowReach>> &reach);
    void setPrice(RowKey key, const RowPrice &price);
    void agePrices(); ///< The table has been edited.
    void clearPrices();
    /// Pairwise conflicts, by line: a sentence that names the other rows.
    void setConflicts(std::map<std::int32_t, QString> conflicts);

    int lineAt(int row) const;
    int rowOfLine(int line) const; ///< -1 if the line holds none.
    RowKey keyAt(int row) const;
    int rowOfKey(RowKey key) const; ///< -1 if it is gone.
    const TableLine &tableLineAt(int row) const;
    const RowCells &cellsAt(int row) const;
    const RowPrice &priceAt(int row) const;
    bool isError(int row) const; ///< The line is no row, or can't hold.
    /// What is to be noticed about a row; empty for nothing.
    QString warningAt(int row) const;
    bool isChosen(int row) const; ///< As `ChosenRole`.
    QString problemAt(int row) const; ///< Its sentence; empty if it has none.
    QString noteAt(int row) const; ///< With the remarks above.
    std::string noteKeyAt(int row) const; ///< The same to search in and to sort by: in lower case (ASCII).
    double sortNumberAt(
        int row, TableColumn column) const; ///< What columns of numbers and switches are sorted by.
    int firstLineAt(int row) const; ///< Of the row and the remarks that stand directly above it.
    /// "row 4, value: by 2 over tp, error: ..." for screen readers.
    QString accessibleText(int row, int column) const;

    /// The edit that gives the cells' `column` the text `text` in all of `rows`; empty if nothing changes.
    TableEdit cellEdit(const std::vector<int> &rows, TableColumn column, const QString &text) const;
    /// "change row 3 to split layer:0 : batch by 4", "change the value of 5 rows to by 4".
    QString wordsFor(const std::vector<int> &rows, TableColumn column, const QString &text) const;
    /// Writes a cell in several rows, as one step.
    bool writeCells(const std::vector<int> &rows, TableColumn column, const QString &text);
    bool setRowsEnabled(const std::vector<int> &rows, bool enabled);
    bool apply(const QString &words, const TableEdit &edit, const QString &mergeKey = {}) const;

    int rowCount(const QModelIndex &parent = {}) const override;
    int columnCount(const QModelIndex &parent = {}) const override;
    QVariant data(const QModelIndex &index, int role = Qt::DisplayRole) const override;
    bool setData(const QModelIndex &index, const QVariant &value, int role = Qt::EditRole) override;
    Qt::ItemFlags flags(const QModelIndex &index) const override;
    QVariant headerData(int section, Qt::Orientation orientation, int role = Qt::DisplayRole) const override;

Q_SIGNALS:
    void documentAboutToBeSet(); ///< Before the signals of a change of the document.
    void documentSet(); ///< Behind the signals of a change of the document.

private:
    /// A line taken apart; made when asked for, or while idle.
    struct Prepared {
        RowCells cells{};
        std::optional<CellProblem> problem{}; ///< Of lines that are no rows.
    };
    /// What the engine has to say about a row.
    struct Complaint {
        std::optional<Error> error{};
        std::string warning{};
        bool leftOut = false; ///< What `warning` says is that this preference does not hold.
        std::string measured{}; ///< Of a limit that holds: at what; see `RowLine::remark`.
        friend bool operator==(const Complaint &, const Complaint &) = default;
    };
    /// Kept small: 10,000 of them are made at once.
    struct Entry {
        RowKey key = 0;
        std::int32_t line = 0;
        TableLineSnapshot text{};
        std::vector<TableLineSnapshot> remarks{}; ///< Lines above it that are neither rows nor should be.
        mutable std::shared_ptr<const Prepared> prepared{};
        std::shared_ptr<const Complaint> complaint{}; ///< Null for none.
        RowReach reach{};
        RowPrice price{};

        const RowCells &cells() const { return prepared->cells; }
        const Error *error() const { return complaint && complaint->error ? &*complaint->error : nullptr; }
    };
    /// A run of rows to take out at `row`, and of new rows (by number) to put there, in the numbering of that
    /// moment.
    struct Splice {
        int row = 0;
        int removed = 0;
        int firstNew = 0;
        int inserted = 0;
    };

    const Entry &at(int row) const { return *m_entries[static_cast<std::size_t>(row)]; }
    void prepare(const Entry &entry) const;
    void prepareSome();
    /// Takes what is put in out of `made`.
    void carryOut(
        const std::vector<Splice> &splices, std::vector<std::unique_ptr<Entry>> &made, int firstMade);
    void adoptReports();
    void changed(int first, int last);
    QString noteOf(const Entry &entry) const;
    QString displayText(const Entry &entry, TableColumn column) const;
    static bool isExceeded(const Entry &entry);
    QString solverText(const Entry &entry) const;
    QString solverTip(const Entry &entry) const;
    QString problemText(const Entry &entry, TableColumn column) const;
    QString warningText(const Entry &entry, TableColumn column) const;
    QString engineSentence(const Error &error) const;
    QString withRowNumbers(const QString &text) const;

    Edit m_edit;
    TableDocument m_document;
    std::vector<std::unique_ptr<Entry>> m_entries; ///< Rows are large, and many move when one is put in.
    PlanUpdateSnapshot m_update;
    bool m_old = false; ///< The rows have changed since the update.
    std::map<std::int32_t, QString> m_conflicts;
    RowKey m_nextKey = 1;
    mutable IdIndex m_rowOfKey; ///< Made when asked for.
    mutable bool m_keysValid = false;
    QTimer m_idle;
    int m_prepared = 0;
};

/// "Constraint column" heads as shown and said.
QString titleOf(TableColumn column);
QString meaningOf(TableColumn column);
/// One line of what a rule word means, for people who don't know it.
QString meaningOfRule(const QString &word);

} // namespace planloom
