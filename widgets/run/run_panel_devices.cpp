// What this machine has to run plans on, in the Run dock.

#include "widgets/run/run_panel.h"

#include "widgets/common/themed_icon.h"
#include "widgets/run/run_panel_parts.h"

#include <QtGui/QAction>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QVBoxLayout>

namespace planloom {

QTableView *tableFor(QAbstractItemModel *model, const QString &name, QWidget *parent)
{
    auto *view = new QTableView(parent);
    view->setModel(model);
    view->setAccessibleName(name);
    view->setSelectionBehavior(QAbstractItemView::SelectRows);
    view->setSelectionMode(QAbstractItemView::SingleSelection);
    view->setEditTriggers(QAbstractItemView::NoEditTriggers);
    view->setAlternatingRowColors(true);
    view->setShowGrid(false);
    view->setTabKeyNavigation(false);
    view->verticalHeader()->hide();
    view->verticalHeader()->setDefaultSectionSize(view->fontMetrics().height() + 6);
    view->horizontalHeader()->setStretchLastSection(true);
    view->horizontalHeader()->setDefaultAlignment(Qt::AlignLeft | Qt::AlignVCenter);
    return view;
}

QToolButton *buttonFor(QAction *action, QWidget *parent)
{
    auto *button = new QToolButton(parent);
    button->setDefaultAction(action);
    button->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
    button->setAccessibleName(action->text().remove(QLatin1Char('&')));
    button->setFocusPolicy(Qt::StrongFocus);
    return button;
}

void RunPanel::buildBackends(QWidget *parent)
{
    m_backend = new QComboBox(parent);
    m_backend->setObjectName(QStringLiteral("run.backend"));
    // In the order of RunBackend.
    m_backend->addItems({tr("Processor (emulated)"), tr("GPUs, a process each"), tr("One GPU (emulated)"),
        tr("PyTorch, a process each")});
    m_backend->setAccessibleName(tr("Run on"));
    m_backend->setToolTip(
        tr("What the plan's devices are. GPUs each run a device and talk by NCCL; on the processor, or on "
           "one GPU, any number of devices is emulated: the same results, other times. PyTorch runs the plan "
           "as it exports it, by torchrun."));
    connect(m_backend, &QComboBox::currentIndexChanged, this, [this] {
        m_ranks->setEnabled(m_backend->isEnabled() && setup().backend == RunBackend::Cpu);
        showPython();
        refreshSetup();
    });
    m_python = new TorchPython(parent);
    m_python->hide();
    connect(m_python, &TorchPython::changed, this, &RunPanel::refreshSetup);
    constexpr int kLookMilliseconds = 2000;
    m_lookTimer.setInterval(kLookMilliseconds);
    connect(&m_lookTimer, &QTimer::timeout, this, [this] { m_machineProbe.look(m_service.program()); });
}

void RunPanel::showPython()
{
    const bool wanted = setup().backend == RunBackend::Torch;
    m_python->setVisible(wanted);
    if (wanted)
        m_python->ask();
}

void RunPanel::buildOffer(QWidget *parent)
{
    m_offerAction = new QAction(themedIcon(QLatin1String("run")), QString(), this);
    m_offerAction->setObjectName(QLatin1String("run.takeOffer"));
    connect(m_offerAction, &QAction::triggered, this, [this] {
        if (m_offer)
            m_backend->setCurrentIndex(static_cast<int>(*m_offer));
    });
    m_offerButton = buttonFor(m_offerAction, parent);
    m_offerButton->setSizePolicy(QSizePolicy::Expanding, QSizePolicy::Fixed);
    m_offerButton->hide();
}

/// What cannot run where it was to run can do so elsewhere: that is one click away.
void RunPanel::showOffer(std::optional<RunBackend> offer)
{
    m_offer = offer;
    m_offerAction->setVisible(offer.has_value());
    m_offerButton->setVisible(offer.has_value());
    if (!offer)
        return;
    m_offerAction->setText(*offer == RunBackend::Cuda ? tr("Run on the &GPUs Instead")
            : *offer == RunBackend::CudaEmulated      ? tr("&Emulate on One GPU Instead")
                                                      : tr("&Emulate on the Processor Instead"));
    m_offerButton->setAccessibleName(m_offerAction->text().remove(QLatin1Char('&')));
}

void RunPanel::buildDevices()
{
    auto *page = new QWidget(m_tabs);
    m_machineView = tableFor(m_machine, tr("Devices of this machine"), page);
    auto *again = new QAction(themedIcon(QLatin1String("redo")), tr("&Look Again"), this);
    again->setObjectName(QLatin1String("run.lookAgain"));
    connect(again, &QAction::triggered, this, [this] { m_machineProbe.look(m_service.program()); });
    connect(&m_machineProbe, &MachineProbe::changed, this, &RunPanel::refreshDevices);
    auto *layout = new QVBoxLayout(page);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_machineView, 1);
    layout->addWidget(buttonFor(again, page), 0, Qt::AlignLeft);
    m_tabs->addTab(page, tr("Devices")); // what there is to know before a run, beside what comes of it
    refreshDevices();
}

void RunPanel::refreshDevices()
{
    m_machine->setFound(m_machineProbe.found(),
        m_machineProbe.isLooking() && !m_lookTimer.isActive() ? tr("Looking ...") : m_machineProbe.problem());
    m_machineView->resizeColumnsToContents();
    if (!m_machineProbe.isLooking() && !m_service.isRunning())
        refreshSetup();
}

void RunPanel::showEvent(QShowEvent *event)
{
    QWidget::showEvent(event);
    if (!m_machineProbe.found() && m_machineProbe.problem().isEmpty())
        m_machineProbe.look(m_service.program());
}

} // namespace planloom
