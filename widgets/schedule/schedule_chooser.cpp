#include "widgets/schedule/schedule_chooser.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QSignalBlocker>
#include <QtGui/QPainter>
#include <QtGui/QStandardItemModel>
#include <QtGui/QWheelEvent>
#include <QtWidgets/QAbstractItemView>
#include <QtWidgets/QStyledItemDelegate>

#include "engine/base/words.h"
#include "engine/design/schedules/schedule_choice.h"
#include "engine/schedule/schedule.h"
#include "engine/schedule/search/template_example.h"
#include "widgets/common/palette.h"
#include "widgets/schedule/schedule_picture.h"

#include <algorithm>

namespace planloom {

namespace {

enum Role : int { PictureRole = Qt::UserRole, DetailRole };

constexpr QSize kPicture{132, 36};
constexpr int kMargin = 4;
constexpr int kLetters = 84; ///< Of a template's line.
constexpr int kAsked = 2; ///< Items behind all schedules that ask for more than one.
constexpr auto kFirstKept = static_cast<int>(kAllSchedules.size()) + 1; ///< Behind a separator.

std::size_t indexOf(ScheduleKind kind)
{
    return static_cast<std::size_t>(
        std::find(kAllSchedules.begin(), kAllSchedules.end(), kind) - kAllSchedules.begin());
}

/// A template's picture, its name, and below what it is or why it is not for this plan.
class TemplateDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        if (!index.data(PictureRole).isValid())
            return QStyledItemDelegate::sizeHint(option, index);
        const QFontMetrics &metrics = option.fontMetrics;
        return {kPicture.width() + 4 * kMargin + metrics.averageCharWidth() * kLetters,
            std::max(kPicture.height(), 2 * metrics.lineSpacing()) + 2 * kMargin};
    }

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const QVariant picture = index.data(PictureRole);
        if (!picture.isValid())
            return QStyledItemDelegate::paint(painter, option, index);
        QStyleOptionViewItem own = option;
        initStyleOption(&own, index);
        const bool enabled = own.state.testFlag(QStyle::State_Enabled);
        const bool selected = enabled && own.state.testFlag(QStyle::State_Selected);
        painter->save();
        painter->fillRect(own.rect, own.palette.brush(selected ? QPalette::Highlight : QPalette::Base));
        const QRect inner = own.rect.adjusted(2 * kMargin, kMargin, -2 * kMargin, -kMargin);
        const QRect place(
            inner.left(), inner.center().y() - kPicture.height() / 2, kPicture.width(), kPicture.height());
        painter->setOpacity(enabled ? 1 : 0.45);
        painter->drawImage(place, picture.value<QImage>());
        painter->setOpacity(1);
        const QRect words = inner.adjusted(kPicture.width() + 2 * kMargin, 0, 0, 0);
        const QRect upper(words.left(), words.center().y() - own.fontMetrics.lineSpacing(), words.width(),
            own.fontMetrics.lineSpacing());
        const auto group = enabled ? QPalette::Active : QPalette::Disabled;
        const QColor strong = own.palette.color(group, selected ? QPalette::HighlightedText : QPalette::Text);
        QFont bold = own.font;
        bold.setBold(true);
        painter->setFont(bold);
        painter->setPen(strong);
        painter->drawText(upper, Qt::AlignLeft | Qt::AlignVCenter, own.text);
        painter->setFont(own.font);
        painter->setPen(selected ? strong : own.palette.color(QPalette::PlaceholderText));
        painter->drawText(upper.translated(0, own.fontMetrics.lineSpacing()),
            Qt::AlignLeft | Qt::AlignVCenter,
            own.fontMetrics.elidedText(index.data(DetailRole).toString(), Qt::ElideRight, words.width()));
        painter->restore();
    }
};

} // namespace

