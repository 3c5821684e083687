#pragma once

#include <QtCore/QFutureWatcher>
#include <QtCore/QRectF>
#include <QtWidgets/QWidget>

#include "widgets/common/palette.h"
#include "widgets/common/selection_model.h"
#include "widgets/design/plan_update.h"
#include "widgets/inspector/sharding.h"

#include <memory>
#include <stop_token>
#include <vector>

namespace planloom {

/// One cell's place in a picture: a face to paint, and what it stands for.
struct ShardFace {
    QRectF rect{};
    std::size_t cell = 0; ///< Index into `ShardedTensor::cells`.
    std::int32_t layer = 0; ///< Painted from the largest to 0: slabs of a third dimension, cards of summands.
};

/// Places the cells of a tensor in `area`: the last two cut dimensions across and down, a third one as slabs
/// behind one another, summands as cards shifted over one another. Further dimensions share the face of their
/// first cell. Widget-free; faces lie inside `area` and cells of one slab and summand do not overlap.
std::vector<ShardFace> facesOf(const ShardedTensor &tensor, const Shape &shape, const QRectF &area);

/// The picture of how an operator's tensors lie over the devices, before and after, with what joins them
/// (ux.md, F46).
///
/// Made on a worker for the selected operator; several or none selected give a hint.
class ShardingView : public QWidget
{
    Q_OBJECT
public:
    explicit ShardingView(SelectionModel *selection, QWidget *parent = nullptr);
    ~ShardingView() override;

    /// Null shows a hint.
    void setPlan(PlanUpdateSnapshot update);
    const std::vector<ShardingPicture> &pictures() const { return m_pictures; }
    bool isSettled() const { return !m_watcher.isRunning(); }

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;
    bool hasHeightForWidth() const override { return true; }
    int heightForWidth(int width) const override;

Q_SIGNALS:
    void picturesChanged();

protected:
    void paintEvent(QPaintEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    struct Side {
        QRectF area{};
        std::vector<ShardFace> faces{};
        std::size_t picture = 0;
        bool after = false;
    };

    void refresh();
    std::vector<Side> sides() const;
    int blockHeight() const;
    double widestSide() const;
    const ShardedTensor *tensorOf(const Side &side) const;
    QString factAt(QPointF at) const;
    void describe();

    SelectionModel *m_selection;
    PlanUpdateSnapshot m_update;
    OperatorId m_op{};
    std::vector<ShardingPicture> m_pictures;
    QFutureWatcher<std::vector<ShardingPicture>> m_watcher{this};
    std::stop_source m_stop;
    int m_current = -1; ///< Picture the keyboard is at.
};

} // namespace planloom
