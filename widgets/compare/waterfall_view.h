#pragma once

#include <QtCore/QString>
#include <QtWidgets/QWidget>

#include "engine/analyse/waterfall.h"

#include <cstdint>
#include <optional>
#include <vector>

namespace planloom {

/// One bar of a waterfall, in nanoseconds.
struct WaterfallBar {
    enum class Kind : std::uint8_t { From, Part, To };
    Kind kind = Kind::Part;
    StepPart part = StepPart::Compute; ///< Of Part.
    std::int64_t begin = 0; ///< Where it hangs: the end of the bar before it.
    std::int64_t end = 0;
    bool noise = false; ///< Too small to mean anything: `judged` says so of the part, as wherever figures are
                        ///< compared.
    std::int64_t delta() const { return end - begin; }
    friend bool operator==(const WaterfallBar &, const WaterfallBar &) = default;
};

/// From A's step over what each part adds or takes, to B's step; each bar begins where the last one ended, so
/// the last part's end is B's step exactly.
std::vector<WaterfallBar> barsOf(const Waterfall &waterfall);

/// Why B's step is longer or shorter than A's, part by part.
class WaterfallView : public QWidget
{
    Q_OBJECT
public:
    explicit WaterfallView(QWidget *parent = nullptr);

    /// Nothing empties it.
    void setWaterfall(
        const std::optional<Waterfall> &waterfall, const QString &nameOfA, const QString &nameOfB);
    const std::vector<WaterfallBar> &bars() const { return m_bars; }
    QString labelOf(const WaterfallBar &bar) const; ///< "compute"
    QString valueOf(const WaterfallBar &bar) const; ///< "▼ −12.3 ms"

    QSize sizeHint() const override;
    QSize minimumSizeHint() const override;

protected:
    void paintEvent(QPaintEvent *event) override;

private:
    std::vector<WaterfallBar> m_bars;
    QString m_nameOfA;
    QString m_nameOfB;
};

} // namespace planloom
