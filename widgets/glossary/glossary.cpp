#include "widgets/glossary/glossary.h"

#include <QtCore/QFile>
#include <QtCore/QHash>
#include <QtCore/QRegularExpression>

#include <algorithm>

// Resources of a static library are only linked where something calls for them.
static void initialiseGlossary()
{
    Q_INIT_RESOURCE(planloom_glossary);
}

namespace planloom {

namespace {

const QHash<QString, const GlossaryEntry *> &entriesByWord()
{
    static const QHash<QString, const GlossaryEntry *> kEntries = [] {
        QHash<QString, const GlossaryEntry *> entries;
        for (const GlossaryEntry &entry : glossary()) {
            entries.insert(entry.term.toLower(), &entry);
            for (const QString &word : entry.alsoNamed)
                entries.insert(word.toLower(), &entry);
        }
        return entries;
    }();
    return kEntries;
}

} // namespace

std::vector<GlossaryEntry> parseGlossary(const QString &text)
{
    constexpr QLatin1String kAlso("Also: ");
    constexpr QLatin1String kPaper("Paper: ");
    std::vector<GlossaryEntry> entries;
    for (const QString &each : text.split(QLatin1Char('\n'))) {
        const QString line = each.trimmed();
        if (line.startsWith(QLatin1String("## ")))
            entries.push_back({.term = line.mid(3).trimmed()});
        else if (entries.empty() || line.isEmpty())
            continue;
        else if (line.startsWith(kAlso))
            entries.back().alsoNamed +=
                line.mid(kAlso.size()).split(QStringLiteral(", "), Qt::SkipEmptyParts);
        else if (line.startsWith(kPaper))
            entries.back().paper = line.mid(kPaper.size());
        else
            entries.back().sentences += (entries.back().sentences.isEmpty() ? "" : " ") + line;
    }
    return entries;
}

const std::vector<GlossaryEntry> &glossary()
{
    static const std::vector<GlossaryEntry> kEntries = [] {
        initialiseGlossary();
        QFile file(QStringLiteral(":/planloom/glossary.md"));
        return file.open(QIODevice::ReadOnly) ? parseGlossary(QString::fromUtf8(file.readAll()))
                                              : std::vector<GlossaryEntry>{};
    }();
    return kEntries;
}

const GlossaryEntry *findTerm(const QString &word)
{
    return entriesByWord().value(word.simplified().toLower(), nullptr);
}

const GlossaryEntry *termOfLabel(const QString &label)
{
    // Letters stay together with what stands inside terms: "1F1B", "ZeRO-1", "op-trans".
    static const QRegularExpression kSeparators(QStringLiteral("[^\\w\\-']+"));
    constexpr QChar kPartMark(0x00b7); // the middle dot
    constexpr qsizetype kMostWords = 24; // a sentence is about more than one term
    QString plain = label;
    if (const GlossaryEntry *whole = findTerm(plain.remove(QLatin1Char('&'))))
        return whole;
    // Parts of a label that stand side by side: the first that is about a term.
    for (const QString &part : plain.contains(kPartMark) ? plain.split(kPartMark) : QStringList{})
        if (const GlossaryEntry *entry = termOfLabel(part.trimmed()))
            return entry;
    const QStringList words = plain.split(kSeparators, Qt::SkipEmptyParts);
    if (words.size() > kMostWords)
        return nullptr;
    for (qsizetype count = std::min<qsizetype>(words.size(), 3); count > 0; --count)
        for (const QStringList &some : {words.first(count), words.last(count)})
            if (const GlossaryEntry *entry = findTerm(some.join(QLatin1Char(' '))))
                return entry;
    return nullptr;
}

QString tipOf(const GlossaryEntry &entry)
{
    const QString paper = entry.paper.isEmpty()
        ? QString()
        : QStringLiteral("<p><i>%1</i></p>").arg(entry.paper.toHtmlEscaped());
    return QStringLiteral("<p><b>%1</b>. %2</p>%3")
        .arg(entry.term.toHtmlEscaped(), entry.sentences.toHtmlEscaped(), paper);
}

} // namespace planloom
