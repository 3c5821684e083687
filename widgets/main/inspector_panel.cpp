#include "widgets/main/inspector_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QEvent>
#include <QtWidgets/QScrollBar>

#include "widgets/main/inspector_text.h"

#include <utility>

namespace planloom {

InspectorPanel::InspectorPanel(SelectionModel *selection, QWidget *parent)
    : QTextBrowser(parent)
    , m_selection(selection)
{
    setFrameShape(QFrame::NoFrame);
    setOpenLinks(false);
    setUndoRedoEnabled(false);
    setAccessibleName(tr("Inspector"));
    setPlaceholderText(tr("What is selected is explained here."));
    document()->setDocumentMargin(10);
    connect(m_selection, &SelectionModel::selectionChanged, this, &InspectorPanel::refresh);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &InspectorPanel::take);
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

void InspectorPanel::showEvent(QShowEvent *event)
{
    QTextBrowser::showEvent(event);
    if (m_outdated)
        refresh();
}

void InspectorPanel::refresh()
{
    if (!m_model) {
        clear();
        return;
    }
    // One at a time: what changes meanwhile is in the next one.
    m_outdated = true;
    if (!isVisible() || m_watcher.isRunning())
        return;
    m_outdated = false;
    PlanUpdateSnapshot update = m_update && m_update->model == m_model ? m_update : nullptr;
    m_watcher.setFuture(
        QtConcurrent::run([palette = paletteFor(*this), model = m_model, update = std::move(update),
                              selected = m_selection->selected()] {
            return inspectorText(palette, *model, update.get(), selected);
        }));
}

void InspectorPanel::take()
{
    if (m_outdated && isVisible()) {
        refresh();
        return;
    }
    const int scroll = verticalScrollBar()->value();
    setHtml(m_watcher.result());
    verticalScrollBar()->setValue(scroll);
}

} // namespace planloom
