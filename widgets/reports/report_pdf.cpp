#include "widgets/reports/report_pdf.h"

#include "engine/base/files.h"
#include "engine/report/report_timeline.h"
#include "widgets/common/palette.h"
#include "widgets/scene/communication_colour.h"
#include "widgets/scene/memory_colours.h"

#include <QtGui/QPageLayout>
#include <QtGui/QPainter>
#include <QtGui/QPdfWriter>
#include <QtGui/QTextDocument>
#include <QtSvg/QSvgRenderer>

#include <QtCore/QBuffer>
#include <QtCore/QMarginsF>
#include <QtCore/QUrl>

#include <algorithm>
#include <map>

namespace planloom {

namespace {

constexpr int kDotsPerInch = 96; ///< Of the text's layout.
constexpr int kScale = 3; ///< Dots of a picture for each of the text's.
constexpr int kPageWidth = 940; ///< Of A4 across between its margins, in the text's dots, and a little less.
constexpr int kPageHeight = 600;
/// Millimetres: the document leaves two centimetres more.
constexpr double kMargin = 2;
constexpr int kHeader = 90;
constexpr int kRow = 14; ///< Pixels of a queue that computes.
constexpr int kThinRow = 6;
constexpr int kGap = 5;
constexpr int kAxis = 18;
constexpr std::size_t kMostPrinted = 32; ///< Devices of one timeline: as many as a page has room for.

QColor colourOf(const Palette &palette, SpanClass spanClass)
{
    switch (spanClass) {
    case SpanClass::Forward:
        return directionColour(palette, Direction::Forward);
    case SpanClass::Backward:
        return directionColour(palette, Direction::Backward);
    case SpanClass::WeightGradient:
        return mixed(palette.surface, directionColour(palette, Direction::Backward), 0.6);
    case SpanClass::Recompute:
        return mixed(palette.surface, directionColour(palette, Direction::Forward), 0.5);
    case SpanClass::Optimizer:
        return directionColour(palette, Direction::Optimizer);
    case SpanClass::Other:
        return palette.neutral;
    case SpanClass::AllReduce:
        return communicationColour(palette, InstructionKind::AllReduce);
    case SpanClass::AllGather:
        return communicationColour(palette, InstructionKind::AllGather);
    case SpanClass::ReduceScatter:
        return communicationColour(palette, InstructionKind::ReduceScatter);
    case SpanClass::AllToAll:
        return communicationColour(palette, InstructionKind::AllToAll);
    case SpanClass::OtherCollective:
        return communicationColour(palette, InstructionKind::Broadcast);
    case SpanClass::Message:
    case SpanClass::HostCopy:
        break;
    }
    return communicationColour(palette, InstructionKind::Send);
}

struct DrawnDevice {
    std::int32_t device = 0;
    const ReportLanes *lanes = nullptr;
    int top = 0;
};

int heightOf(const ReportLanes &lanes)
{
    int height = 0;
    for (const ReportLane &lane : lanes.lanes)
        height += (lane.queue == QueueKind::Compute ? kRow : kThinRow) + 1;
    return height;
}

/// All devices, or where they are too many, one of each kind.
std::vector<DrawnDevice> drawnDevices(const std::vector<ReportLanes> &kinds)
{
    std::size_t all = 0;
    for (const ReportLanes &kind : kinds)
        all += kind.devices.size();
    std::map<std::int32_t, const ReportLanes *> inOrder;
    for (const ReportLanes &kind : kinds)
        for (const std::int32_t device : kind.devices) {
            inOrder[device] = &kind;
            if (all > kMostPrinted)
                break;
        }
    std::vector<DrawnDevice> drawn;
    int top = kAxis;
    for (const auto &[device, lanes] : inOrder) {
        if (drawn.size() == kMostPrinted)
            break;
        drawn.push_back({device, lanes, top});
        top += heightOf(*lanes) + kGap;
    }
    return drawn;
}

void paintLane(
    QPainter &painter, const Palette &palette, const ReportLane &lane, const QRectF &place, double step)
{
    painter.fillRect(place, palette.surfaceRaised);
    double time = 0;
    for (std::size_t i = 0; i < lane.gap.size(); ++i) {
        time += static_cast<double>(lane.gap[i]);
        const double length = static_cast<double>(lane.duration[i]);
        painter.fillRect(QRectF(place.left() + time / step * place.width(), place.top(),
                             std::max(0.3, length / step * place.width()), place.height()),
            colourOf(palette, lane.spanClass[i]));
        time += length;
    }
}

QImage graphPicture(const std::string &svg, int width, int mostHeight)
{
    // Qt reads styles inside of the picture alone.
    std::string styled = svg;
    styled.insert(styled.find('>') + 1,
        "<style type=\"text/css\">rect{fill:#ffffff;stroke:#8a95a3;stroke-width:1}"
        ".differs rect{stroke:#b82222;stroke-width:2}text{fill:#1b222c;font-size:11px;text-anchor:middle;"
        "font-family:sans-serif}.under{fill:#55606e;font-size:9px}path{fill:none;stroke:#7d8896}</style>");
    styled.insert(4, " xmlns=\"http://www.w3.org/2000/svg\"");
    QSvgRenderer renderer(QByteArray::fromStdString(styled));
    const QSizeF size = renderer.viewBoxF().size();
    if (!renderer.isValid() || size.isEmpty())
        return {};
    const double scale = std::min({width / size.width(), mostHeight / size.height(), double(kScale)});
    QImage image((size * scale).toSize(), QImage::Format_RGB32);
    image.fill(Qt::white);
    QPainter painter(&image);
    painter.setRenderHint(QPainter::Antialiasing);
    renderer.render(&painter, QRectF(QPointF(), size * scale));
    return image;
}

/// A picture in the text, as wide as it is on the page.
void addPicture(QTextDocument &document, QString &html, const QString &name, const QImage &image)
{
    const QString place = QStringLiteral("<img src=\"%1\">").arg(name);
    if (image.isNull()) {
        html.replace(place, QStringLiteral("not drawn: the model has too many operators"));
        return;
    }
    document.addResource(QTextDocument::ImageResource, QUrl(name), image);
    html.replace(place,
        QStringLiteral("<img src=\"%1\" width=\"%2\" height=\"%3\">")
            .arg(name)
            .arg(image.width() / kScale)
            .arg(image.height() / kScale));
}

} // namespace

QImage timelinePicture(const ReportedPlan &plan, int width)
{
    ReportNames names;
    const std::vector<ReportLanes> kinds = lanesOf(plan, names);
    const std::vector<DrawnDevice> drawn = drawnDevices(kinds);
    const int height = drawn.empty() ? kAxis : drawn.back().top + heightOf(*drawn.back().lanes) + kGap;
    const Palette &palette = lightPalette();
    QImage image(QSize(width, height * kScale), QImage::Format_RGB32);
    image.fill(palette.surface);
    QPainter painter(&image);
    painter.scale(kScale, kScale);
    QFont font = painter.font();
    font.setPixelSize(10);
    painter.setFont(font);
    const double room = double(width) / kScale - kHeader;
    const double step = std::max<double>(1, static_cast<double>(plan.timeline.step.count()));
    painter.setPen(palette.textMuted);
    constexpr int kTicks = 5;
    for (int tick = 0; tick <= kTicks; ++tick) {
        const QString words = QStringLiteral("%1 ms").arg(step * 1e-6 * tick / kTicks, 0, 'g', 4);
        const double x = kHeader + room * tick / kTicks;
        const double left = tick == kTicks ? x - painter.fontMetrics().horizontalAdvance(words) : x;
        painter.drawText(QPointF(left, 11), words);
    }
    for (const DrawnDevice &each : drawn) {
        painter.setPen(palette.text);
        const DeviceId id = plan.plan.units.deviceOf(0, DeviceId{each.device});
        painter.drawText(QPointF(0, each.top + 11), QStringLiteral("device %1").arg(id.index));
        double top = each.top;
        for (const ReportLane &lane : each.lanes->lanes) {
            const int rowHeight = lane.queue == QueueKind::Compute ? kRow : kThinRow;
            paintLane(painter, palette, lane, QRectF(kHeader, top, room, rowHeight), step);
            top += rowHeight + 1;
        }
    }
    return image;
}

QByteArray reportPdf(const Report &report)
{
    QByteArray bytes;
    QBuffer buffer(&bytes);
    buffer.open(QIODevice::WriteOnly);
    QPdfWriter writer(&buffer);
    writer.setPageSize(QPageSize(QPageSize::A4));
    writer.setPageOrientation(QPageLayout::Landscape);
    writer.setPageMargins(QMarginsF(kMargin, kMargin, kMargin, kMargin), QPageLayout::Millimeter);
    writer.setResolution(kDotsPerInch * kScale);
    writer.setCreator(QStringLiteral("Planloom"));
    QTextDocument document;
    document.setDefaultStyleSheet(
        QStringLiteral("h1 { font-size: 17pt; } h2 { font-size: 13pt; } "
                       "h3 { font-size: 10pt; } body { font-size: 8pt; } "
                       "th { font-size: 7pt; color: #55606e; text-align: left; padding-right: 9px; } "
                       "td { font-size: 7pt; padding-right: 9px; } td.n { text-align: right; } "
                       "code { font-size: 7pt; } .note { color: #55606e; } .bad { color: #b82222; } "
                       ".good { color: #12744b; }"));
    QString html = QString::fromStdString(printedHtml(report));
    for (std::size_t p = 0; p < report.plans.size(); ++p)
        addPicture(document, html, QStringLiteral("timeline:%1").arg(p),
            timelinePicture(report.plans[p], kPageWidth * kScale));
    const std::string svg = reportGraphSvg(report);
    addPicture(document, html, QStringLiteral("graph:"),
        svg.empty() ? QImage() : graphPicture(svg, kPageWidth * kScale, kPageHeight * kScale));
    document.setHtml(html);
    document.print(&writer);
    return bytes;
}

Result<void> writeReportPdf(const Report &report, const QString &path)
{
    const QByteArray bytes = reportPdf(report);
    return writeFile(path.toStdString(), {bytes.constData(), static_cast<std::size_t>(bytes.size())});
}

} // namespace planloom
