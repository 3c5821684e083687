#include "widgets/dag/dag_cone_bar.h"

#include <QtCore/QSignalBlocker>
#include <QtGui/QKeyEvent>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QSlider>
#include <QtWidgets/QToolButton>

#include <algorithm>

namespace planloom {

DagConeBar::DagConeBar(QWidget *canvas)
    : QFrame(canvas)
    , m_what(new QLabel(this))
    , m_depth(new QSlider(Qt::Horizontal, this))
    , m_text(new QLabel(this))
{
    setFrameShape(QFrame::StyledPanel);
    setAutoFillBackground(true);
    setAccessibleName(tr("Depth of the cone"));
    m_depth->setAccessibleName(tr("Steps of the data flow"));
    m_depth->setToolTip(tr("How many steps are selected (Alt+[ fewer, Alt+] more)"));
    m_depth->setMinimumWidth(fontMetrics().averageCharWidth() * 24);
    m_depth->setPageStep(5);
    m_depth->installEventFilter(this);
    m_text->setMinimumWidth(
        fontMetrics().horizontalAdvance(tr("%1 of %2 steps · %3 operators").arg(888).arg(888).arg(88888)));
    auto *close = new QToolButton(this);
    close->setText(QStringLiteral("✕"));
    close->setAutoRaise(true);
    close->setToolTip(tr("Close; the selection stays (Esc)"));
    close->setAccessibleName(tr("Close the depth of the cone"));
    auto *row = new QHBoxLayout(this);
    row->setContentsMargins(8, 4, 6, 4);
    row->setSpacing(8);
    row->addWidget(m_what);
    row->addWidget(m_depth);
    row->addWidget(m_text);
    row->addWidget(close);
    connect(close, &QToolButton::clicked, this, &DagConeBar::closed);
    connect(m_depth, &QSlider::valueChanged, this, [this](int value) {
        describe();
        Q_EMIT depthChanged(value);
    });
    hide();
}

void DagConeBar::open(bool forwards, int depth)
{
    m_forwards = forwards;
    const QSignalBlocker blocker(m_depth);
    m_depth->setRange(1, std::max(1, depth));
    m_depth->setValue(m_depth->maximum());
    m_what->setText(forwards ? tr("Successors") : tr("Predecessors"));
    describe();
    show();
    raise();
    place();
}

void DagConeBar::setCount(qsizetype operators)
{
    m_operators = operators;
    describe();
}

int DagConeBar::depth() const
{
    return m_depth->value();
}

bool DagConeBar::isWhole() const
{
    return m_depth->value() == m_depth->maximum();
}

void DagConeBar::step(int by)
{
    m_depth->setValue(m_depth->value() + by);
}

void DagConeBar::place()
{
    adjustSize();
    move(std::max(0, (parentWidget()->width() - width()) / 2), 10);
}

void DagConeBar::describe()
{
    m_text->setText(isWhole() ? tr("all %1 steps · %2 operators").arg(m_depth->maximum()).arg(m_operators)
                              : tr("%1 of %2 steps · %3 operators")
                                    .arg(m_depth->value())
                                    .arg(m_depth->maximum())
                                    .arg(m_operators));
    m_depth->setAccessibleDescription(m_text->text());
}

bool DagConeBar::eventFilter(QObject *watched, QEvent *event)
{
    if (event->type() == QEvent::KeyPress) {
        const int key = static_cast<QKeyEvent *>(event)->key(); // the type was checked
        if (key == Qt::Key_Escape || key == Qt::Key_Return || key == Qt::Key_Enter) {
            Q_EMIT closed();
            return true;
        }
    }
    return QFrame::eventFilter(watched, event);
}

} // namespace planloom

#include "moc_dag_cone_bar.cpp"
