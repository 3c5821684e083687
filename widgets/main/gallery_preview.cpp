#include "widgets/main/gallery_preview.h"

#include <QtConcurrent/QtConcurrentRun>

#include <utility>

namespace planloom {

GalleryPreview::GalleryPreview(QObject *parent)
    : QObject(parent)
{
    m_pool.setMaxThreadCount(1);
    connect(&m_watcher, &QFutureWatcherBase::finished, this, &GalleryPreview::take);
}

GalleryPreview::~GalleryPreview()
{
    m_stop.request_stop();
}

void GalleryPreview::ask(PlanRequest request)
{
    m_stop.request_stop();
    m_stop = std::stop_source{};
    m_working = true;
    m_watcher.setFuture(QtConcurrent::run(
        &m_pool, [request = std::move(request), token = m_stop.get_token()]() -> GalleryEffectSnapshot {
            return std::make_shared<const Result<GalleryEffect>>(effectOf(request, token));
        }));
}

void GalleryPreview::stop()
{
    m_stop.request_stop();
    m_watcher.setFuture({});
    m_working = false;
}

void GalleryPreview::take()
{
    if (!m_working || m_watcher.future().resultCount() == 0)
        return;
    m_working = false;
    const GalleryEffectSnapshot effect = m_watcher.result();
    if (*effect || effect->error().code != ErrorCode::Cancelled)
        Q_EMIT found(effect);
}

} // namespace planloom

#include "moc_gallery_preview.cpp"
