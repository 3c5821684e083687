#include "widgets/dag/dag_breadcrumbs.h"

#include "widgets/dag/dag_view.h"

#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QToolButton>

namespace planloom {

DagBreadcrumbs::DagBreadcrumbs(DagView *view, QWidget *parent)
    : QWidget(parent)
    , m_view(view)
    , m_row(new QHBoxLayout(this))
{
    setAccessibleName(tr("Where the graph is shown from"));
    m_row->setContentsMargins(0, 0, 0, 0);
    m_row->setSpacing(2);
    m_row->addStretch(1);
    connect(view, &DagView::breadcrumbsChanged, this, &DagBreadcrumbs::rebuild);
    rebuild(view->breadcrumbs());
}

void DagBreadcrumbs::setModelName(const QString &name)
{
    m_modelName = name;
    rebuild(m_labels);
}

QStringList DagBreadcrumbs::labels() const
{
    QStringList labels = m_labels;
    if (!labels.isEmpty() && !m_modelName.isEmpty())
        labels.front() = m_modelName;
    return labels;
}

void DagBreadcrumbs::rebuild(const QStringList &labels)
{
    m_labels = labels;
    while (m_row->count() > 1) { // all but the stretch
        QLayoutItem *item = m_row->takeAt(0);
        item->widget()->hide();
        item->widget()->deleteLater(); // it may be the button that was pressed
        delete item;
    }
    int place = 0;
    const QStringList shown = this->labels();
    for (qsizetype i = 0; i < shown.size(); ++i) {
        if (i > 0)
            m_row->insertWidget(place++, new QLabel(QStringLiteral("›"), this));
        auto *button = new QToolButton(this);
        button->setAutoRaise(true);
        button->setText(QString(shown[i]).replace(QLatin1Char('&'), QLatin1String("&&")));
        button->setAccessibleName(tr("Show %1 whole").arg(shown[i]));
        button->setToolTip(button->accessibleName());
        connect(button, &QToolButton::clicked, m_view,
            [view = m_view, i] { view->showBreadcrumb(static_cast<int>(i)); });
        m_row->insertWidget(place++, button);
    }
}

} // namespace planloom

#include "moc_dag_breadcrumbs.cpp"
