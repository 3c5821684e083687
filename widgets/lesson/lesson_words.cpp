#include "widgets/lesson/lesson_words.h"

#include "widgets/common/qt_text.h"

namespace planloom {

namespace {

constexpr const char *kGlossary = "glossary:";

/// The text up to `mark`, which is taken away with it; nothing if it does not come.
bool takeUntil(QStringView &rest, QStringView mark, QStringView &taken)
{
    const qsizetype end = rest.indexOf(mark);
    if (end <= 0)
        return false;
    taken = rest.first(end);
    rest = rest.sliced(end + mark.size());
    return true;
}

/// A link at the beginning of `rest`, behind its bracket.
bool takeLink(QStringView &rest, QString &out)
{
    QStringView after = rest;
    QStringView words;
    QStringView address;
    if (!takeUntil(after, u"](", words) || !takeUntil(after, u")", address))
        return false;
    const QString shown = words.toString().toHtmlEscaped();
    if (address.startsWith(QLatin1String(kGlossary)))
        out += QStringLiteral("<a href=\"%1\">%2</a>").arg(address.toString().toHtmlEscaped(), shown);
    else
        out += QStringLiteral("%1 (%2)").arg(shown, address.toString().toHtmlEscaped());
    rest = after;
    return true;
}

/// What stands between two of the same marks, as an element of its own.
bool takeMarked(QStringView &rest, QStringView mark, const char *element, QString &out)
{
    if (!rest.startsWith(mark))
        return false;
    QStringView after = rest.sliced(mark.size());
    QStringView inside;
    if (!takeUntil(after, mark, inside) || inside.front().isSpace() || inside.back().isSpace())
        return false;
    out += QStringLiteral("<%1>%2</%1>").arg(QLatin1String(element), inside.toString().toHtmlEscaped());
    rest = after;
    return true;
}

} // namespace

QString richTextOf(std::string_view markdown)
{
    const QString text = toQString(markdown);
    QStringView rest(text);
    QString out;
    while (!rest.isEmpty()) {
        if (takeMarked(rest, u"`", "code", out) || takeMarked(rest, u"**", "b", out)
            || takeMarked(rest, u"*", "i", out))
            continue;
        const QChar next = rest.front();
        rest = rest.sliced(1);
        if (next == QLatin1Char('[') && takeLink(rest, out))
            continue;
        out += QString(next).toHtmlEscaped();
    }
    return out;
}

} // namespace planloom
