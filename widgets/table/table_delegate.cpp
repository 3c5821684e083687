#include "widgets/table/table_delegate.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QApplication>
#include <QtWidgets/QLineEdit>

#include "engine/table/table_mesh.h"
#include "widgets/common/palette.h"
#include "widgets/table/cell_editors.h"
#include "widgets/table/kinds/rule_cells.h"
#include "widgets/table/table_list_model.h"

#include <algorithm>

namespace planloom {

namespace {

TableColumn columnOf(const QModelIndex &index)
{
    return static_cast<TableColumn>(index.column());
}

/// The box of the *On* column.
QRectF boxOf(const QStyleOptionViewItem &option)
{
    const qreal side = option.fontMetrics.height() * 0.8;
    QRectF box(0, 0, side, side);
    box.moveCenter(QRectF(option.rect).center());
    return box;
}

QString keepWord()
{
    return TableDelegate::tr("Keep");
}

/// The *Keep* of a row that the solver chose, at the end of what the solver says of it, or at the view's edge
/// where that end is outside; empty where there is no room for it.
QRect keepButtonOf(const QStyleOptionViewItem &option)
{
    const int wide =
        option.fontMetrics.horizontalAdvance(keepWord()) + option.fontMetrics.averageCharWidth() * 2;
    const auto *const view = qobject_cast<const QAbstractItemView *>(option.widget);
    const int seen =
        view ? std::min(option.rect.right(), view->viewport()->width() - 1) : option.rect.right();
    return seen - wide - 2 < option.rect.left()
        ? QRect()
        : QRect(seen - wide - 2, option.rect.top() + 2, wide, option.rect.height() - 4);
}

} // namespace

TableDelegate::TableDelegate(TableListModel *rows, QObject *parent)
    : QStyledItemDelegate(parent)
    , m_rows(rows)
{
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] { m_completions = m_watcher.result(); });
}

TableDelegate::~TableDelegate()
{
    m_stop.request_stop();
    m_choicesStop.request_stop();
}

void TableDelegate::setModel(const ModelSnapshot &model)
{
    if (model == m_model)
        return;
    m_model = model;
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_completions = nullptr;
    m_watcher.setFuture(QtConcurrent::run([model, stop = m_stop.get_token()] {
        return model ? std::make_shared<const SelectorCompletions>(*model, stop)
                     : SelectorCompletionsSnapshot{};
    }));
}

CellEditor *TableDelegate::valueEditor(
    QWidget *parent, const std::string &rule, const std::string &value) const
{
    if (const RuleCells *cells = findRuleCells(rule); cells && cells->newEditor) {
        if (CellEditor *editor = cells->newEditor(value, m_completions, parent))
            return editor;
    }
    auto *editor = new TextCellEditor(parent);
    editor->setRule(rule);
    return editor;
}