ScheduleChooser::ScheduleChooser(QWidget *parent)
    : QComboBox(parent)
{
    setObjectName(QStringLiteral("schedule"));
    setAccessibleName(tr("Schedule of the pipeline"));
    setPlaceholderText(tr("listed"));
    setSizeAdjustPolicy(QComboBox::AdjustToMinimumContentsLengthWithIcon);
    setMinimumContentsLength(13); // "combined-1f1b"
    setIconSize({1, 1}); // pictures are in the list alone
    for (const ScheduleKind kind : kAllSchedules)
        addItem(QLatin1String(nameOf(kind)));
    insertSeparator(count());
    addItem(tr("All Schedules That Fit…"));
    addItem(tr("Find Best Schedule…"));
    setItemDelegate(new TemplateDelegate(this));
    view()->setMinimumWidth(kPicture.width() + 4 * kMargin + fontMetrics().averageCharWidth() * kLetters);
    setMaxVisibleItems(count());
    paintPictures();
    refreshItems();
    setCurrentIndex(-1);
    connect(this, &QComboBox::activated, this, &ScheduleChooser::onActivated);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        const auto [plan, fits] = m_watcher.result();
        if (plan != m_plan)
            return ask();
        m_fits = fits;
        refreshItems();
        Q_EMIT possibleChanged();
    });
}

ScheduleChooser::~ScheduleChooser()
{
    m_watcher.disconnect(this);
}

QString ScheduleChooser::meaningOf(ScheduleKind kind)
{
    return QString::fromLatin1(scheduleTemplates()[indexOf(kind)].meaning);
}

QString ScheduleChooser::tipOf(ScheduleKind kind)
{
    const ScheduleTemplate &own = scheduleTemplates()[indexOf(kind)];
    QString tip = QStringLiteral("<p><b>%1</b>: %2</p>")
                      .arg(QString::fromLatin1(nameOf(kind)).toHtmlEscaped(),
                          QString::fromLatin1(own.meaning).toHtmlEscaped());
    if (*own.paper != '\0')
        tip += QStringLiteral("<p>%1</p>").arg(QString::fromLatin1(own.paper).toHtmlEscaped());
    return tip;
}

void ScheduleChooser::paintPictures()
{
    const Palette &palette = paletteFor(*this);
    for (std::size_t i = 0; i < kAllSchedules.size(); ++i)
        if (const auto example = exampleOf(kAllSchedules[i]))
            setItemData(static_cast<int>(i),
                pictureOf(example->stages, example->starts, palette, kPicture, devicePixelRatioF()),
                PictureRole);
    // A kept template looks like it; what is listed has no picture of its own, but the room for one.
    for (std::size_t i = 0; i < m_kept.size(); ++i) {
        const std::size_t own = indexOf(m_kept[i].rule.kind);
        QImage none(kPicture, QImage::Format_ARGB32_Premultiplied);
        none.fill(Qt::transparent);
        setItemData(kFirstKept + static_cast<int>(i),
            own < kAllSchedules.size() ? itemData(static_cast<int>(own), PictureRole) : QVariant(none),
            PictureRole);
    }
}

bool ScheduleChooser::isPossible(ScheduleKind kind) const
{
    const std::size_t index = indexOf(kind);
    return m_plan && (index >= m_fits.size() || !m_fits[index].refused);
}

QString ScheduleChooser::reason(ScheduleKind kind) const
{
    const std::size_t index = indexOf(kind);
    if (!m_plan)
        return tr("there is no plan yet");
    return index < m_fits.size() && m_fits[index].refused
        ? QString::fromStdString(m_fits[index].refused->message)
        : QString();
}

void ScheduleChooser::refreshItems()
{
    auto *items = qobject_cast<QStandardItemModel *>(model());
    for (std::size_t i = 0; i < kAllSchedules.size(); ++i) {
        const ScheduleKind kind = kAllSchedules[i];
        const QString why = reason(kind);
        const QString detail = why.isEmpty() ? meaningOf(kind) : tr("not here: %1").arg(why);
        const auto row = static_cast<int>(i);
        setItemData(row, detail, DetailRole);
        setItemData(
            row, QStringLiteral("%1: %2").arg(QLatin1String(nameOf(kind)), detail), Qt::AccessibleTextRole);
        QString tip = tipOf(kind);
        if (!why.isEmpty()) {
            tip += QStringLiteral("<p>%1</p>").arg(tr("Not here: %1").arg(why).toHtmlEscaped());
            if (m_plan && !m_fits[i].refused->advice.empty())
                tip += QStringLiteral("<p>%1</p>")
                           .arg(QString::fromStdString(m_fits[i].refused->advice).toHtmlEscaped());
        }
        if (m_plan && i < m_fits.size() && !m_fits[i].stageRows.empty())
            tip +=
                tr("<p>Lays the stages out anew: %1.</p>").arg(QString::fromLatin1(nameOf(m_fits[i].shape)));
        setItemData(row, tip, Qt::ToolTipRole);
        items->item(row)->setEnabled(isPossible(kind));
    }
    for (int row = count() - kAsked; row < count(); ++row)
        items->item(row)->setEnabled(m_plan != nullptr);
}

