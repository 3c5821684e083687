#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QObject>
#include <QtCore/QThreadPool>

#include "engine/design/explain/gallery_effect.h"

#include <memory>
#include <stop_token>

namespace planloom {

/// What is known of a gallery plan that was asked for.
using GalleryEffectSnapshot = std::shared_ptr<const Result<GalleryEffect>>;

/// Works out the effect of gallery plans off the GUI thread; the newest question wins. Lives on the GUI
/// thread.
class GalleryPreview : public QObject
{
    Q_OBJECT
public:
    explicit GalleryPreview(QObject *parent = nullptr);
    ~GalleryPreview() override;

    /// @param request  with a gallery plan and a model
    void ask(PlanRequest request);
    /// Drops what is under way.
    void stop();
    bool isWorking() const { return m_working; }

Q_SIGNALS:
    void found(planloom::GalleryEffectSnapshot effect);

private:
    void take();

    QThreadPool m_pool;
    std::stop_source m_stop;
    QFutureWatcher<GalleryEffectSnapshot> m_watcher{this};
    bool m_working = false;
};

} // namespace planloom

Q_DECLARE_METATYPE(planloom::GalleryEffectSnapshot)