QWidget *TableDelegate::createEditor(
    QWidget *parent, const QStyleOptionViewItem &, const QModelIndex &index) const
{
    const std::string rule = index.data(ConstraintTableModel::RuleRole).toString().toStdString();
    CellEditor *editor = nullptr;
    switch (columnOf(index)) {
    case TableColumn::Selector: {
        auto *text = new TextCellEditor(parent);
        text->setSuggest(
            [completions = m_completions](const std::string &typed) {
                return completions ? completions->find(typed, kMostCompletions) : std::vector<std::string>{};
            },
            true);
        const bool isNew = m_rows->kindOf(index.row()) == TableListModel::Kind::NewRow;
        text->setCheck([isNew](const QString &typed) -> std::optional<CellProblem> {
            const std::string typedText = typed.toStdString();
            if (isNew
                && (typedText.empty() || readLine(typedText)->row
                    || findRuleWord(typedText.substr(0, typedText.find(' ')))))
                return {};
            return checkSelector(typedText);
        });
        text->line()->setAccessibleName(tr("Selector"));
        editor = text;
        break;
    }
    case TableColumn::Rule: {
        auto *choice = new ChoiceCellEditor(parent);
        for (const RuleWord &word : ruleWords()) {
            const QString text = QString::fromUtf8(word.word.data());
            choice->addChoice(text, meaningOfRule(text));
        }
        editor = choice;
        break;
    }
    case TableColumn::Value:
        editor = valueEditor(parent, rule, index.data(Qt::EditRole).toString().toStdString());
        editor->setCheck([rule](const QString &typed) { return checkValue(rule, typed.toStdString()); });
        askChoices(editor, index);
        break;
    case TableColumn::Strength:
        if (StrengthCellEditor::canShow(index.data(Qt::EditRole).toString().toStdString())) {
            editor = new StrengthCellEditor(parent);
        } else {
            editor = new TextCellEditor(parent); // what is wrong is mended as text
            editor->setCheck([](const QString &typed) { return checkStrength(typed.toStdString()); });
        }
        break;
    case TableColumn::Origin: {
        auto *choice = new ChoiceCellEditor(parent);
        choice->addChoice({}, tr("text"));
        for (const char *origin : {"gesture", "template", "import", "solver"})
            choice->addChoice(QString::fromLatin1(origin), {});
        editor = choice;
        break;
    }
    case TableColumn::Note:
        editor = new NoteCellEditor(parent);
        break;
    default:
        return nullptr;
    }
    editor->setAccessibleName(index.data(Qt::AccessibleTextRole).toString());
    auto *self =
        const_cast<TableDelegate *>(this); // editors report to the delegate, whose factory is const in Qt
    connect(editor, &CellEditor::accepted, self, [self, editor] {
        Q_EMIT self->commitData(editor);
        Q_EMIT self->closeEditor(editor, QAbstractItemDelegate::NoHint);
    });
    return editor;
}

void TableDelegate::destroyEditor(QWidget *editor, const QModelIndex &index) const
{
    if (auto *cell = qobject_cast<CellEditor *>(editor))
        cell->finish();
    QStyledItemDelegate::destroyEditor(editor, index);
}

void TableDelegate::askChoices(CellEditor *editor, const QModelIndex &index) const
{
    if (!m_model)
        return;
    m_choicesStop.request_stop();
    m_choicesStop = std::stop_source{};
    const QString selector =
        m_rows->index(index.row(), static_cast<int>(TableColumn::Selector)).data(Qt::EditRole).toString();
    auto *watcher = new QFutureWatcher<std::shared_ptr<const ValueChoices>>(editor);
    connect(watcher, &QFutureWatcherBase::finished, editor,
        [watcher, editor] { editor->setChoices(*watcher->result()); });
    watcher->setFuture(
        QtConcurrent::run([model = m_model, text = selector.toStdString(), devices = m_deviceCount,
                              document = m_rows->rows()->document(), stop = m_choicesStop.get_token()] {
            const auto read = parseSelector(text);
            return std::make_shared<const ValueChoices>(
                valueChoices(*model, read ? *read : Selector{}, meshOf(document.table()), devices, stop));
        }));
}

void TableDelegate::setEditorData(QWidget *editor, const QModelIndex &index) const
{
    auto *cell = qobject_cast<CellEditor *>(editor);
    // What is being typed is not overwritten by news from elsewhere.
    if (cell && !cell->isTouched())
        cell->setText(index.data(Qt::EditRole).toString());
}

void TableDelegate::setModelData(QWidget *editor, QAbstractItemModel *model, const QModelIndex &index) const
{
    const auto *cell = qobject_cast<CellEditor *>(editor);
    if (!cell || (!cell->isTouched() && cell->text() == index.data(Qt::EditRole).toString()))
        return;
    if (m_write)
        m_write(index, cell->text());
    else
        model->setData(index, cell->text(), Qt::EditRole);
}

