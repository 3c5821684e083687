#pragma once

#include <QtCore/QPoint>
#include <QtWidgets/QAbstractScrollArea>

#include "widgets/common/selection_model.h"
#include "widgets/timeline/timeline_painter.h"

#include <cstdint>
#include <optional>
#include <set>
#include <vector>

namespace planloom {

/// The timeline of one training step: a lane for each device (symmetric ones share one), with blocks of
/// micro-batches, operators, communication and memory.
///
/// Wheel scrolls, Ctrl+wheel zooms at the pointer, Shift+wheel and dragging pan; W and S zoom, A and D pan, Home
/// fits the step, F fits the selection, double-click fits a span, Escape clears the selection; arrows move the
/// selection from span to span. A click selects the operator of a span, in the model shared with the other views.
class TimelineView : public QAbstractScrollArea
{
    Q_OBJECT
public:
    /// @param selection  shared with the other views; must outlive this one
    explicit TimelineView(SelectionModel *selection, QWidget *parent = nullptr);

    /// Shows `scene`; null empties the view. The zoom is kept if the step is about as long as before.
    void setScene(TimelineSceneSnapshot scene);
    const TimelineSceneSnapshot &scene() const { return m_scene; }

    /// What an empty view says; empty for the usual words.
    void setEmptyText(const QString &text);

    /// Marks the picture as that of rows which have changed since.
    void setStale(bool stale);

    void setColouring(TimelineColouring colouring);
    TimelineColouring colouring() const { return m_colouring; }

    const TimeAxis &axis() const { return m_axis; }
    const std::vector<TimelineRow> &rows() const { return m_rows; }

    /// Where a span is drawn, in the viewport's coordinates; nothing if its lane is folded away or it is off the screen.
    std::optional<QRect> rectOf(std::size_t row) const;

    void zoomIn();
    void zoomOut();
    void fitAll();
    /// Fits the spans of the selected operators; all if there are none.
    void focusSelection();
    /// Shows symmetric devices one by one, or once.
    void setExpanded(std::int32_t symmetryClass, bool expanded);
    void expandAll(bool expanded);

Q_SIGNALS:
    /// The person chose an operator here (the selection has changed already).
    void operatorActivated(planloom::OperatorId op);

protected:
    void paintEvent(QPaintEvent *event) override;
    void resizeEvent(QResizeEvent *event) override;
    void wheelEvent(QWheelEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void mouseMoveEvent(QMouseEvent *event) override;
    void mouseReleaseEvent(QMouseEvent *event) override;
    void mouseDoubleClickEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool viewportEvent(QEvent *event) override;
    void scrollContentsBy(int dx, int dy) override;

private:
    struct Hit {
        std::int32_t row = -1; ///< Index into m_rows.
        std::int64_t span = -1; ///< Row of the spans.
        std::vector<FactLine> facts{};
    };

    double extent() const;
    double canvasWidth() const;
    int canvasHeight() const;
    TimelinePicture picture() const;
    void relayout();
    void setAxis(const TimeAxis &axis);
    void zoomAt(double factor, double x);
    void fitTimes(double begin, double end);
    Hit hitTest(QPoint position) const;
    void hover(QPoint position);
    void leave();
    void selectSpan(std::int64_t span, Qt::KeyboardModifiers modifiers);
    void stepSelection(int direction);
    void onSelectionChanged();

    SelectionModel *m_selection;
    TimelineSceneSnapshot m_scene;
    std::vector<TimelineRow> m_rows;
    std::set<std::int32_t> m_expanded;
    TimeAxis m_axis;
    bool m_fitted = true; ///< The whole step is shown and stays so when the size changes.
    bool m_stale = false;
    QString m_emptyText;
    TimelineColouring m_colouring = TimelineColouring::Direction;
    std::vector<std::size_t> m_selected; ///< Rows of the selected operators' spans.
    Hit m_hover;
    QPoint m_pointer{-1, -1};
    std::optional<QPoint> m_pressed;
    bool m_panning = false;
    TimeAxis m_axisPressed;
    int m_scrollPressed = 0;
    std::int64_t m_current = -1; ///< Row of the span the keyboard is at.
};

} // namespace planloom
