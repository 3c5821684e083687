#include "widgets/dag/dag_text.h"

#include <QtGui/QFontMetricsF>

#include <algorithm>
#include <cmath>

namespace planloom {

FontTable::FontTable(const QFont &font)
{
    for (const bool bold : {false, true}) {
        QFont sized(font);
        sized.setBold(bold);
        sized.setPixelSize(100); // large, so that rounding to pixels does not show
        const QFontMetricsF metrics(sized);
        const double scale = (bold ? DagMetrics::kTitleSize : DagMetrics::kSubtitleSize) / 100;
        auto &advances = m_advance[bold ? 1 : 0];
        for (int letter = 0; letter < 256; ++letter)
            advances[static_cast<std::size_t>(letter)] =
                static_cast<float>(metrics.horizontalAdvance(QChar(static_cast<char16_t>(letter))) * scale);
        m_other[bold ? 1 : 0] = static_cast<float>(metrics.horizontalAdvance(QChar(u'…')) * scale);
    }
}

double FontTable::width(const QString &text, bool bold) const
{
    const auto &advances = m_advance[bold ? 1 : 0];
    double sum = 0;
    for (const QChar letter : text)
        sum += letter.unicode() < 256 ? advances[letter.unicode()] : m_other[bold ? 1 : 0];
    return sum;
}

QString FontTable::elided(const QString &text, bool bold, double width) const
{
    const auto &advances = m_advance[bold ? 1 : 0];
    const double dots = m_other[bold ? 1 : 0];
    double sum = 0;
    qsizetype fits = 0; // letters that fit with dots after them
    for (qsizetype i = 0; i < text.size(); ++i) {
        const char16_t letter = text[i].unicode();
        sum += letter < 256 ? advances[letter] : dots;
        if (sum + dots <= width)
            fits = i + 1;
        if (sum > width) {
            if (fits > 0 && text[fits - 1].isHighSurrogate())
                --fits;
            return fits == 0 ? QString() : text.left(fits) + u'…';
        }
    }
    return text;
}

TextMeasure measureWith(std::shared_ptr<const FontTable> table)
{
    return [table = std::move(table)](const std::string &text, bool bold) {
        return table->width(QString::fromStdString(text), bold);
    };
}

DagLabels labelsOf(const VisibleGraph &visible, const DagScene &scene, const FontTable &table)
{
    DagLabels labels;
    labels.titles.reserve(scene.texts.size());
    labels.subtitles.reserve(scene.texts.size());
    labels.shortTitles.reserve(scene.texts.size());
    labels.farTitles.reserve(scene.texts.size());
    for (std::size_t box = 0; box < scene.texts.size(); ++box) {
        const auto &text = scene.texts[box];
        const auto title = QString::fromStdString(text.title);
        const auto subtitle = QString::fromStdString(text.subtitle);
        double room = scene.rects[box].width;
        if (!visible.boxes[box].frame)
            room -= text.besides();
        labels.titles.push_back(table.elided(title, true, room + 0.5));
        labels.subtitles.push_back(table.elided(subtitle, false, room + 0.5));
        labels.shortTitles.push_back(table.elided(title, true, (room + 14) * DagMetrics::kMiddleShare));
        labels.farTitles.push_back(
            table.elided(title, true, (scene.rects[box].width - 12) * DagMetrics::kFarShare));
    }
    return labels;
}

} // namespace planloom
