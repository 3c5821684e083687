#include "widgets/table/table_text_editor.h"

#include <QtGui/QContextMenuEvent>
#include <QtGui/QFontDatabase>
#include <QtGui/QHelpEvent>
#include <QtGui/QPainter>
#include <QtGui/QTextBlock>
#include <QtWidgets/QMenu>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QToolTip>

#include "engine/base/place.h"
#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/table/constraint_table_model.h"

#include "engine/table/text_cursor.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace planloom {

namespace {

/// Lines that are put in or taken out at once: about 1 ms.
constexpr std::size_t kLinesAtOnce = 400;

/// The strip left of the text.
class Gutter : public QWidget
{
public:
    explicit Gutter(TableTextEditor *editor)
        : QWidget(editor)
        , m_editor(editor)
    {
    }
    QSize sizeHint() const override { return {m_editor->gutterWidth(), 0}; }

protected:
    void paintEvent(QPaintEvent *event) override { m_editor->paintGutter(event); }

private:
    TableTextEditor *m_editor;
};

/// As one block of the text can show it: other line ends would be blocks of their own.
QString shown(const std::string &piece)
{
    QString text = QString::fromStdString(piece);
    while (text.endsWith(QLatin1Char('\r')))
        text.chop(1);
    for (QChar &c : text) {
        if (c == QLatin1Char('\r') || c == QChar::ParagraphSeparator || c == QChar::LineSeparator
            || c == QChar(0xfdd0) || c == QChar(0xfdd1))
            c = QLatin1Char(' ');
    }
    return text;
}

int padding(const QWidget *widget)
{
    return widget->fontMetrics().horizontalAdvance(QLatin1Char('0'));
}

} // namespace

TableTextEditor::TableTextEditor(ConstraintTableModel *rows, QWidget *parent)
    : QPlainTextEdit(parent)
    , m_rows(rows)
    , m_gutter(new Gutter(this))
    , m_pieces{readLine({})}
{
    setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    setFrameShape(QFrame::NoFrame);
    setLineWrapMode(QPlainTextEdit::NoWrap);
    setUndoRedoEnabled(false);
    setTabChangesFocus(true); // rows have no tabs; the keyboard gets out again
    setAcceptDrops(false); // files dropped anywhere are opened by the window
    setAccessibleName(tr("Constraints as text"));
    setPlaceholderText(tr("One decision a line, such as:\n"
                          "mesh dp=2 tp=2\n"
                          "split all : batch over dp\n"
                          "micro-batches 4\n"
                          "What no row decides, the defaults decide."));
    connect(document(), &QTextDocument::contentsChange, this, &TableTextEditor::takeChange);
    connect(this, &QPlainTextEdit::textChanged, this, [this] {
        if (!m_setting)
            refreshMarks();
    });
    connect(this, &QPlainTextEdit::blockCountChanged, this, &TableTextEditor::placeGutter);
    connect(verticalScrollBar(), &QAbstractSlider::valueChanged, this, &TableTextEditor::refreshMarks);
    connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect &rect, int dy) {
        if (dy != 0)
            m_gutter->scroll(0, dy);
        else
            m_gutter->update(0, rect.y(), m_gutter->width(), rect.height());
    });
    m_fill.setInterval(0);
    connect(&m_fill, &QTimer::timeout, this, &TableTextEditor::fill);
    m_marks.setInterval(0);
    m_marks.setSingleShot(true);
    connect(&m_marks, &QTimer::timeout, this, [this] {
        refreshMarks();
        m_gutter->update();
    });
    const auto refresh = [this] {
        if (isVisible())
            m_marks.start();
    };
    connect(rows, &QAbstractItemModel::dataChanged, this, refresh);
    connect(rows, &ConstraintTableModel::documentSet, this, refresh);
    placeGutter();
}

void TableTextEditor::setDocumentText(const TableDocument &document)
{
    m_wanted = document.pieces();
    m_returns = std::any_of(m_wanted.begin(), m_wanted.end(),
        [](const TableLineSnapshot &line) { return !line->text.empty() && line->text.back() == '\r'; });
    fill();
}

