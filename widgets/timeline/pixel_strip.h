#pragma once

#include <QtCore/QRect>
#include <QtGui/QColor>
#include <QtGui/QImage>
#include <QtGui/QTransform>

class QPainter;

namespace planloom {

/// Fills thousands of thin rectangles of a strip of a picture. On screens and pixmaps they are written into
/// memory, which is drawn at once: a painter takes most of a microsecond for each rectangle, however small.
/// On devices without pixels of their own (files of vector graphics) they are rectangles as ever.
class PixelStrip
{
public:
    /// @param painter  it outlives this, and keeps its transformation
    explicit PixelStrip(QPainter &painter);

    /// What was filled so far is drawn; then `area` (in the painter's coordinates) is open.
    void begin(const QRect &area);
    /// Opaque; what lies outside of the area is cut off. As `QPainter::fillRect` without antialiasing.
    void fill(const QRectF &rect, const QColor &colour);
    /// Draws what was filled since `begin`.
    void finish();
    const QRect &area() const { return m_area; } ///< Empty before the first `begin`.

private:
    /// Of the device, as `QPainter::fillRect` rounds them.
    QRect pixelsOf(const QRectF &rect) const;
    void fillPixels(const QRect &pixels, QRgb value);

    struct Pending {
        QRectF rect{};
        QColor colour{};
    };

    QPainter &m_painter;
    Pending m_pending{}; ///< Without pixels: what the next one may go on with.
    bool m_hasPixels = false;
    QTransform m_toPixels{};
    QRect m_area{};
    QRect m_pixels{}; ///< Of the area.
    QImage m_image{}; ///< From the area's first pixel; kept from strip to strip, transparent where nothing is
                      ///< filled that is not drawn yet.
    QRgb *m_bits = nullptr; ///< Of the image.
    std::size_t m_stride = 0; ///< Pixels from line to line.
    QRect m_filled{}; ///< Of the image.
};

} // namespace planloom
