#include "widgets/compare/communication_compare.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QSignalBlocker>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QVBoxLayout>

#include "engine/base/words.h"
#include "widgets/common/format.h"
#include "widgets/memory/matrix_view.h"

#include <algorithm>
#include <set>

namespace planloom {

CommunicationCompare::CommunicationCompare(QWidget *parent)
    : QWidget(parent)
    , m_kinds(new QComboBox(this))
    , m_measure(new QComboBox(this))
    , m_sum(new QLabel(this))
    , m_a(new MatrixView(this))
    , m_b(new MatrixView(this))
    , m_difference(new MatrixView(this))
{
    m_kinds->setAccessibleName(tr("Kind of communication"));
    m_kinds->addItem(tr("All kinds"), -1);
    m_measure->setAccessibleName(tr("Measure"));
    m_measure->addItem(tr("Bytes"));
    m_measure->addItem(tr("Time"));
    m_sum->setTextFormat(Qt::PlainText);
    auto *head = new QHBoxLayout;
    head->setContentsMargins(6, 3, 6, 3);
    head->setSpacing(8);
    head->addWidget(m_kinds);
    head->addWidget(m_measure);
    head->addWidget(m_sum, 1);
    auto *matrices = new QHBoxLayout;
    const auto addMatrix = [&](MatrixView *view, const QString &title, const QString &name) {
        auto *column = new QVBoxLayout;
        auto *label = new QLabel(title, this);
        label->setAlignment(Qt::AlignHCenter);
        view->setAccessibleName(name);
        column->addWidget(label);
        column->addWidget(view, 1);
        matrices->addLayout(column, 1);
        connect(view, &MatrixView::cellChosen, this,
            [this](int from, int to) { // one pair of devices in all three
                for (MatrixView *each : {m_a, m_b, m_difference})
                    each->setCurrent({from, to});
            });
    };
    addMatrix(m_a, tr("A"), tr("What devices send in A"));
    addMatrix(m_b, tr("B"), tr("What devices send in B"));
    addMatrix(m_difference, tr("B − A"), tr("What devices send more or less in B"));
    auto *layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(0);
    layout->addLayout(head);
    layout->addLayout(matrices, 1);
    connect(m_kinds, &QComboBox::currentIndexChanged, this, &CommunicationCompare::refresh);
    connect(m_measure, &QComboBox::currentIndexChanged, this, &CommunicationCompare::refresh);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, [this] {
        m_busy = false;
        if (m_watcher.future().resultCount() == 0)
            return;
        m_matrices = m_watcher.result();
        const QSignalBlocker blocker(m_kinds);
        const QVariant before = m_kinds->currentData();
        std::set<InstructionKind> kinds;
        for (const auto &matrix : {m_matrices.a, m_matrices.b}) {
            if (!matrix)
                continue;
            for (const Flow &flow : matrix->flows)
                kinds.insert(flow.kind);
        }
        m_kinds->clear();
        m_kinds->addItem(tr("All kinds"), -1);
        for (const InstructionKind kind : kinds)
            m_kinds->addItem(QString::fromLatin1(nameOf(kind)), static_cast<int>(kind));
        m_kinds->setCurrentIndex(std::max(m_kinds->findData(before), 0));
        refresh();
    });
    refresh();
}

CommunicationCompare::~CommunicationCompare()
{
    m_stop.request_stop();
}

void CommunicationCompare::setResult(CompareSnapshot result)
{
    m_result = std::move(result);
    m_outdated = true;
    if (isVisible())
        workOut();
}

void CommunicationCompare::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    if (m_outdated)
        workOut();
}

void CommunicationCompare::workOut()
{
    m_outdated = false;
    m_busy = true;
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_watcher.setFuture(QtConcurrent::run([result = m_result, stop = m_stop.get_token()] {
        const auto matrixOf =
            [&stop](const PlanUpdateSnapshot &plan) -> std::shared_ptr<const CommunicationMatrix> {
            if (!plan || !plan->scene)
                return nullptr;
            const TimelineScene &scene = *plan->scene;
            auto matrix = communicationMatrix(*scene.plan, *scene.timeline, scene.cluster, stop);
            return matrix ? std::make_shared<const CommunicationMatrix>(*std::move(matrix)) : nullptr;
        };
        return result ? Matrices{matrixOf(result->a), matrixOf(result->b)} : Matrices{};
    }));
}

void CommunicationCompare::refresh()
{
    const int kind = m_kinds->currentData().toInt();
    const auto chosen = kind < 0 ? std::nullopt : std::optional(static_cast<InstructionKind>(kind));
    const bool byTime = m_measure->currentIndex() == 1;
    m_a->setMatrix(m_matrices.a, chosen, byTime);
    m_b->setMatrix(m_matrices.b, chosen, byTime);
    const double largest = std::max(m_a->largest(), m_b->largest()); // one colour means one number
    m_a->setLargest(largest);
    m_b->setLargest(largest);
    m_difference->setDifference(m_matrices.a, m_matrices.b, chosen, byTime);
    if (!m_matrices.a || !m_matrices.b) {
        m_sum->setText(tr("Communication is compared once both plans have a timeline."));
        return;
    }
    const auto sumOf = [&](const CommunicationMatrix &matrix) {
        Bytes bytes;
        Nanoseconds time{};
        for (const Flow &flow : matrix.flows) {
            if (chosen && flow.kind != *chosen)
                continue;
            bytes += flow.bytes;
            time += flow.time;
        }
        return QString::fromStdString(byTime ? formatNanoseconds(time.count()) : formatBytes(bytes));
    };
    m_sum->setText(tr("%1 → %2 in one step, all devices").arg(sumOf(*m_matrices.a), sumOf(*m_matrices.b)));
}

} // namespace planloom

#include "moc_communication_compare.cpp"