void TableTextEditor::fill()
{
    const bool began = !m_fill.isActive();
    const bool all = fillSome();
    if (!all && began) {
        m_fill.start();
        setReadOnly(true);
    } else if (all && !began) {
        m_fill.stop();
        setReadOnly(false);
    }
    if (m_awaitedLine >= 0 && (all || m_awaitedLine < blockCount() - 1))
        showLine(std::exchange(m_awaitedLine, -1));
    if (isVisible() && (began || all))
        m_marks.start();
}

/// @return whether all lines are there
bool TableTextEditor::fillSome()
{
    const auto same = [](const TableLineSnapshot &a, const TableLineSnapshot &b) {
        return a == b || a->text == b->text;
    };
    std::size_t head = 0;
    while (head < m_wanted.size() && head < m_pieces.size() && same(m_wanted[head], m_pieces[head]))
        ++head;
    std::size_t tail = 0;
    while (tail < m_wanted.size() - head && tail < m_pieces.size() - head
        && same(m_wanted[m_wanted.size() - 1 - tail], m_pieces[m_pieces.size() - 1 - tail]))
        ++tail;
    const std::size_t outdated = m_pieces.size() - tail - head;
    const std::size_t missing = m_wanted.size() - tail - head;
    const std::size_t removed = std::min(outdated, kLinesAtOnce);
    const std::size_t inserted = std::min(missing, kLinesAtOnce);
    const bool all = removed == outdated && inserted == missing;
    if (removed > 0 || inserted > 0) {
        std::vector<TableLineSnapshot> lines(m_wanted.begin() + static_cast<std::ptrdiff_t>(head),
            m_wanted.begin() + static_cast<std::ptrdiff_t>(head + inserted));
        std::size_t begin = head;
        std::size_t end = head + removed;
        // A line that stays, so that there is a block to write in before and after.
        if (begin == end || lines.empty()) {
            if (begin > 0) {
                --begin;
                lines.insert(lines.begin(), m_pieces[begin]);
            } else {
                lines.push_back(m_pieces[end]);
                ++end;
            }
        }
        QString text;
        for (const TableLineSnapshot &line : lines) {
            if (&line != &lines.front())
                text += QLatin1Char('\n');
            text += shown(line->text);
        }
        m_setting = true;
        const QTextBlock first = document()->findBlockByNumber(static_cast<int>(begin));
        const QTextBlock last = document()->findBlockByNumber(static_cast<int>(end) - 1);
        QTextCursor cursor(first);
        cursor.setPosition(last.position() + last.length() - 1, QTextCursor::KeepAnchor);
        cursor.insertText(text);
        m_setting = false;
        if (!all) {
            m_pieces.erase(m_pieces.begin() + static_cast<std::ptrdiff_t>(begin),
                m_pieces.begin() + static_cast<std::ptrdiff_t>(end));
            m_pieces.insert(
                m_pieces.begin() + static_cast<std::ptrdiff_t>(begin), lines.begin(), lines.end());
        }
    }
    if (all)
        m_pieces = m_wanted;
    return all;
}

