#include "widgets/table/paste_preview.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListWidget>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

#include "widgets/common/format.h"
#include "widgets/common/palette.h"
#include "widgets/common/qt_text.h"

#include <algorithm>
#include <unordered_map>

namespace planloom {

namespace {

constexpr std::size_t kMostShown = 100; ///< Lines of a preview; the sentence above speaks of all of them.
constexpr int kLinesHigh = 6;

} // namespace

PasteReach reachOf(const OpenedModel &model, const std::vector<std::string> &lines, std::stop_token stop)
{
    PasteReach reach;
    std::vector<char> reached(model.index->forwardCount(), 0);
    std::unordered_map<std::string, std::int64_t> known;
    for (const std::string &text : lines) {
        if (stop.stop_requested())
            break;
        const auto line = readLine(text);
        if (!line->row) {
            reach.operators.push_back(line->isRemark() ? PasteReach::kRemark : PasteReach::kNoRow);
            reach.unreadable += line->isRemark() ? 0 : 1;
            continue;
        }
        if (!hasSelector(line->row->rule)) {
            reach.operators.push_back(PasteReach::kWholePlan);
            ++reach.bound;
            continue;
        }
        const auto [found, fresh] = known.emplace(toString(line->row->selector), 0);
        if (fresh) {
            for (const OperatorId op : model.index->select(line->row->selector)) {
                ++found->second;
                if (static_cast<std::size_t>(op.index) < reached.size())
                    reached[static_cast<std::size_t>(op.index)] = 1;
            }
        }
        reach.operators.push_back(found->second);
        ++(found->second > 0 ? reach.bound : reach.unbound);
    }
    reach.reached = std::count(reached.begin(), reached.end(), char{1});
    return reach;
}

PastePreview::PastePreview(QWidget *parent)
    : QFrame(parent)
    , m_summary(new QLabel(this))
    , m_list(new QListWidget(this))
    , m_apply(new QToolButton(this))
    , m_cancel(new QToolButton(this))
{
    setFrameShape(QFrame::StyledPanel);
    setFocusPolicy(Qt::StrongFocus);
    setAccessibleName(tr("Rows to be pasted"));
    m_summary->setWordWrap(true);
    m_summary->setTextFormat(Qt::PlainText);
    m_list->setAccessibleName(tr("What the pasted rows bind"));
    m_list->setSelectionMode(QAbstractItemView::NoSelection);
    m_list->setFocusPolicy(Qt::TabFocus);
    m_apply->setText(tr("Paste"));
    m_apply->setToolTip(tr("Write these rows (Enter)"));
    m_apply->setAccessibleName(tr("Paste these rows"));
    m_cancel->setText(tr("Cancel"));
    m_cancel->setToolTip(tr("Leave the table as it is (Esc)"));
    m_cancel->setAccessibleName(tr("Don't paste"));
    for (QToolButton *button : {m_apply, m_cancel})
        button->setToolButtonStyle(Qt::ToolButtonTextOnly);
    auto *top = new QHBoxLayout;
    top->addWidget(m_summary, 1);
    top->addWidget(m_apply);
    top->addWidget(m_cancel);
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(4, 4, 4, 4);
    layout->addLayout(top);
    layout->addWidget(m_list);
    connect(m_apply, &QToolButton::clicked, this, [this] { leave(true); });
    connect(m_cancel, &QToolButton::clicked, this, [this] { leave(false); });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &PastePreview::take);
    hide();
}

PastePreview::~PastePreview()
{
    m_stop.request_stop();
}

void PastePreview::show(const PastedRows &pasted, const ModelSnapshot &model)
{
    m_pasted = pasted;
    m_list->clear();
    for (std::size_t i = 0; i < std::min(pasted.lines.size(), kMostShown); ++i)
        m_list->addItem(toQString(pasted.lines[i]));
    if (pasted.lines.size() > kMostShown)
        m_list->addItem(tr("… and %1 lines more").arg(pasted.lines.size() - kMostShown));
    const int shown = std::clamp(m_list->count(), 1, kLinesHigh);
    m_list->setFixedHeight(shown * std::max(m_list->sizeHintForRow(0), m_list->fontMetrics().height())
        + 2 * m_list->frameWidth() + 2);
    m_summary->setText((pasted.rows == 1 ? tr("1 row to paste") : tr("%1 rows to paste").arg(pasted.rows))
        + QStringLiteral(" …"));
    QFrame::show();
    setFocus();
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_watcher.setFuture(QtConcurrent::run([model, lines = pasted.lines, stop = m_stop.get_token()] {
        return std::make_shared<const PasteReach>(reachOf(*model, lines, stop));
    }));
}

void PastePreview::take()
{
    if (!isOpen() || m_watcher.future().resultCount() == 0)
        return;
    const std::shared_ptr<const PasteReach> reach = m_watcher.result();
    const Palette &palette = paletteFor(*this);
    for (int i = 0;
         i < m_list->count() && static_cast<std::size_t>(i) < std::min(reach->operators.size(), kMostShown);
         ++i) {
        const std::int64_t operators = reach->operators[static_cast<std::size_t>(i)];
        QString mark;
        QString binds;
        QColor colour = palette.text;
        if (operators == PasteReach::kNoRow) {
            mark = QStringLiteral("✖ ");
            binds = tr("can't be read: kept in red");
            colour = palette.error;
        } else if (operators == 0) {
            mark = QStringLiteral("⚠ ");
            binds = tr("binds nothing in this model");
            colour = palette.warning;
        } else if (operators == PasteReach::kWholePlan) {
            binds = tr("whole plan");
        } else if (operators > 0) {
            binds =
                operators == 1 ? tr("1 operator") : tr("%1 operators").arg(toQString(formatCount(operators)));
        } else {
            colour = palette.textMuted;
        }
        const std::string &line = m_pasted.lines[static_cast<std::size_t>(i)];
        m_list->item(i)->setText(
            mark + toQString(line) + (binds.isEmpty() ? QString() : QStringLiteral("   →  ") + binds));
        m_list->item(i)->setForeground(colour);
    }
    QString text = reach->bound == 1 ? tr("1 row will bind") : tr("%1 rows will bind").arg(reach->bound);
    text += QLatin1Char(' ')
        + (reach->reached == 1 ? tr("(1 operator)")
                               : tr("(%1 operators)").arg(toQString(formatCount(reach->reached))));
    if (reach->unbound > 0)
        text += reach->unbound == 1 ? tr(", 1 binds nothing") : tr(", %1 bind nothing").arg(reach->unbound);
    if (reach->unreadable > 0)
        text += reach->unreadable == 1 ? tr(", 1 line can't be read")
                                       : tr(", %1 lines can't be read").arg(reach->unreadable);
    m_summary->setText(text + tr(". Enter pastes, Esc leaves the table as it is."));
}

QString PastePreview::summary() const
{
    return m_summary->text();
}

void PastePreview::leave(bool apply)
{
    m_stop.request_stop();
    hide();
    apply ? Q_EMIT accepted() : Q_EMIT rejected();
}

void PastePreview::keyPressEvent(QKeyEvent *event)
{
    if (event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter)
        leave(true);
    else if (event->key() == Qt::Key_Escape)
        leave(false);
    else
        QFrame::keyPressEvent(event);
}

} // namespace planloom

#include "moc_paste_preview.cpp"
