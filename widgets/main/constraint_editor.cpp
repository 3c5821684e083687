#include "widgets/main/constraint_editor.h"

#include <QtCore/QRegularExpression>
#include <QtGui/QFontDatabase>
#include <QtGui/QHelpEvent>
#include <QtGui/QPainter>
#include <QtGui/QSyntaxHighlighter>
#include <QtGui/QTextBlock>
#include <QtWidgets/QToolTip>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"

namespace planloom {

namespace {

constexpr int kGutterPadding = 8;

/// Colours words of the table's language; decides nothing about what is right.
class TableHighlighter : public QSyntaxHighlighter
{
public:
    TableHighlighter(QTextDocument *document, const QWidget *widget)
        : QSyntaxHighlighter(document), m_widget(widget),
          m_verb(QStringLiteral("^\\s*(?:off\\s+)?(mesh|micro-batches|split|replicate|coshard|place|order|schedule|stage|"
                                "recompute|zero1)\\b")),
          m_selector(QStringLiteral("\\b(name|kind|in|layer|weight):")),
          m_word(QStringLiteral("\\b(by|over|then|into|before|at|per|devices|all|forward|backward|optimizer|set)\\b")),
          m_off(QStringLiteral("^\\s*off\\b"))
    {
    }

protected:
    void highlightBlock(const QString &text) override
    {
        const Palette &palette = paletteFor(*m_widget);
        const int note = static_cast<int>(text.indexOf(QLatin1Char('#')));
        QTextCharFormat verb;
        verb.setForeground(palette.accent);
        verb.setFontWeight(QFont::DemiBold);
        QTextCharFormat selector;
        selector.setForeground(palette.success);
        QTextCharFormat word;
        word.setForeground(palette.textMuted);
        apply(text, m_word, word, 0);
        apply(text, m_selector, selector, 0);
        apply(text, m_verb, verb, 1);
        if (m_off.match(text).hasMatch()) {
            QTextCharFormat off;
            off.setForeground(palette.textMuted);
            off.setFontStrikeOut(true);
            setFormat(0, static_cast<int>(text.size()), off);
        }
        if (note >= 0) {
            QTextCharFormat comment;
            comment.setForeground(palette.textMuted);
            comment.setFontItalic(true);
            setFormat(note, static_cast<int>(text.size()) - note, comment);
        }
    }

private:
    void apply(const QString &text, const QRegularExpression &expression, const QTextCharFormat &format, int group)
    {
        auto matches = expression.globalMatch(text);
        while (matches.hasNext()) {
            const auto match = matches.next();
            setFormat(static_cast<int>(match.capturedStart(group)), static_cast<int>(match.capturedLength(group)), format);
        }
    }