void TableTextEditor::takeChange(int from, int removed, int added)
{
    if (m_setting || (removed == 0 && added == 0))
        return;
    const QTextBlock firstBlock = document()->findBlock(from);
    QTextBlock lastBlock = document()->findBlock(from + added);
    if (!lastBlock.isValid())
        lastBlock = document()->lastBlock();
    const int first = std::max(firstBlock.blockNumber(), 0);
    const int last = lastBlock.blockNumber();
    const int stays = document()->blockCount() - 1 - last; // blocks behind the change
    TableSplice splice;
    splice.line = first;
    const auto begin = m_pieces.begin() + first;
    const auto end = m_pieces.end() - stays;
    if (end < begin)
        return;
    std::transform(begin, end, std::back_inserter(splice.removed),
        [](const TableLineSnapshot &piece) { return piece->text; });
    for (QTextBlock block = document()->findBlockByNumber(first);
         block.isValid() && block.blockNumber() <= last; block = block.next()) {
        std::string text = block.text().toStdString();
        const bool isLastPiece = block.blockNumber() == document()->blockCount() - 1;
        if (m_returns && !isLastPiece)
            text += '\r';
        splice.inserted.push_back(std::move(text));
    }
    // What the change touched without changing it is no part of it.
    while (!splice.removed.empty() && !splice.inserted.empty()
        && splice.removed.back() == splice.inserted.back()) {
        splice.removed.pop_back();
        splice.inserted.pop_back();
    }
    std::size_t same = 0;
    while (same < splice.removed.size() && same < splice.inserted.size()
        && splice.removed[same] == splice.inserted[same])
        ++same;
    splice.removed.erase(splice.removed.begin(), splice.removed.begin() + static_cast<std::ptrdiff_t>(same));
    splice.inserted.erase(
        splice.inserted.begin(), splice.inserted.begin() + static_cast<std::ptrdiff_t>(same));
    splice.line += static_cast<std::int32_t>(same);
    if (splice.removed.empty() && splice.inserted.empty())
        return;
    const auto place = m_pieces.begin() + splice.line;
    m_pieces.erase(place, place + static_cast<std::ptrdiff_t>(splice.removed.size()));
    std::vector<TableLineSnapshot> made;
    for (const std::string &text : splice.inserted) {
        TableLine line;
        line.text = text;
        made.push_back(std::make_shared<const TableLine>(std::move(line)));
    }
    m_pieces.insert(m_pieces.begin() + splice.line, made.begin(), made.end());
    Q_EMIT edited({{std::move(splice)}});
}

void TableTextEditor::showLine(int line)
{
    const QTextBlock block = document()->findBlockByNumber(line);
    m_awaitedLine = isFilling() && line >= blockCount() - 1 ? line : -1;
    if (m_awaitedLine >= 0 || !block.isValid())
        return;
    if (currentLine() != line)
        setTextCursor(QTextCursor(block));
    ensureCursorVisible();
}

std::vector<std::int32_t> TableTextEditor::selectedLines() const
{
    const QTextCursor cursor = textCursor();
    const int first = document()->findBlock(cursor.selectionStart()).blockNumber();
    const int last = document()->findBlock(cursor.selectionEnd()).blockNumber();
    std::vector<std::int32_t> lines;
    for (int line = first; line <= last; ++line)
        lines.push_back(line);
    return lines;
}

void TableTextEditor::markSyntax(const QTextBlock &block, QList<QTextEdit::ExtraSelection> &selections) const
{
    const Palette &palette = paletteFor(*this);
    const QString text = block.text();
    const auto mark = [&](qsizetype begin, qsizetype length, const QColor &colour) {
        QTextEdit::ExtraSelection selection;
        selection.cursor = QTextCursor(block);
        selection.cursor.setPosition(block.position() + static_cast<int>(begin));
        selection.cursor.setPosition(
            block.position() + static_cast<int>(begin + length), QTextCursor::KeepAnchor);
        selection.format.setForeground(colour);
        selections.append(selection);
    };
    static constexpr std::array<const char *, 16> kWords{"by", "over", "then", "into", "before", "at", "per",
        "devices", "all", "forward", "backward", "optimizer", "set", "of", "memory", "time"};
    static constexpr std::array<const char *, 5> kKinds{"name", "kind", "in", "layer", "weight"};
    bool atStart = true;
    bool quotes = false;
    for (qsizetype i = 0; i < text.size();) {
        const QChar c = text[i];
        if (quotes || c == QLatin1Char('"')) {
            if (c == QLatin1Char('\\') && quotes)
                ++i;
            else if (c == QLatin1Char('"'))
                quotes = !quotes;
            ++i;
            continue;
        }
        if (c == QLatin1Char('#')) {
            mark(i, text.size() - i, palette.textMuted);
            return;
        }
        const auto isWord = [](QChar w) {
            return w.unicode() < 128 && isWordCharacter(static_cast<char>(w.unicode()));
        };
        if (!isWord(c)) {
            ++i;
            continue;
        }
        qsizetype end = i;
        while (end < text.size() && isWord(text[end]))
            ++end;
        const std::string word = text.mid(i, end - i).toStdString();
        if (atStart && word == "off") {
            const auto hash = noteBegin(text.toStdString());
            mark(0, hash == std::string::npos ? text.size() : static_cast<qsizetype>(i) + 3,
                palette.textMuted);
            if (hash == std::string::npos)
                return;
        } else if (atStart && word == "prefer") {
            mark(i, end - i, palette.textMuted);
            while (end < text.size() && (text[end].isSpace() || text[end].isDigit()))
                ++end; // its weight
        } else if (atStart && findRuleWord(word)) {
            mark(i, end - i, palette.accent);
            atStart = false;
        } else if (end < text.size() && text[end] == QLatin1Char(':')
            && std::find(kKinds.begin(), kKinds.end(), word) != kKinds.end()) {
            mark(i, end - i + 1, palette.success);
            atStart = false;
        } else {
            if (std::find(kWords.begin(), kWords.end(), word) != kWords.end())
                mark(i, end - i, palette.textMuted);
            atStart = false;
        }
        i = end;
    }
}

