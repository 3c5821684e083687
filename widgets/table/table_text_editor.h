#pragma once

#include <QtCore/QTimer>
#include <QtWidgets/QPlainTextEdit>

#include "engine/table/table_document.h"

#include <string>
#include <vector>

namespace planloom {

class ConstraintTableModel;

/// The constraint table as text: the same document as the grid's, with line numbers, how many operators each
/// row binds, and a mark on the character where a line stops being a row.
///
/// It has no undo of its own: every change goes to the design's history, and undo asks for that. Marks are
/// made for the lines on the screen alone, so that 10,000 rows are as quick as ten.
class TableTextEditor : public QPlainTextEdit
{
    Q_OBJECT
public:
    explicit TableTextEditor(ConstraintTableModel *rows, QWidget *parent = nullptr);

    /// Shows `document`; what is the same stays where it is, cursor included. Many new lines come in pieces,
    /// one an event; until all are there nothing can be typed.
    void setDocumentText(const TableDocument &document);
    bool isFilling() const { return m_fill.isActive(); }
    /// Puts the cursor on line `line` (0-based) and shows it, as soon as it is there.
    void showLine(int line);
    int currentLine() const { return textCursor().blockNumber(); }
    /// Lines that the selection touches, ascending.
    std::vector<std::int32_t> selectedLines() const;

    int gutterWidth() const;
    void paintGutter(QPaintEvent *event);
    /// The sentence on a line, for its tooltip; empty for none.
    QString messageAt(int line) const;
    /// Where on `line` the mark of its error begins, in characters from 0; -1 if it has none.
    int errorColumnAt(int line) const;

Q_SIGNALS:
    /// The person changed lines of the document.
    void edited(planloom::TableEdit edit);
    void undoAsked();
    void redoAsked();

protected:
    bool event(QEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void showEvent(QShowEvent *event) override;
    bool viewportEvent(QEvent *event) override;
    void changeEvent(QEvent *event) override;
    void contextMenuEvent(QContextMenuEvent *event) override;

private:
    void takeChange(int from, int removed, int added);
    bool fillSome();
    void fill();
    void refreshMarks();
    void placeGutter();
    void markSyntax(const QTextBlock &block, QList<QTextEdit::ExtraSelection> &selections) const;

    ConstraintTableModel *m_rows;
    QWidget *m_gutter;
    std::vector<TableLineSnapshot> m_pieces; ///< The lines shown, and an empty one behind the last line end.
    std::vector<TableLineSnapshot> m_wanted; ///< What they are to be.
    QTimer m_fill; ///< On while some are still to come.
    QTimer m_marks; ///< Gathers what the rows have to say.
    int m_awaitedLine = -1; ///< To be shown when it is there.
    bool m_returns = false; ///< Lines end in carriage returns, which are not shown.
    bool m_setting = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::TableEdit)