    const QWidget *m_widget;
    QRegularExpression m_verb;
    QRegularExpression m_selector;
    QRegularExpression m_word;
    QRegularExpression m_off;
};

/// The strip left of the text.
class Gutter : public QWidget
{
public:
    explicit Gutter(ConstraintEditor *editor) : QWidget(editor), m_editor(editor) { }
    QSize sizeHint() const override { return {m_editor->gutterWidth(), 0}; }

protected:
    void paintEvent(QPaintEvent *event) override { m_editor->paintGutter(event); }

private:
    ConstraintEditor *m_editor;
};

QString sentence(const Error &error)
{
    QString text = QString::fromStdString(error.message);
    if (!error.advice.empty())
        text += QStringLiteral("\n") + QString::fromStdString(error.advice);
    return text;
}

} // namespace

ConstraintEditor::ConstraintEditor(QWidget *parent)
    : QPlainTextEdit(parent), m_gutter(new Gutter(this)),
      m_highlighter(new TableHighlighter(document(), this))
{
    setFont(QFontDatabase::systemFont(QFontDatabase::FixedFont));
    setFrameShape(QFrame::NoFrame);
    setLineWrapMode(QPlainTextEdit::NoWrap);
    setAcceptDrops(false); // files dropped anywhere are opened by the window
    setAccessibleName(tr("Constraints as text"));
    setPlaceholderText(tr("One decision a line, such as:\n"
                          "mesh dp=2 tp=2\n"
                          "split all : batch over dp\n"
                          "micro-batches 4\n"
                          "What no row decides, the defaults decide."));
    connect(this, &QPlainTextEdit::blockCountChanged, this, [this] { setViewportMargins(gutterWidth(), 0, 0, 0); });
    connect(this, &QPlainTextEdit::updateRequest, this, [this](const QRect &rect, int dy) {
        if (dy != 0)
            m_gutter->scroll(0, dy);
        else
            m_gutter->update(0, rect.y(), m_gutter->width(), rect.height());
    });
    connect(this, &QPlainTextEdit::textChanged, this, [this] {
        if (!m_setting)
            Q_EMIT textEdited();
    });
    setViewportMargins(gutterWidth(), 0, 0, 0);
}

void ConstraintEditor::setTableText(const QString &text)
{
    if (text == toPlainText())
        return;
    m_setting = true;
    // As an edit, so that undo brings the text before back.
    QTextCursor cursor(document());
    cursor.beginEditBlock();
    cursor.select(QTextCursor::Document);
    cursor.insertText(text);
    cursor.endEditBlock();
    m_setting = false;
    moveCursor(QTextCursor::Start);
}

void ConstraintEditor::setReports(const PlanUpdateSnapshot &update)
{
    m_marks.clear();
    if (update) {
        for (const RowLine &row : update->rows) {
            Mark mark;
            mark.text = QString::fromStdString(formatCount(row.report.bound));
            if (row.report.error) {
                mark.error = true;
                mark.message = sentence(*row.report.error);
            } else if (!row.report.warning.empty()) {
                mark.warning = true;
                mark.message = QString::fromStdString(row.report.warning);
            } else {
                mark.message = tr("Selects %1 operators, binds %2")
                                   .arg(QString::fromStdString(formatCount(row.report.selected)), mark.text);
            }
            m_marks[row.line] = mark;
        }
        for (const Error &error : update->textErrors) {
            if (const auto place = textPlaceOf(error))
                m_marks[place->line - 1] = {true, false, {}, sentence(error), place->column - 1};
        }
    }
    highlight();
    m_gutter->update();
}

void ConstraintEditor::highlight()
{
    const Palette &palette = paletteFor(*this);
    QList<QTextEdit::ExtraSelection> selections;
    for (const auto &[line, mark] : m_marks) {
        if (!mark.error && !mark.warning)
            continue;
        const QTextBlock block = document()->findBlockByNumber(line);
        if (!block.isValid())
            continue;
        QTextEdit::ExtraSelection back;
        back.cursor = QTextCursor(block);
        back.format.setProperty(QTextFormat::FullWidthSelection, true);
        back.format.setBackground(mixed(palette.surface, mark.error ? palette.error : palette.warning, 0.12));
        selections.append(back);
        QTextEdit::ExtraSelection wave;
        wave.cursor = QTextCursor(block);
        if (mark.column > 0 && mark.column < block.length() - 1)
            wave.cursor.setPosition(block.position() + mark.column);
        wave.cursor.movePosition(QTextCursor::EndOfBlock, QTextCursor::KeepAnchor);
        wave.format.setUnderlineStyle(QTextCharFormat::WaveUnderline);
        wave.format.setUnderlineColor(mark.error ? palette.error : palette.warning);
        selections.append(wave);
    }
    setExtraSelections(selections);
}

void ConstraintEditor::showLine(int line)
{
    const QTextBlock block = document()->findBlockByNumber(line);
    if (!block.isValid())
        return;
    setTextCursor(QTextCursor(block));
    centerCursor();
}

QString ConstraintEditor::messageAt(int line) const
{
    const auto mark = m_marks.find(line);
    return mark == m_marks.end() ? QString() : mark->second.message;
}

int ConstraintEditor::gutterWidth() const
{
    const QString widest = QString::number(std::max(blockCount(), 10));
    return fontMetrics().horizontalAdvance(widest) + fontMetrics().horizontalAdvance(QStringLiteral("99,999"))
        + 3 * kGutterPadding;
}

void ConstraintEditor::paintGutter(QPaintEvent *event)
{
    QPainter painter(m_gutter);
    const Palette &palette = paletteFor(*this);
    painter.fillRect(event->rect(), palette.surfaceRaised);
    painter.setFont(font());
    QTextBlock block = firstVisibleBlock();
    const int height = fontMetrics().height();
    const int numbers = fontMetrics().horizontalAdvance(QString::number(std::max(blockCount(), 10)));
    for (; block.isValid(); block = block.next()) {
        const QRectF box = blockBoundingGeometry(block).translated(contentOffset());
        if (box.top() > event->rect().bottom())
            break;
        const int top = static_cast<int>(box.top());
        painter.setPen(palette.textMuted);
        painter.drawText(QRect(kGutterPadding, top, numbers, height), Qt::AlignRight,
            QString::number(block.blockNumber() + 1));
        const auto mark = m_marks.find(block.blockNumber());
        if (mark == m_marks.end())
            continue;
        const QRect right(2 * kGutterPadding + numbers, top, m_gutter->width() - 3 * kGutterPadding - numbers, height);
        if (mark->second.error || mark->second.warning) {
            painter.setPen(mark->second.error ? palette.error : palette.warning);
            painter.drawText(right, Qt::AlignRight, mark->second.error ? QStringLiteral("✖") : QStringLiteral("⚠"));
        } else {
            painter.setPen(palette.success);
            painter.drawText(right, Qt::AlignRight, mark->second.text);
        }
    }
    painter.setPen(palette.grid);
    painter.drawLine(m_gutter->width() - 1, event->rect().top(), m_gutter->width() - 1, event->rect().bottom());
}

int ConstraintEditor::lineAt(const QPoint &position) const
{
    return cursorForPosition(position).blockNumber();
}

void ConstraintEditor::resizeEvent(QResizeEvent *event)
{
    QPlainTextEdit::resizeEvent(event);
    const QRect inside = contentsRect();
    m_gutter->setGeometry(inside.left(), inside.top(), gutterWidth(), inside.height());
}

bool ConstraintEditor::viewportEvent(QEvent *event)
{
    if (event->type() == QEvent::ToolTip) {
        const auto *help = static_cast<QHelpEvent *>(event); // by its type
        const QString message = messageAt(lineAt(help->pos()));
        if (message.isEmpty())
            QToolTip::hideText();
        else
            QToolTip::showText(help->globalPos(), message, this);
        return true;
    }
    return QPlainTextEdit::viewportEvent(event);
}

void ConstraintEditor::changeEvent(QEvent *event)
{
    QPlainTextEdit::changeEvent(event);
    if (event->type() == QEvent::PaletteChange) {
        m_highlighter->rehighlight();
        highlight();
    }
}

} // namespace planloom