int TableTextEditor::errorColumnAt(int line) const
{
    const int row = m_rows->rowOfLine(line);
    if (row < 0 || !m_rows->isError(row))
        return -1;
    const TableLine &text = m_rows->tableLineAt(row);
    if (!text.error) // a row that can't hold: all of it
        return static_cast<int>(std::min(text.text.find_first_not_of(" \t"), text.text.size()));
    const Place place = placeOf(*text.error);
    const auto *at = std::get_if<TextPlace>(&place);
    const auto bytes = static_cast<std::size_t>(at ? std::max(at->column - 1, 0) : 0);
    return static_cast<int>(QString::fromStdString(text.text.substr(0, bytes)).size());
}

void TableTextEditor::refreshMarks()
{
    if (!isVisible())
        return;
    const Palette &palette = paletteFor(*this);
    QList<QTextEdit::ExtraSelection> selections;
    const int height = viewport()->height();
    for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
        if (blockBoundingGeometry(block).translated(contentOffset()).top() > height)
            break;
        const int line = block.blockNumber();
        const int row = m_rows->rowOfLine(line);
        const bool error = row >= 0 && m_rows->isError(row);
        const bool warning = row >= 0 && !error && !messageAt(line).isEmpty();
        if (error || warning) {
            QTextEdit::ExtraSelection back;
            back.cursor = QTextCursor(block);
            back.format.setProperty(QTextFormat::FullWidthSelection, true);
            back.format.setBackground(mixed(palette.surface, error ? palette.error : palette.warning, 0.10));
            selections.append(back);
        }
        markSyntax(block, selections);
        if (!error)
            continue;
        QTextEdit::ExtraSelection wave;
        wave.cursor = QTextCursor(block);
        const int column = std::clamp(errorColumnAt(line), 0, std::max(block.length() - 2, 0));
        wave.cursor.setPosition(block.position() + column);
        wave.cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
        wave.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        wave.format.setUnderlineColor(palette.error);
        selections.append(wave);
    }
    setExtraSelections(selections);
}

QString TableTextEditor::messageAt(int line) const
{
    const int row = m_rows->rowOfLine(line);
    if (row < 0)
        return {};
    const QString problem = m_rows->problemAt(row);
    if (!problem.isEmpty())
        return problem;
    return m_rows->warningAt(row);
}

int TableTextEditor::gutterWidth() const
{
    const QString widest = QString::number(std::max(blockCount(), 10));
    return fontMetrics().horizontalAdvance(widest)
        + fontMetrics().horizontalAdvance(QStringLiteral("99,999 ops")) + 3 * padding(this);
}