void TableDelegate::updateEditorGeometry(
    QWidget *editor, const QStyleOptionViewItem &option, const QModelIndex &) const
{
    QRect box = option.rect;
    const QSize wanted = editor->sizeHint();
    box.setHeight(std::max(box.height(), wanted.height()));
    const int least = qobject_cast<ChoiceCellEditor *>(editor)
        ? std::min(wanted.width(), box.width() + option.fontMetrics.averageCharWidth() * 16)
        : wanted.width();
    box.setWidth(std::max(box.width(), least));
    if (const QWidget *area = editor->parentWidget()) {
        if (box.right() > area->width() - 1)
            box.moveRight(std::max(area->width() - 1, box.width() - 1));
        if (box.bottom() > area->height() - 1)
            box.moveBottom(std::max(area->height() - 1, box.height() - 1));
    }
    editor->setGeometry(box);
}

void TableDelegate::initStyleOption(QStyleOptionViewItem *option, const QModelIndex &index) const
{
    QStyledItemDelegate::initStyleOption(option, index);
    option->features &= ~QStyleOptionViewItem::HasCheckIndicator; // drawn by `paint`
    const Palette &palette = option->widget ? paletteFor(*option->widget) : lightPalette();
    const auto kind = static_cast<TableListModel::Kind>(index.data(TableListModel::KindRole).toInt());
    const bool selected = option->state.testFlag(QStyle::State_Selected);
    const auto ink = [&](const QColor &colour) {
        if (!selected)
            option->palette.setColor(QPalette::Text, colour);
    };
    if (kind == TableListModel::Kind::Heading) {
        option->font.setBold(true);
        option->backgroundBrush = palette.surfaceRaised;
        if (columnOf(index) == TableColumn::Selector)
            option->text.prepend(index.data(TableListModel::CollapsedRole).toBool() ? QStringLiteral("▸ ")
                                                                                    : QStringLiteral("▾ "));
        return;
    }
    const QString problem = index.data(ConstraintTableModel::ProblemRole).toString();
    const QString warning = index.data(ConstraintTableModel::WarningRole).toString();
    if (index.data(TableListModel::HoverRole).toBool())
        option->backgroundBrush = mixed(palette.surface, palette.hover, 0.35);
    if (kind == TableListModel::Kind::NewRow) {
        option->font.setItalic(true);
        ink(palette.textMuted);
    } else if (!index.data(ConstraintTableModel::EnabledRole).toBool()) {
        ink(palette.textMuted);
        option->font.setStrikeOut(columnOf(index) != TableColumn::Note
            && columnOf(index) != TableColumn::Number && columnOf(index) != TableColumn::Binds);
    } else if (index.data(ConstraintTableModel::ChosenRole).toBool()) {
        option->font.setItalic(true);
        ink(palette.textMuted);
    } else if (columnOf(index) == TableColumn::Rule) {
        ink(palette.accent);
    } else if (columnOf(index) == TableColumn::Origin || columnOf(index) == TableColumn::Note
        || columnOf(index) == TableColumn::Number) {
        ink(palette.textMuted);
    }
    if (index.data(TableListModel::ActingRole).toBool() && columnOf(index) == TableColumn::Number) {
        option->font.setBold(true);
        ink(palette.accent);
    }
    if (index.data(ConstraintTableModel::OldRole).toBool()) {
        option->font.setItalic(true);
        ink(palette.textMuted);
    }
    if (!problem.isEmpty()) {
        option->backgroundBrush = mixed(palette.surface, palette.error, 0.16);
        option->text = QStringLiteral("✖ ") + (option->text.isEmpty() ? problem : option->text);
        option->font.setStrikeOut(false);
        ink(palette.error);
    } else if (!warning.isEmpty()) {
        option->text.prepend(QStringLiteral("⚠ "));
        ink(palette.warning);
    }
}

