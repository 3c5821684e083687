#include "widgets/main/inspector_panel.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QEvent>
#include <QtCore/QThread>
#include <QtGui/QAbstractTextDocumentLayout>
#include <QtGui/QTextDocument>
#include <QtWidgets/QScrollBar>

#include "widgets/main/inspector_text.h"

#include <utility>

namespace planloom {

namespace {

/// How a text lies in the panel.
struct Page {
    QFont font{};
    QTextOption option{};
    qreal margin = 0;
    QSizeF size{};
};

Page pageOf(const QTextDocument &document)
{
    return {
        document.defaultFont(), document.defaultTextOption(), document.documentMargin(), document.pageSize()};
}

/// Read and laid out on a worker: that takes longer than the GUI thread has.
std::shared_ptr<QTextDocument> laidOut(const QString &html, const Page &page, QThread &home)
{
    auto document = std::make_shared<QTextDocument>();
    document->setUndoRedoEnabled(false);
    document->setDefaultFont(page.font);
    document->setDefaultTextOption(page.option);
    document->setDocumentMargin(page.margin);
    document->setPageSize(page.size);
    document->setHtml(html);
    document->documentLayout()->documentSize();
    document->moveToThread(&home);
    return document;
}

} // namespace

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
    connect(this, &QTextBrowser::anchorClicked, this, [this](const QUrl &link) {
        if (link.scheme() == QLatin1String("why"))
            setInFull(link.path() == QLatin1String("full"));
    });
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &InspectorPanel::take);
}

InspectorPanel::~InspectorPanel()
{
    setDocument(nullptr); // the browser looks at it until its own end
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

void InspectorPanel::setInFull(bool isInFull)
{
    if (std::exchange(m_isInFull, isInFull) != isInFull)
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
                              selected = m_selection->selected(), page = pageOf(*document()), home = thread(),
                              isInFull = m_isInFull] {
            return laidOut(inspectorText(palette, *model, update.get(), selected, isInFull), page, *home);
        }));
}

void InspectorPanel::take()
{
    if (m_outdated && isVisible()) {
        refresh();
        return;
    }
    const int scroll = verticalScrollBar()->value();
    const std::shared_ptr<QTextDocument> text = m_watcher.result();
    setDocument(text.get());
    m_text = text; // not before: the one that goes was shown until now
    verticalScrollBar()->setValue(scroll);
}

} // namespace planloom

#include "moc_inspector_panel.cpp"
