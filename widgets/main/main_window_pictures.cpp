// Pictures out: of DAG and timeline for papers and slides, and the thumbnails of the recent list.

#include "widgets/main/main_window.h"

#include <QtConcurrent/QtConcurrentRun>
#include <QtCore/QBuffer>
#include <QtCore/QFileInfo>
#include <QtCore/QFutureWatcher>
#include <QtGui/QPainter>
#include <QtGui/QPicture>

#include "widgets/dag/dag_still.h"
#include "widgets/main/log_panel.h"
#include "widgets/main/notice_bar.h"
#include "widgets/main/picture_dialog.h"

#include <cmath>
#include <utility>

namespace planloom {

namespace {

constexpr int kThumbnailWidth = 320;
constexpr int kThumbnailHeight = 120;

/// Something that only the GUI thread can paint, for a worker: vectors are recorded now, tiles are asked for
/// one by one.
PictureSource paintedHere(QWidget *view, const QSizeF &size, const QColor &ground, bool vectors,
    std::function<void(QPainter &)> paint)
{
    PictureSource source;
    source.size = size;
    source.ground = ground;
    if (vectors) {
        QPicture recorded;
        recorded.setBoundingRect(QRectF(QPointF(), size).toAlignedRect());
        QPainter painter(&recorded);
        paint(painter);
        painter.end();
        source.paint = [recorded](QPainter &into) mutable { recorded.play(&into); };
        return source;
    }
    source.pixels = [view = QPointer<QWidget>(view), ground, paint = std::move(paint)](
                        const QRectF &tile, double scale) {
        QImage image;
        // If the view goes meanwhile, the call does, and the image stays empty.
        if (QWidget *still = view.data()) {
            QMetaObject::invokeMethod(
                still, [&] { image = pixelsOf(tile, scale, ground, paint); }, Qt::BlockingQueuedConnection);
        }
        return image;
    };
    return source;
}

} // namespace

void MainWindow::exportPicture()
{
    auto *dialog = new PictureDialog(!m_selection.selected().empty(), this);
    dialog->setAttribute(Qt::WA_DeleteOnClose);
    PictureChoice choice;
    choice.timeline = m_canvas == m_timeline && m_timeline->scene();
    choice.theme = paletteFor(*this).dark ? PictureTheme::Dark : PictureTheme::Light;
    dialog->setChoice(choice);
    connect(dialog, &PictureDialog::chosen, this, [this](const PictureChoice &made) {
        askFile(tr("Export the picture"), tr("Pictures (*.%1)").arg(made.suffix),
            m_workspace.title() + QLatin1Char('.') + made.suffix, true,
            [this, made](const QString &path) { savePicture(made, path); });
    });
    dialog->open();
}

PictureSource MainWindow::timelinePicture(const PictureChoice &choice, const Palette &palette)
{
    std::optional<TimelinePart> part;
    if (choice.part == PicturePart::Whole)
        part = m_timeline->wholePart();
    else if (choice.part == PicturePart::Selection)
        part = m_timeline->partOfSelection();
    const QSize seen = m_timeline->viewport()->size();
    const QSize size = part ? m_timeline->pictureSize(seen.width(), &*part) : seen;
    return paintedHere(m_timeline, size, palette.canvas, choice.suffix != QLatin1String("png"),
        [timeline = m_timeline, size, palette, part](
            QPainter &painter) { timeline->render(painter, size, palette, part ? &*part : nullptr); });
}

PictureSource MainWindow::dagPicture(const PictureChoice &choice, const Palette &palette)
{
    const DagExtent extent = choice.part == PicturePart::Whole ? DagExtent::WholeModel
        : choice.part == PicturePart::Selection                ? DagExtent::Selection
                                                               : DagExtent::InSight;
    const std::shared_ptr<const DagStill> still = m_dag->still(extent, palette);
    PictureSource source;
    source.size = still->size();
    source.ground = palette.canvas;
    source.paint = [still](QPainter &painter) { still->paint(painter, QRectF(QPointF(), still->size())); };
    source.pixels = [still, ground = palette.canvas](const QRectF &tile, double scale) {
        return pixelsOf(QRectF(QPointF(), tile.size()), scale, ground,
            [&](QPainter &painter) { still->paintTile(painter, tile); });
    };
    return source;
}

void MainWindow::savePicture(const PictureChoice &choice, const QString &path)
{
    if (choice.timeline && !m_timeline->scene()) {
        const Error error{
            ErrorCode::InvalidInput, "there is no timeline to make a picture of", "solve first: F5", {}};
        onProblem(error);
        Q_EMIT pictureSaved(path, false);
        return;
    }
    const Palette palette = paletteForPicture(choice.theme);
    PictureSource source = choice.timeline ? timelinePicture(choice, palette) : dagPicture(choice, palette);
    source.title = m_workspace.title();
    std::stop_source stop;
    const QString notice = QStringLiteral("picture/") + path;
    m_notices->show({notice, NoticeKind::Info, tr("Writing the picture %1 …").arg(QFileInfo(path).fileName()),
        {{tr("Cancel"), [stop]() mutable { stop.request_stop(); }}}, false});
    auto *watcher = new QFutureWatcher<std::shared_ptr<Result<void>>>(this);
    connect(watcher, &QFutureWatcherBase::finished, this, [this, watcher, path, notice] {
        watcher->deleteLater();
        m_notices->dismiss(notice);
        const Result<void> outcome = *watcher->result();
        if (outcome)
            m_log->model()->add(LogKind::Session, tr("Wrote %1").arg(path));
        else if (outcome.error().code != ErrorCode::Cancelled)
            onProblem(outcome.error());
        Q_EMIT pictureSaved(path, static_cast<bool>(outcome));
    });
    watcher->setFuture(
        QtConcurrent::run([path, source = std::move(source), scale = choice.scale, token = stop.get_token()] {
            return std::make_shared<Result<void>>(writePicture(path, source, scale, token));
        }));
}

bool MainWindow::showsPresentPlan() const
{
    const PlanUpdateSnapshot &good = m_workspace.lastGood();
    return good && good->scene && m_timeline->scene() == good->scene && m_timeline->isVisible()
        && !m_workspace.isStale() && !m_workspace.isReadOnly() && !m_workspace.showsBestSoFar();
}

/// What the timeline shows, small: painted here, shrunk and packed on a worker.
void MainWindow::makeThumbnail()
{
    m_thumbnailTimer.stop();
    if (m_thumbnailWatcher.isRunning() || !showsPresentPlan())
        return;
    m_pictured = m_workspace.designRevision();
    m_thumbnailWatcher.setFuture(QtConcurrent::run(
        [whole = m_timeline->viewport()->grab().toImage()] { return packedThumbnail(whole); }));
}

QByteArray MainWindow::packedThumbnail(const QImage &whole)
{
    const QImage small = whole
                             .scaled(kThumbnailWidth, kThumbnailHeight, Qt::KeepAspectRatioByExpanding,
                                 Qt::SmoothTransformation)
                             .copy(0, 0, kThumbnailWidth, kThumbnailHeight);
    QByteArray png;
    QBuffer buffer(&png);
    if (!buffer.open(QIODevice::WriteOnly) || !small.save(&buffer, "PNG"))
        return {};
    return png;
}

} // namespace planloom
