#pragma once

#include <QtWidgets/QWidget>

#include "engine/analyse/communication.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

class QPainter;

namespace planloom {

struct Palette;

/// Device x device as a picture: rows send, columns receive, colour by bytes or time with the number in the
/// cell where there is room.
class MatrixView : public QWidget
{
    Q_OBJECT
public:
    explicit MatrixView(QWidget *parent = nullptr);
    /// Null shows nothing. @param kind  none means all
    void setMatrix(
        std::shared_ptr<const CommunicationMatrix> matrix, std::optional<InstructionKind> kind, bool byTime);
    /// What `b` has more than `a`, or less: for comparing plans. Either may have more devices. Null shows
    /// nothing.
    void setDifference(std::shared_ptr<const CommunicationMatrix> a,
        std::shared_ptr<const CommunicationMatrix> b, std::optional<InstructionKind> kind, bool byTime);
    /// (-1, -1) is no cell.
    std::pair<int, int> current() const { return m_current; }
    /// Marks a cell without saying so.
    void setCurrent(std::pair<int, int> cell);
    double valueOf(int from, int to) const; ///< Bytes, or seconds; negative where `b` has less; 0 outside.
    double largest() const { return m_most; } ///< Of all values' sizes: what has the strongest colour.
    /// Colours as beside another matrix: until another one is set.
    void setLargest(double value);
    QRectF cellRect(int from, int to) const;
    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

Q_SIGNALS:
    /// -1, -1: all pairs.
    void cellChosen(int from, int to);

protected:
    void paintEvent(QPaintEvent *event) override;
    void mousePressEvent(QMouseEvent *event) override;
    void keyPressEvent(QKeyEvent *event) override;
    bool event(QEvent *event) override;

private:
    QRectF plot() const;
    QColor colourOf(const Palette &palette, double value) const;
    void paintScale(QPainter &painter, const Palette &palette) const;
    std::pair<int, int> cellAt(QPointF at) const;
    void choose(std::pair<int, int> cell);
    QString factOf(int from, int to) const;
    void sumUp(const CommunicationMatrix &matrix, double sign);
    void show(std::shared_ptr<const CommunicationMatrix> matrix,
        std::shared_ptr<const CommunicationMatrix> takenOff, std::optional<InstructionKind> kind,
        bool byTime);

    std::shared_ptr<const CommunicationMatrix> m_matrix;
    std::shared_ptr<const CommunicationMatrix> m_takenOff; ///< Of a difference; else null.
    std::int32_t m_count = 0; ///< Devices.
    std::vector<double> m_values; ///< By from * devices + to.
    double m_most = 0; ///< Of their sizes.
    std::optional<InstructionKind> m_kind;
    bool m_byTime = false;
    std::pair<int, int> m_current{-1, -1};
};

} // namespace planloom
