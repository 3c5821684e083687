#include "widgets/dag/dag_line_editors.h"

#include "widgets/dag/dag_chips.h"

#include <QtCore/QSignalBlocker>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QCheckBox>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QVBoxLayout>

#include <algorithm>
#include <utility>

namespace planloom {

namespace {

constexpr int kMostParts = 65536;
constexpr int kChoiceRows = 8;
constexpr int kLabelRole = Qt::UserRole + 1; ///< Of a dimension: its letter alone.

bool isInside(const QObject *object, const QObject *around)
{
    for (; object != nullptr; object = object->parent()) {
        if (object == around)
            return true;
    }
    return false;
}

QLabel *word(const QString &text, QWidget *parent)
{
    return new QLabel(text, parent);
}

} // namespace

DagLineEditor::DagLineEditor(QWidget *canvas)
    : QFrame(canvas)
    , m_problem(new QLabel(this))
{
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    m_problem->setWordWrap(true);
    m_problem->setAccessibleName(tr("What is wrong"));
    m_problem->hide();
    hide();
}

void DagLineEditor::setParts(const std::vector<QWidget *> &parts)
{
    auto *column = new QVBoxLayout(this);
    column->setContentsMargins(8, 6, 8, 6);
    column->setSpacing(4);
    auto *row = new QHBoxLayout;
    row->setSpacing(6);
    for (QWidget *part : parts) {
        row->addWidget(part);
        if (qobject_cast<QLabel *>(part) == nullptr) {
            part->installEventFilter(this);
            for (auto *inner : part->findChildren<QLineEdit *>())
                inner->installEventFilter(this);
            if (m_first == nullptr)
                m_first = part;
        }
    }
    column->addLayout(row);
    column->addWidget(m_problem);
}

void DagLineEditor::setBelow(QWidget *widget)
{
    static_cast<QVBoxLayout *>(layout())->insertWidget(1, widget); // `setParts` made it
}

void DagLineEditor::open(QPointF place)
{
    moveTo(place);
    show();
    raise();
    // The first field may not be meant for this kind of line: the next one that takes the keyboard.
    QWidget *field = m_first;
    while (field != nullptr && !(field->isEnabled() && field->focusPolicy() != Qt::NoFocus)
        && isInside(field, this)) {
        field = field->nextInFocusChain();
        if (field == m_first)
            break;
    }
    if (field != nullptr && isInside(field, this))
        field->setFocus(Qt::ShortcutFocusReason);
    if (auto *line = qobject_cast<QLineEdit *>(m_first))
        line->selectAll();
    connect(qApp, &QApplication::focusChanged, this, [this](QWidget *, QWidget *now) { focusMoved(now); });
}

void DagLineEditor::moveTo(QPointF place)
{
    adjustSize();
    const QSize room = parentWidget()->size();
    const int x = std::max(0, std::min(static_cast<int>(place.x()), room.width() - width()));
    const int y = std::max(0, std::min(static_cast<int>(place.y()), room.height() - height()));
    move(x, y);
}

void DagLineEditor::focusMoved(QWidget *now)
{
    if (isVisible() && now != nullptr && !isInside(now, this))
        Q_EMIT abandoned();
}

void DagLineEditor::setProblem(const QString &sentence)
{
    if (sentence == m_problem->text() && m_problem->isVisible() == !sentence.isEmpty())
        return;
    m_problem->setText(sentence);
    m_problem->setVisible(!sentence.isEmpty());
    adjustSize();
    const int most = parentWidget()->height() - height();
    if (y() > most)
        move(x(), std::max(0, most));
}

QString DagLineEditor::problem() const
{
    return m_problem->text();
}

bool DagLineEditor::takeKey(int /*key*/)
{
    return false;
}

bool DagLineEditor::eventFilter(QObject *watched, QEvent *event)
{
    const auto switchesRowsOff = [event] { // of a key's event
        const auto *key = static_cast<QKeyEvent *>(event);
        return key->key() == Qt::Key_O && key->modifiers() == Qt::AltModifier;
    };
    if (event->type() == QEvent::ShortcutOverride) {
        const int key = static_cast<QKeyEvent *>(event)->key(); // the type was checked
        if (key == Qt::Key_Return || key == Qt::Key_Enter || key == Qt::Key_Escape || switchesRowsOff()) {
            event->accept(); // not a shortcut of the window while the line is open
            return true;
        }
    }
    if (event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent *>(event)->key(); // the type was checked
        switch (key) {
        case Qt::Key_Return:
        case Qt::Key_Enter:
            Q_EMIT accepted();
            return true;
        case Qt::Key_Escape:
            Q_EMIT abandoned();
            return true;
        default:
            if (switchesRowsOff()) {
                Q_EMIT rowsOffToggled();
                return true;
            }
            if (takeKey(key))
                return true;
            break;
        }
    }
    return QFrame::eventFilter(watched, event);
}

CountBox::CountBox(QWidget *parent)
    : QSpinBox(parent)
{
    setRange(1, kMostParts);
}

void CountBox::stepBy(int steps)
{
    if (m_counts.empty())
        QSpinBox::stepBy(steps);
    else
        setValue(stepParts(value(), m_counts, steps));
    selectAll();
}

SplitEditor::SplitEditor(const std::vector<DimensionChip> &chips, const std::vector<MeshAxis> &mesh,
    bool value, SplitKind kind, QWidget *canvas)
    : DagLineEditor(canvas)
    , m_dimension(new QComboBox(this))
    , m_parts(new CountBox(this))
    , m_replicate(new QCheckBox(tr("replicate"), this))
    , m_value(new QCheckBox(tr("value"), this))
    , m_axis(new QComboBox(this))
{
    setAccessibleName(tr("Split"));
    std::vector<std::string> seen;
    for (std::size_t i = 0; i < chips.size(); ++i) {
        m_labels.append(QString::fromStdString(chips[i].label));
        if (isLocked(chips[i]) || std::find(seen.begin(), seen.end(), chips[i].label) != seen.end())
            continue;
        seen.push_back(chips[i].label);
        m_dimension->addItem(QString::fromStdString(chipText(chips[i])), static_cast<int>(i)); // "n hidden"
        m_dimension->setItemData(m_dimension->count() - 1, m_labels.last(), kLabelRole);
    }
    m_dimension->setAccessibleName(tr("Dimension"));
    m_parts->setAccessibleName(tr("Number of parts"));
    m_parts->setValue(2);
    m_axis->setAccessibleName(tr("Mesh axis"));
    m_axis->addItem(tr("no axis"), QString());
    for (const auto &axis : mesh) {
        if (axis.size > 1)
            m_axis->addItem(QStringLiteral("%1 (%2)").arg(QString::fromStdString(axis.name)).arg(axis.size),
                QString::fromStdString(axis.name));
    }
    m_value->setEnabled(value);
    if (!value)
        m_value->setToolTip(tr("This operator is not linear in any input, so its values cannot be split."));
    m_replicate->setChecked(kind == SplitKind::Replicate);
    m_value->setChecked(kind == SplitKind::Value && value);
    setParts({word(tr("split"), this), m_dimension, word(tr("by"), this), m_parts, m_replicate, m_value,
        word(tr("over"), this), m_axis});
    kindChanged();
    connect(m_dimension, &QComboBox::currentIndexChanged, this, &DagLineEditor::changed);
    connect(m_parts, &QSpinBox::valueChanged, this, &DagLineEditor::changed);
    connect(m_axis, &QComboBox::currentIndexChanged, this, [this] {
        m_parts->setEnabled(axis().empty());
        Q_EMIT changed();
    });
    connect(m_replicate, &QCheckBox::toggled, this, [this](bool on) {
        if (on)
            m_value->setChecked(false);
        kindChanged();
        Q_EMIT changed();
    });
    connect(m_value, &QCheckBox::toggled, this, [this](bool on) {
        if (on)
            m_replicate->setChecked(false);
        kindChanged();
        Q_EMIT changed();
    });
}

void SplitEditor::kindChanged()
{
    m_dimension->setEnabled(kind() == SplitKind::Dimension && m_dimension->count() > 0);
}

std::int32_t SplitEditor::chip() const
{
    return m_dimension->currentIndex() < 0 ? -1 : m_dimension->currentData().toInt();
}

std::int32_t SplitEditor::parts() const
{
    return m_parts->value();
}

SplitKind SplitEditor::kind() const
{
    return m_replicate->isChecked() ? SplitKind::Replicate
        : m_value->isChecked()      ? SplitKind::Value
                                    : SplitKind::Dimension;
}

std::string SplitEditor::axis() const
{
    return m_axis->currentData().toString().toStdString();
}

void SplitEditor::setChip(std::int32_t chip)
{
    // A dimension that inputs and outputs share stands here once.
    if (chip < 0 || chip >= m_labels.size())
        return;
    if (const int place = m_dimension->findData(m_labels[chip], kLabelRole); place >= 0)
        m_dimension->setCurrentIndex(place);
}

void SplitEditor::setCounts(std::vector<std::int32_t> counts)
{
    m_parts->setCounts(std::move(counts));
}

PlaceEditor::PlaceEditor(const QString &start, QWidget *canvas)
    : DagLineEditor(canvas)
    , m_text(new QLineEdit(start, this))
{
    setAccessibleName(tr("Place"));
    m_text->setAccessibleName(tr("Devices"));
    m_text->setPlaceholderText(tr("3, 0-3, h0, tp:2 or free"));
    m_text->setMinimumWidth(fontMetrics().horizontalAdvance(m_text->placeholderText()) + 24);
    setParts({word(tr("place on"), this), m_text});
    connect(m_text, &QLineEdit::textChanged, this, &DagLineEditor::changed);
}

QString PlaceEditor::text() const
{
    return m_text->text();
}

OrderEditor::OrderEditor(QWidget *canvas)
    : DagLineEditor(canvas)
    , m_text(new QLineEdit(this))
    , m_choices(new QListWidget(this))
{
    setAccessibleName(tr("Order"));
    m_text->setAccessibleName(tr("Operator it runs before"));
    m_text->setPlaceholderText(tr("name of an operator"));
    m_text->setMinimumWidth(fontMetrics().averageCharWidth() * 36);
    m_choices->setAccessibleName(tr("Operators with this name"));
    m_choices->setFocusPolicy(Qt::NoFocus);
    m_choices->setUniformItemSizes(true);
    m_choices->setMaximumHeight(fontMetrics().height() * (kChoiceRows + 2));
    m_choices->hide();
    setParts({word(tr("before"), this), m_text});
    setBelow(m_choices);
    connect(m_text, &QLineEdit::textChanged, this, &DagLineEditor::changed);
    connect(m_choices, &QListWidget::currentRowChanged, this, &DagLineEditor::changed);
    connect(m_choices, &QListWidget::itemDoubleClicked, this, &DagLineEditor::accepted);
}

QString OrderEditor::text() const
{
    return m_text->text();
}

void OrderEditor::setChoices(const QStringList &names, bool more)
{
    QStringList lines = names;
    if (more)
        lines.append(tr("… more; type on"));
    QStringList shown;
    for (int row = 0; row < m_choices->count(); ++row)
        shown.append(m_choices->item(row)->text());
    if (shown == lines)
        return;
    const QSignalBlocker blocker(m_choices);
    m_choices->clear();
    m_choices->addItems(lines);
    if (more)
        m_choices->item(m_choices->count() - 1)->setFlags(Qt::NoItemFlags);
    if (!names.isEmpty())
        m_choices->setCurrentRow(0);
    m_choices->setVisible(!lines.isEmpty());
    adjustSize();
}

int OrderEditor::choice() const
{
    return m_choices->currentRow();
}

bool OrderEditor::takeKey(int key)
{
    if (key != Qt::Key_Up && key != Qt::Key_Down)
        return false;
    const int row = m_choices->currentRow() + (key == Qt::Key_Down ? 1 : -1);
    if (row >= 0 && row < m_choices->count() && (m_choices->item(row)->flags() & Qt::ItemIsEnabled) != 0)
        m_choices->setCurrentRow(row);
    return true;
}

OrderRowEditor::OrderRowEditor(const QString &first, const QString &second, QWidget *canvas)
    : DagLineEditor(canvas)
    , m_first(new QLineEdit(first, this))
    , m_second(new QLineEdit(second, this))
{
    setAccessibleName(tr("Order"));
    m_first->setAccessibleName(tr("Operators that run first"));
    m_second->setAccessibleName(tr("Operators they run before"));
    for (QLineEdit *line : {m_first, m_second})
        line->setMinimumWidth(std::min(
            fontMetrics().horizontalAdvance(line->text()) + 24, fontMetrics().averageCharWidth() * 40));
    setParts({word(tr("order"), this), m_first, word(tr("before"), this), m_second});
    connect(m_first, &QLineEdit::textChanged, this, &DagLineEditor::changed);
    connect(m_second, &QLineEdit::textChanged, this, &DagLineEditor::changed);
}

QString OrderRowEditor::first() const
{
    return m_first->text();
}

QString OrderRowEditor::second() const
{
    return m_second->text();
}

StageEditor::StageEditor(std::int32_t start, QWidget *canvas)
    : DagLineEditor(canvas)
    , m_stage(new QSpinBox(this))
{
    setAccessibleName(tr("Stage"));
    m_stage->setAccessibleName(tr("Stage number"));
    m_stage->setRange(0, 9999);
    m_stage->setValue(start);
    setParts({word(tr("stage"), this), m_stage});
    connect(m_stage, &QSpinBox::valueChanged, this, &DagLineEditor::changed);
}

std::int32_t StageEditor::stage() const
{
    return m_stage->value();
}

} // namespace planloom

#include "moc_dag_line_editors.cpp"
