#include "widgets/main/gallery_panel.h"

#include <QtGui/QAction>
#include <QtGui/QPainter>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QScrollArea>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QStyledItemDelegate>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "engine/design/gallery_folder.h"
#include "widgets/common/palette.h"
#include "widgets/main/gallery_form.h"

namespace planloom {

namespace {

/// A name in bold, and below it what it is.
class GalleryDelegate : public QStyledItemDelegate
{
public:
    using QStyledItemDelegate::QStyledItemDelegate;

    QSize sizeHint(const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const int width =
            qobject_cast<const QListView *>(option.widget)->viewport()->width() - 2 * margin(option);
        const QRect about =
            option.fontMetrics.boundingRect(QRect(0, 0, width, 1000), Qt::TextWordWrap, aboutOf(index));
        return {width, option.fontMetrics.height() + about.height() + 2 * margin(option)};
    }

    void paint(QPainter *painter, const QStyleOptionViewItem &option, const QModelIndex &index) const override
    {
        const Palette &palette = paletteFor(*option.widget);
        const bool selected = option.state & QStyle::State_Selected;
        painter->fillRect(option.rect, selected ? palette.accent : palette.surface);
        const QColor ink = selected ? readableOn(palette.accent) : palette.text;
        const QRect inside =
            option.rect.adjusted(margin(option), margin(option), -margin(option), -margin(option));
        QFont bold = option.font;
        bold.setBold(true);
        painter->setFont(bold);
        painter->setPen(ink);
        painter->drawText(
            inside, Qt::AlignLeft | Qt::AlignTop, index.data().toString().section(QLatin1Char('\n'), 0, 0));
        painter->setFont(option.font);
        painter->setPen(selected ? ink : palette.textMuted);
        painter->drawText(inside.adjusted(0, option.fontMetrics.height(), 0, 0),
            Qt::AlignLeft | Qt::AlignTop | Qt::TextWordWrap, aboutOf(index));
    }

private:
    static int margin(const QStyleOptionViewItem &option) { return option.fontMetrics.height() / 3; }
    static QString aboutOf(const QModelIndex &index)
    {
        return index.data().toString().section(QLatin1Char('\n'), 1);
    }
};

} // namespace

std::string gallerySpecFor(const std::string &name, int devices)
{
    if (name == "pipeline")
        return "pipeline:schedule=1f1b";
    if (name != "3d")
        return name;
    // Tensor parallel innermost, then pipeline, then data parallel, each two-fold while devices are even.
    int tp = 1;
    int pp = 1;
    int dp = devices;
    if (dp % 2 == 0) {
        tp = 2;
        dp /= 2;
    }
    if (dp % 2 == 0) {
        pp = 2;
        dp /= 2;
    }
    return "3d:dp=" + std::to_string(dp) + ",tp=" + std::to_string(tp) + ",pp=" + std::to_string(pp)
        + ",schedule=1f1b";
}

GalleryPanel::GalleryPanel(QWidget *parent)
    : QWidget(parent)
    , m_list(new QListWidget(this))
    , m_line(new QLineEdit(this))
    , m_apply(new QPushButton(tr("Apply"), this))
    , m_refusal(new QLabel(this))
    , m_effect(new QLabel(this))
    , m_form(new GalleryForm(this))
    , m_details(new QScrollArea(this))
    , m_gallery(findGallery())
    , m_action(new QAction(tr("Apply Gallery Plan"), this))
{
    setObjectName(QStringLiteral("galleryPanel"));
    m_list->setFrameShape(QFrame::NoFrame);
    m_list->setItemDelegate(new GalleryDelegate(m_list));
    m_list->setResizeMode(QListView::Adjust);
    m_list->setAccessibleName(tr("Gallery plans"));
    m_list->setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
    m_line->setPlaceholderText(tr("Choose a plan above"));
    m_line->setAccessibleName(tr("Gallery plan and its parameters"));
    m_line->setToolTip(tr("The plan and its parameters; Enter replaces the rows by the plan's.\nUndo brings "
                          "the old rows back."));
    m_apply->setAccessibleName(tr("Apply Gallery Plan"));
    auto *row = new QHBoxLayout;
    row->setContentsMargins(6, 4, 6, 6);
    row->addWidget(m_line, 1);
    row->addWidget(m_apply);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    m_details->setWidget(m_form);
    m_details->setWidgetResizable(true);
    m_details->setFrameShape(QFrame::NoFrame);
    auto *halves = new QSplitter(Qt::Vertical, this);
    halves->addWidget(m_list);
    halves->addWidget(m_details);
    halves->setChildrenCollapsible(false);
    // The form is what is worked with: the list scrolls.
    m_list->setMinimumHeight(4 * fontMetrics().height());
    m_details->setMinimumHeight(6 * fontMetrics().height());
    halves->setSizes({1000, 1400});
    m_details->setAccessibleName(tr("Picture and parameters of the plan"));
    m_details->hide(); // nothing is chosen
    layout->addWidget(halves, 1);
    layout->addLayout(row);
    layout->addWidget(m_effect);
    layout->addWidget(m_refusal);
    m_effect->setTextFormat(Qt::PlainText);
    m_effect->setWordWrap(true);
    m_effect->setContentsMargins(6, 0, 6, 6);
    m_effect->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_effect->setAccessibleName(tr("What the plan would do"));
    m_effect->hide();
    m_refusal->setTextFormat(Qt::PlainText);
    m_refusal->setWordWrap(true);
    m_refusal->setContentsMargins(6, 0, 6, 6);
    m_refusal->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_refusal->hide();
    m_action->setObjectName(QStringLiteral("gallery.apply"));
    addAction(m_action);
    fill();
    connect(m_list, &QListWidget::currentItemChanged, this, [this](QListWidgetItem *item) {
        if (item)
            m_line->setText(item->data(Qt::UserRole).toString());
    });
    connect(m_list, &QListWidget::itemActivated, this, [this] { apply(); });
    connect(m_line, &QLineEdit::returnPressed, this, &GalleryPanel::apply);
    connect(m_line, &QLineEdit::textChanged, this, [this] { setRefusal({}); });
    connect(m_line, &QLineEdit::textChanged, this,
        [this](const QString &text) { m_apply->setEnabled(isEnabled() && !text.trimmed().isEmpty()); });
    connect(m_form, &GalleryForm::edited, this,
        [this] { m_line->setText(QString::fromStdString(m_form->spec())); });
    m_askTimer.setSingleShot(true);
    m_askTimer.setInterval(250);
    connect(&m_askTimer, &QTimer::timeout, this, [this] {
        const std::string said = spec().toStdString();
        if (m_action->isEnabled() && m_gallery.find(said.substr(0, said.find(':'))))
            Q_EMIT asked(spec());
    });
    connect(m_line, &QLineEdit::textChanged, this, [this] {
        const std::string said = spec().toStdString();
        const GalleryEntry *entry = m_gallery.find(said.substr(0, said.find(':')));
        m_form->setEntry(entry, said);
        m_details->setVisible(entry != nullptr);
        ask();
    });
    connect(m_apply, &QPushButton::clicked, this, &GalleryPanel::apply);
    connect(m_action, &QAction::triggered, this, &GalleryPanel::apply);
    m_apply->setEnabled(false);
}

void GalleryPanel::fill()
{
    const QSignalBlocker blocker(m_list);
    const int row = m_list->currentRow();
    m_list->clear();
    for (const GalleryEntry &entry : m_gallery.entries) {
        auto *item = new QListWidgetItem(QString::fromStdString(entry.name + "\n" + entry.meaning), m_list);
        item->setData(Qt::UserRole, QString::fromStdString(gallerySpecFor(entry.name, m_devices)));
        QStringList parameters;
        for (const GalleryParameter &parameter : entry.parameters)
            parameters.append(QString::fromStdString(formOf(parameter)));
        if (!parameters.isEmpty())
            item->setToolTip(tr("Parameters: %1").arg(parameters.join(QStringLiteral(", "))));
    }
    m_list->setCurrentRow(row);
}

void GalleryPanel::apply()
{
    if (spec().isEmpty() && m_list->currentItem())
        m_line->setText(m_list->currentItem()->data(Qt::UserRole).toString());
    setRefusal({});
    if (!m_copied.isEmpty() && m_action->isEnabled())
        askAboutCopies();
    else if (!spec().isEmpty() && m_action->isEnabled())
        Q_EMIT chosen(spec());
    else if (spec().isEmpty())
        m_list->setFocus(Qt::ShortcutFocusReason); // something must be chosen first
}

void GalleryPanel::askAboutCopies()
{
    if (m_question)
        return m_question->activateWindow();
    m_question = new QMessageBox(
        QMessageBox::Question, tr("Apply a Plan of Copies?"), m_copied, QMessageBox::NoButton, this);
    m_question->setAttribute(Qt::WA_DeleteOnClose);
    m_question->setInformativeText(
        tr("The devices of %1 would hardly share the work.").arg(spec().section(QLatin1Char(':'), 0, 0)));
    QPushButton *apply = m_question->addButton(tr("Apply All the Same"), QMessageBox::AcceptRole);
    m_question->setDefaultButton(m_question->addButton(tr("Keep the Rows"), QMessageBox::RejectRole));
    connect(apply, &QPushButton::clicked, this, [this, wanted = spec()] { Q_EMIT chosen(wanted); });
    m_question->open();
}

void GalleryPanel::ask()
{
    m_effect->hide();
    m_known.reset();
    m_copied.clear();
    setRefusal({});
    m_askTimer.start();
}

void GalleryPanel::setNow(const TimelineSummary *now)
{
    if (const auto known = m_known)
        setEffect(*known, now);
}

void GalleryPanel::setEffect(const Result<GalleryEffect> &effect, const TimelineSummary *now)
{
    QStringList lines;
    if (!effect) {
        lines.append(tr("Does not fit this model: %1").arg(QString::fromStdString(effect.error().message)));
    } else {
        m_form->setDecided(effect->values);
        const double step = effect->summary.stepSeconds;
        QString first = tr("Step %1").arg(QString::fromStdString(formatSeconds(step)));
        if (now && now->stepSeconds > 0) {
            const double change = 100 * (step / now->stepSeconds - 1);
            first += tr(", now %1 (%2)")
                         .arg(QString::fromStdString(formatSeconds(now->stepSeconds)),
                             change <= 0 ? tr("saves %1%").arg(-change, 0, 'f', 0)
                                         : tr("costs %1%").arg(change, 0, 'f', 0));
        }
        lines.append(first);
        lines.append(
            (effect->fits ? tr("Memory %1 of %2 on the fullest device") : tr("Memory %1 of %2: does not fit"))
                .arg(QString::fromStdString(formatBytes(effect->summary.largestPeak)),
                    QString::fromStdString(formatBytes(effect->memory))));
        for (const std::string &sentence : effect->uncut)
            lines.append(tr("Not cut: %1").arg(QString::fromStdString(sentence)));
        if (!effect->copied.empty())
            lines.append(tr("Copied: %1").arg(QString::fromStdString(effect->copied)));
    }
    m_known = std::make_shared<const Result<GalleryEffect>>(effect);
    m_copied = effect && effect->isCopied ? QString::fromStdString(effect->copied) : QString();
    m_effect->setText(lines.join(QLatin1Char('\n')));
    QPalette colours = m_effect->palette();
    const Palette &palette = paletteFor(*this);
    colours.setColor(
        QPalette::WindowText, effect && effect->fits && !effect->isCopied ? palette.text : palette.error);
    m_effect->setPalette(colours);
    m_effect->show();
}

QString GalleryPanel::effect() const
{
    return m_effect->isHidden() ? QString() : m_effect->text();
}

void GalleryPanel::setDeviceCount(int devices)
{
    if (devices == m_devices)
        return;
    m_devices = devices;
    fill();
    ask();
}

void GalleryPanel::setUsable(bool usable)
{
    m_action->setEnabled(usable);
    m_apply->setEnabled(usable && !spec().isEmpty());
}

void GalleryPanel::setSpec(const QString &spec)
{
    m_line->setText(spec);
    m_line->setCursorPosition(0); // its beginning says what it is
}

void GalleryPanel::setRefusal(const QString &reason)
{
    m_refusal->setText(reason);
    m_refusal->setAccessibleName(reason);
    QPalette colours = m_refusal->palette();
    colours.setColor(QPalette::WindowText, paletteFor(*this).error);
    m_refusal->setPalette(colours);
    m_refusal->setVisible(!reason.isEmpty());
}

QString GalleryPanel::refusal() const
{
    return m_refusal->text();
}

QString GalleryPanel::spec() const
{
    return m_line->text().trimmed();
}

} // namespace planloom

#include "moc_gallery_panel.cpp"