void ScheduleChooser::refreshKept()
{
    std::vector<KeptSchedule> kept = m_plan ? keptSchedules(m_plan->table) : std::vector<KeptSchedule>{};
    if (kept == m_kept)
        return;
    m_kept = std::move(kept);
    const QSignalBlocker blocker(this);
    while (count() > kFirstKept + kAsked)
        removeItem(kFirstKept);
    int row = kFirstKept;
    for (const KeptSchedule &each : m_kept) {
        const std::int32_t number = each.rule.microBatches;
        const QString name = each.rule.kind == ScheduleKind::Listed
            ? tr("listed")
            : QString::fromLatin1(nameOf(each.rule.kind));
        const QString count = QString::fromStdString(counted(number, "micro-batch"));
        const QString detail = (each.enabled ? tr("kept in row %1: holds whenever the plan has %2")
                                             : tr("kept in row %1, which is off, for %2"))
                                   .arg(QString::number(each.line + 1), count);
        insertItem(row, tr("%1 at %2").arg(name, count));
        setItemData(row, detail, DetailRole);
        setItemData(row, QStringLiteral("%1: %2").arg(itemText(row), detail), Qt::AccessibleTextRole);
        setItemData(row,
            tr("<p><b>%1</b></p><p>%2. Choosing it gives the plan this number of micro-batches.</p>")
                .arg(itemText(row).toHtmlEscaped(), detail.toHtmlEscaped()),
            Qt::ToolTipRole);
        ++row;
    }
    if (!m_kept.empty())
        insertSeparator(row);
    paintPictures();
    setMaxVisibleItems(count());
}

std::vector<Row> ScheduleChooser::stageRows(ScheduleKind kind) const
{
    const std::size_t index = indexOf(kind);
    return m_plan && index < m_fits.size() ? m_fits[index].stageRows : std::vector<Row>{};
}

void ScheduleChooser::setPlan(const PlanUpdateSnapshot &plan)
{
    const bool had = m_plan != nullptr;
    m_plan = plan && plan->plan ? plan : nullptr;
    refreshKept();
    showShown();
    if (had != (m_plan != nullptr)) {
        m_fits.clear();
        refreshItems();
        Q_EMIT possibleChanged();
    }
    if (m_plan && !m_watcher.isRunning())
        ask();
}

void ScheduleChooser::ask()
{
    if (m_plan)
        m_watcher.setFuture(QtConcurrent::run([plan = m_plan] { return Answer(plan, fitTemplates(*plan)); }));
}

void ScheduleChooser::showShown()
{
    const QSignalBlocker blocker(this);
    const std::size_t index = m_plan ? indexOf(m_plan->plan->schedule) : kAllSchedules.size();
    setCurrentIndex(index < kAllSchedules.size() ? static_cast<int>(index) : -1);
    setToolTip(index < kAllSchedules.size()
            ? tr("<p>Schedule of the pipeline</p>") + tipOf(kAllSchedules[index])
            : tr("<p>Schedule of the pipeline: its blocks are listed in a row</p>"));
}

void ScheduleChooser::onActivated(int index)
{
    const int all = count() - kAsked;
    if (index >= 0 && index < static_cast<int>(kAllSchedules.size())) {
        const ScheduleKind kind = kAllSchedules[static_cast<std::size_t>(index)];
        if (m_plan && m_plan->plan->schedule != kind)
            Q_EMIT chosen(kind);
        return;
    }
    showShown();
    if (const int kept = index - kFirstKept; kept >= 0 && kept < static_cast<int>(m_kept.size()))
        Q_EMIT keptChosen(m_kept[static_cast<std::size_t>(kept)].line);
    else if (index == all)
        Q_EMIT allAsked();
    else if (index > all)
        Q_EMIT bestAsked();
}

void ScheduleChooser::wheelEvent(QWheelEvent *event)
{
    event->ignore();
}

void ScheduleChooser::changeEvent(QEvent *event)
{
    QComboBox::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        paintPictures();
}

} // namespace planloom

#include "moc_schedule_chooser.cpp"
