#include "widgets/table/cell_editors.h"

#include <QtCore/QPointer>
#include <QtCore/QStringListModel>
#include <QtCore/QTimer>
#include <QtGui/QKeyEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QApplication>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QCompleter>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QPlainTextEdit>

#include "widgets/common/palette.h"

#include <algorithm>

namespace planloom {

namespace {

constexpr std::size_t kMostSuggestions = 40;

} // namespace

CellEditor::CellEditor(QWidget *parent)
    : QWidget(parent)
    , m_layout(new QHBoxLayout(this))
{
    m_layout->setContentsMargins(0, 0, 0, 0);
    m_layout->setSpacing(2);
    setAutoFillBackground(true);
    setFocusPolicy(Qt::StrongFocus);
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget *old, QWidget *now) {
        const auto isOurs = [this](const QWidget *widget) {
            return widget && (widget == this || isAncestorOf(widget));
        };
        if (!isOurs(old) || isOurs(now) || !now)
            return;
        // Later, and not among this editor's own events: one that is being closed (Esc) loses the focus too.
        QTimer::singleShot(0, parentWidget(), [this, isOurs, self = QPointer<CellEditor>(this)] {
            if (self && !m_finished && isVisible() && !isOurs(QApplication::focusWidget())
                && !QApplication::activePopupWidget())
                Q_EMIT accepted();
        });
    });
}

CellEditor::~CellEditor()
{
    delete m_hint;
}

void CellEditor::setChoices(const ValueChoices &) { }

void CellEditor::addField(QWidget *field, int stretch)
{
    m_layout->addWidget(field, stretch);
    if (m_fields.empty())
        setFocusProxy(field);
    m_fields.push_back(field);
}

void CellEditor::touch()
{
    m_touched = true;
    recheck();
    Q_EMIT changed();
}

void CellEditor::finish()
{
    m_finished = true;
    if (m_hint)
        m_hint->hide();
}

void CellEditor::setUntouched()
{
    m_touched = false;
}

void CellEditor::recheck()
{
    const auto problem = m_check ? m_check(text()) : std::nullopt;
    const QString message = problem && m_touched ? QString::fromStdString(problem->message) : QString();
    if (message == m_problem)
        return;
    m_problem = message;
    update();
    if (m_problem.isEmpty()) {
        if (m_hint)
            m_hint->hide();
        return;
    }
    if (!m_hint) {
        m_hint = new QLabel(parentWidget());
        m_hint->setAutoFillBackground(true);
        m_hint->setFrameShape(QFrame::Box);
        m_hint->setMargin(3);
        m_hint->setWordWrap(true);
        m_hint->setFocusPolicy(Qt::NoFocus);
        m_hint->setAttribute(Qt::WA_TransparentForMouseEvents);
    }
    const Palette &palette = paletteFor(*this);
    QPalette colours = m_hint->palette();
    colours.setColor(QPalette::Window, mixed(palette.surface, palette.error, 0.10));
    colours.setColor(QPalette::WindowText, palette.text);
    m_hint->setPalette(colours);
    m_hint->setText(QStringLiteral("✖ ") + m_problem);
    setAccessibleDescription(m_problem);
    placeHint();
    m_hint->show();
    m_hint->raise();
}

void CellEditor::placeHint()
{
    const int width = std::min(parentWidget()->width() - 8, fontMetrics().averageCharWidth() * 70);
    m_hint->setFixedWidth(std::max(width, 80));
    m_hint->setFixedHeight(m_hint->heightForWidth(m_hint->width()));
    int y = geometry().bottom() + 2;
    if (y + m_hint->height() > parentWidget()->height() && geometry().top() - m_hint->height() - 2 >= 0)
        y = geometry().top() - m_hint->height() - 2;
    const int x =
        std::clamp(geometry().left(), 0, std::max(0, parentWidget()->width() - m_hint->width() - 4));
    m_hint->move(x, y);
}