void TableTextEditor::paintGutter(QPaintEvent *event)
{
    QPainter painter(m_gutter);
    const Palette &palette = paletteFor(*this);
    painter.fillRect(event->rect(), palette.surfaceRaised);
    painter.setFont(font());
    const int gap = padding(this);
    const int height = fontMetrics().height();
    const int numbers = fontMetrics().horizontalAdvance(QString::number(std::max(blockCount(), 10)));
    for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
        const QRectF box = blockBoundingGeometry(block).translated(contentOffset());
        if (box.top() > event->rect().bottom())
            break;
        const int top = static_cast<int>(box.top());
        const int line = block.blockNumber();
        painter.setPen(line == currentLine() ? palette.text : palette.textMuted);
        painter.drawText(QRect(gap, top, numbers, height), Qt::AlignRight, QString::number(line + 1));
        const int row = m_rows->rowOfLine(line);
        if (row < 0)
            continue;
        const QRect right(2 * gap + numbers, top, m_gutter->width() - 3 * gap - numbers, height);
        if (m_rows->isError(row)) {
            painter.setPen(palette.error);
            painter.drawText(right, Qt::AlignRight, QStringLiteral("✖"));
            continue;
        }
        QString binds = m_rows->index(row, static_cast<int>(TableColumn::Binds)).data().toString();
        binds.truncate(
            binds.indexOf(QStringLiteral(" · ")) < 0 ? binds.size() : binds.indexOf(QStringLiteral(" · ")));
        const bool warning = !messageAt(line).isEmpty();
        painter.setPen(warning ? palette.warning : palette.textMuted);
        painter.drawText(right, Qt::AlignRight, warning ? QStringLiteral("⚠ ") + binds : binds);
    }
    painter.setPen(palette.grid);
    painter.drawLine(
        m_gutter->width() - 1, event->rect().top(), m_gutter->width() - 1, event->rect().bottom());
}

void TableTextEditor::placeGutter()
{
    setViewportMargins(gutterWidth(), 0, 0, 0);
    const QRect inside = contentsRect();
    m_gutter->setGeometry(inside.left(), inside.top(), gutterWidth(), inside.height());
}

bool TableTextEditor::event(QEvent *event)
{
    // Undo and redo are the design's: they may not be swallowed as those of a text.
    if (event->type() == QEvent::ShortcutOverride) {
        auto *key = static_cast<QKeyEvent *>(event); // by its type
        if (key->matches(QKeySequence::Undo) || key->matches(QKeySequence::Redo)) {
            key->accept();
            return true;
        }
    }
    return QPlainTextEdit::event(event);
}

void TableTextEditor::keyPressEvent(QKeyEvent *event)
{
    if (event->matches(QKeySequence::Undo)) {
        Q_EMIT undoAsked();
        return;
    }
    if (event->matches(QKeySequence::Redo)) {
        Q_EMIT redoAsked();
        return;
    }
    QPlainTextEdit::keyPressEvent(event);
}

void TableTextEditor::contextMenuEvent(QContextMenuEvent *event)
{
    // As Qt's own, but with the design's actions.
    auto *menu = createStandardContextMenu(event->pos());
    menu->setAttribute(Qt::WA_DeleteOnClose);
    const auto all = menu->actions();
    for (QAction *action : all) {
        const QString name = action->objectName();
        if (name == QLatin1String("edit-undo") || name == QLatin1String("edit-redo"))
            menu->removeAction(action);
    }
    if (!menu->actions().isEmpty() && menu->actions().constFirst()->isSeparator())
        menu->removeAction(menu->actions().constFirst());
    menu->addSeparator();
    menu->addActions(actions());
    menu->popup(event->globalPos());
}

void TableTextEditor::resizeEvent(QResizeEvent *event)
{
    QPlainTextEdit::resizeEvent(event);
    placeGutter();
    refreshMarks();
}

void TableTextEditor::showEvent(QShowEvent *event)
{
    QPlainTextEdit::showEvent(event);
    refreshMarks();
}

bool TableTextEditor::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // by its type
        const QString message = messageAt(cursorForPosition(help->pos()).blockNumber());
        if (message.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), message, this);
        return true;
    }
    return QPlainTextEdit::viewportEvent(event);
}

void TableTextEditor::changeEvent(QEvent *event)
{
    QPlainTextEdit::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange) {
        placeGutter();
        refreshMarks();
    }
}

} // namespace planloom

#include "moc_table_text_editor.cpp"