void TableDelegate::paint(
    QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    QStyledItemDelegate::paint(painter, option, index);
    const auto column = columnOf(index);
    const Palette &palette = option.widget ? paletteFor(*option.widget) : lightPalette();
    if (column == TableColumn::On && index.data(TableListModel::ActingRole).toBool()) {
        // Acts on the selection: a bar, and a bold number beside it.
        const int width = std::max(3, option.fontMetrics.height() / 6);
        painter->fillRect(
            QRect(option.rect.left(), option.rect.top(), width, option.rect.height()), palette.accent);
    }
    if (column == TableColumn::On && index.data(Qt::CheckStateRole).isValid()) {
        // A box that is seen in every theme, on or off.
        const bool selected = option.state.testFlag(QStyle::State_Selected);
        const QColor ink = selected ? option.palette.color(QPalette::HighlightedText) : palette.text;
        const QRectF box = boxOf(option);
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(QPen(selected ? ink : palette.textMuted, 1.2));
        painter->drawRoundedRect(box, 2, 2);
        if (index.data(Qt::CheckStateRole).toInt() == Qt::Checked) {
            painter->setPen(
                QPen(ink, std::max(1.6, box.width() / 7), Qt::SolidLine, Qt::RoundCap, Qt::RoundJoin));
            painter->drawPolyline(QPolygonF({box.topLeft() + QPointF(box.width() * 0.22, box.height() * 0.52),
                box.topLeft() + QPointF(box.width() * 0.43, box.height() * 0.74),
                box.topLeft() + QPointF(box.width() * 0.80, box.height() * 0.28)}));
        }
        painter->restore();
    }
    const QRect keep = column == TableColumn::Price && index.data(ConstraintTableModel::ChosenRole).toBool()
        ? keepButtonOf(option)
        : QRect();
    if (!keep.isEmpty()) {
        const bool selected = option.state.testFlag(QStyle::State_Selected);
        const QColor ink = selected ? option.palette.color(QPalette::HighlightedText) : palette.accent;
        painter->save();
        painter->setRenderHint(QPainter::Antialiasing);
        painter->setPen(QPen(ink, 1));
        painter->setBrush(
            selected ? option.palette.highlight() : QBrush(palette.surface)); // over what is said
        painter->drawRoundedRect(QRectF(keep).adjusted(0.5, 0.5, -0.5, -0.5), 3, 3);
        painter->drawText(keep, Qt::AlignCenter, keepWord());
        painter->restore();
    }
    painter->setPen(palette.grid);
    painter->drawLine(option.rect.bottomLeft(), option.rect.bottomRight());
}

bool TableDelegate::editorEvent(
    QEvent *event, QAbstractItemModel *model, const QStyleOptionViewItem &option, const QModelIndex &index)
{
    if (columnOf(index) == TableColumn::Price && index.data(ConstraintTableModel::ChosenRole).toBool()
        && event->type() == QEvent::MouseButtonRelease) {
        const auto *mouse = static_cast<QMouseEvent *>(event); // by its type
        if (mouse->button() == Qt::LeftButton && keepButtonOf(option).contains(mouse->position().toPoint())) {
            Q_EMIT keepAsked(index.row());
            return true;
        }
    }
    if (columnOf(index) != TableColumn::On || !index.data(Qt::CheckStateRole).isValid())
        return QStyledItemDelegate::editorEvent(event, model, option, index);
    if (event->type() != QEvent::MouseButtonRelease && event->type() != QEvent::MouseButtonDblClick)
        return false;
    const auto *mouse = static_cast<QMouseEvent *>(event); // by its type
    const qreal reach = option.fontMetrics.height() / 2.0;
    if (mouse->button() != Qt::LeftButton
        || !boxOf(option).adjusted(-reach, -reach, reach, reach).contains(mouse->position()))
        return false;
    if (event->type() == QEvent::MouseButtonDblClick)
        return true;
    const bool on = index.data(Qt::CheckStateRole).toInt() == Qt::Checked;
    return model->setData(index, static_cast<int>(on ? Qt::Unchecked : Qt::Checked), Qt::CheckStateRole);
}

QSize TableDelegate::sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const
{
    const QSize size = QStyledItemDelegate::sizeHint(option, index);
    return {size.width(), std::max(size.height(), option.fontMetrics.height() * 3 / 2)};
}

} // namespace planloom

#include "moc_table_delegate.cpp"