bool CellEditor::focusNextPrevChild(bool next)
{
    if (m_finished || m_leaving)
        return QWidget::focusNextPrevChild(next);
    const auto current = std::find_if(m_fields.begin(), m_fields.end(), [](const QWidget *field) {
        return field->hasFocus() || field->isAncestorOf(QApplication::focusWidget());
    });
    if (current != m_fields.end()) {
        if (next && current + 1 != m_fields.end()) {
            (*(current + 1))->setFocus(Qt::TabFocusReason);
            return true;
        }
        if (!next && current != m_fields.begin()) {
            (*(current - 1))->setFocus(Qt::BacktabFocusReason);
            return true;
        }
    }
    // Past the ends: the next cell, as everywhere in the grid.
    QKeyEvent key(
        QEvent::KeyPress, next ? Qt::Key_Tab : Qt::Key_Backtab, next ? Qt::NoModifier : Qt::ShiftModifier);
    const QPointer<CellEditor> self(this);
    m_leaving = true;
    QApplication::sendEvent(this, &key);
    if (self)
        m_leaving = false;
    return true;
}

void CellEditor::keyPressEvent(QKeyEvent *event)
{
    // What the fields and the delegate leave over is not for the grid below.
    event->accept();
}

void CellEditor::paintEvent(QPaintEvent *)
{
    if (m_problem.isEmpty())
        return;
    QPainter painter(this);
    painter.setPen(QPen(paletteFor(*this).error, 2));
    painter.drawRect(rect().adjusted(1, 1, -1, -1));
}

TextCellEditor::TextCellEditor(QWidget *parent)
    : CellEditor(parent)
    , m_line(new QLineEdit(this))
    , m_completer(new QCompleter(this))
    , m_list(new QStringListModel(this))
{
    m_line->setFrame(false);
    m_completer->setModel(m_list);
    m_completer->setWidget(m_line);
    m_completer->setCompletionMode(QCompleter::UnfilteredPopupCompletion);
    m_completer->setMaxVisibleItems(10);
    addField(m_line, 1);
    connect(m_line, &QLineEdit::textChanged, this, &TextCellEditor::touch);
    connect(m_line, &QLineEdit::textEdited, this, [this] { suggest(false); });
    connect(m_completer, qOverload<const QString &>(&QCompleter::activated), this, &TextCellEditor::insert);
    auto *ask = new QAction(this);
    ask->setShortcut(QKeySequence(Qt::CTRL | Qt::Key_Space));
    ask->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(ask, &QAction::triggered, this, [this] { suggest(true); });
    m_line->addAction(ask);
}

QString TextCellEditor::text() const
{
    return m_line->text();
}

void TextCellEditor::setText(const QString &text)
{
    m_line->setText(text);
    setUntouched();
    recheck();
}

void TextCellEditor::setSuggest(Suggest suggest, bool byWord)
{
    m_suggest = std::move(suggest);
    m_byWord = byWord;
}

void TextCellEditor::setChoices(const ValueChoices &choices)
{
    if (m_rule.empty())
        return;
    m_suggest = [rule = m_rule, choices](const std::string &typed) {
        return valueSuggestions(rule, choices, typed, kMostSuggestions);
    };
    m_byWord = false;
}

void TextCellEditor::suggest(bool asked)
{
    if (!m_suggest)
        return;
    const std::string all = m_line->text().toStdString();
    const std::size_t cursor =
        static_cast<std::size_t>(m_line->text().left(m_line->cursorPosition()).toStdString().size());
    const TypedWord word = m_byWord ? wordAt(all, cursor) : TypedWord{0, all.size()};
    const std::string typed = all.substr(word.begin, std::max(cursor, word.begin) - word.begin);
    QStringList texts;
    if (asked || !typed.empty()) {
        for (const std::string &text : m_suggest(typed))
            texts << QString::fromStdString(text);
    }
    if (texts.isEmpty()
        || (texts.size() == 1
            && texts.constFirst().toStdString() == all.substr(word.begin, word.end - word.begin))) {
        m_completer->popup()->hide();
        return;
    }
    m_list->setStringList(texts);
    const int width = std::max(m_line->width(), fontMetrics().averageCharWidth() * 48);
    m_completer->complete(QRect(0, 0, width, m_line->height()));
}

