#include "widgets/main/inspector_panel.h"

#include <QtCore/QEvent>
#include <QtWidgets/QScrollBar>

#include "widgets/main/inspector_text.h"

namespace planloom {

InspectorPanel::InspectorPanel(SelectionModel *selection, QWidget *parent)
    : QTextBrowser(parent), m_selection(selection)
{
    setFrameShape(QFrame::NoFrame);
    setOpenLinks(false);
    setAccessibleName(tr("Inspector"));
    setPlaceholderText(tr("What is selected is explained here."));
    document()->setDocumentMargin(10);
    connect(m_selection, &SelectionModel::selectionChanged, this, &InspectorPanel::refresh);
}

void InspectorPanel::setModel(ModelSnapshot model)
{
    m_model = std::move(model);
    m_update.reset();
    refresh();
}

void InspectorPanel::setPlan(PlanUpdateSnapshot update)
{
    m_update = std::move(update);
    refresh();
}

void InspectorPanel::changeEvent(QEvent *event)
{
    QTextBrowser::changeEvent(event);
    if (event->type() == QEvent::PaletteChange || event->type() == QEvent::FontChange)
        refresh();
}

void InspectorPanel::refresh()
{
    if (!m_model) {
        clear();
        return;
    }
    const PlanUpdate *update = m_update && m_update->model == m_model ? m_update.get() : nullptr;
    const int scroll = verticalScrollBar()->value();
    setHtml(inspectorText(paletteFor(*this), *m_model, update, m_selection->selected()));
    verticalScrollBar()->setValue(scroll);
}

} // namespace planloom