void TextCellEditor::insert(const QString &completion)
{
    const std::string all = m_line->text().toStdString();
    const std::size_t cursor =
        static_cast<std::size_t>(m_line->text().left(m_line->cursorPosition()).toStdString().size());
    const TypedWord word = m_byWord ? wordAt(all, cursor) : TypedWord{0, all.size()};
    const std::string before = all.substr(0, word.begin) + completion.toStdString();
    m_line->setText(QString::fromStdString(before + all.substr(word.end)));
    m_line->setCursorPosition(static_cast<int>(QString::fromStdString(before).size()));
    // "layer:" wants more.
    if (completion.endsWith(QLatin1Char(':')))
        suggest(true);
}

ChoiceCellEditor::ChoiceCellEditor(QWidget *parent)
    : CellEditor(parent)
    , m_box(new QComboBox(this))
{
    m_box->setFrame(false);
    m_box->setMaxVisibleItems(20);
    addField(m_box, 1);
    connect(m_box, &QComboBox::currentIndexChanged, this, &ChoiceCellEditor::touch);
    // A choice is a decision: written at once.
    connect(m_box, &QComboBox::activated, this, &CellEditor::accepted);
}

void ChoiceCellEditor::addChoice(const QString &text, const QString &meaning)
{
    const QString shown = text.isEmpty() ? meaning
        : meaning.isEmpty()              ? text
                                         : text + QStringLiteral(" – ") + meaning;
    const bool wasTouched = isTouched();
    m_box->addItem(shown, text);
    m_box->setItemData(m_box->count() - 1, meaning, Qt::ToolTipRole);
    m_box->view()->setMinimumWidth(
        m_box->view()->sizeHintForColumn(0) + fontMetrics().averageCharWidth() * 4);
    if (!wasTouched)
        setUntouched();
}

QString ChoiceCellEditor::text() const
{
    return m_box->currentData().toString();
}

void ChoiceCellEditor::setText(const QString &text)
{
    const QSignalBlocker blocker(m_box);
    const int index = m_box->findData(text);
    m_box->setCurrentIndex(index);
    if (index < 0)
        m_box->setPlaceholderText(text.isEmpty() ? tr("choose") : text);
    setUntouched();
}

NoteCellEditor::NoteCellEditor(QWidget *parent)
    : CellEditor(parent)
    , m_edit(new QPlainTextEdit(this))
{
    m_edit->setTabChangesFocus(true);
    m_edit->setAccessibleName(tr("Note"));
    addField(m_edit, 1);
    m_edit->installEventFilter(this);
    connect(m_edit, &QPlainTextEdit::textChanged, this, &NoteCellEditor::touch);
}

QString NoteCellEditor::text() const
{
    return m_edit->toPlainText();
}

void NoteCellEditor::setText(const QString &text)
{
    m_edit->setPlainText(text);
    m_edit->moveCursor(QTextCursor::End);
    setUntouched();
}

QSize NoteCellEditor::sizeHint() const
{
    const int lines = std::clamp(static_cast<int>(m_edit->toPlainText().count(QLatin1Char('\n'))) + 2, 2, 5);
    return {fontMetrics().averageCharWidth() * 40, fontMetrics().lineSpacing() * lines + 12};
}

bool NoteCellEditor::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::KeyPress) {
        const auto *key = static_cast<QKeyEvent *>(event); // by its type
        if ((key->key() == Qt::Key_Return || key->key() == Qt::Key_Enter)
            && !(key->modifiers() & Qt::ShiftModifier)) {
            Q_EMIT accepted();
            return true;
        }
    }
    return CellEditor::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_cell_editors.cpp"
