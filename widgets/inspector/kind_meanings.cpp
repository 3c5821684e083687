#include "widgets/inspector/kind_meanings.h"

#include <QtCore/QFile>
#include <QtCore/QStringList>

#include <cstddef>
#include <map>
#include <type_traits>

namespace planloom {

namespace {

constexpr std::size_t kMostShown = 8; ///< Numbers of a list.

std::map<OperatorKind, QString> readMeanings()
{
    std::map<OperatorKind, QString> meanings;
    QFile file(QStringLiteral(":/planloom/kinds.txt"));
    if (!file.open(QIODevice::ReadOnly))
        return meanings;
    while (!file.atEnd()) {
        const QString line = QString::fromUtf8(file.readLine()).trimmed();
        const qsizetype colon = line.indexOf(QLatin1Char(':'));
        if (line.startsWith(QLatin1Char('#')) || colon < 0)
            continue;
        if (const auto kind = operatorKindNamed(line.left(colon).toStdString()))
            meanings[*kind] = line.mid(colon + 1).trimmed();
    }
    return meanings;
}

} // namespace

QString meaningOfKind(OperatorKind kind)
{
    static const std::map<OperatorKind, QString> kMeanings = readMeanings();
    const auto found = kMeanings.find(kind);
    return found == kMeanings.end() ? QString() : found->second;
}

QString attributeText(const Attribute &attribute)
{
    const auto one = [](const auto &value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::string>)
            return QStringLiteral("\"%1\"").arg(QString::fromStdString(value));
        else
            return QString::number(value);
    };
    return std::visit(
        [&](const auto &value) {
            using Value = std::decay_t<decltype(value)>;
            if constexpr (std::is_arithmetic_v<Value> || std::is_same_v<Value, std::string>) {
                return one(value);
            } else {
                QStringList parts;
                for (std::size_t i = 0; i < value.size() && i < kMostShown; ++i)
                    parts << one(value[i]);
                if (value.size() > kMostShown)
                    parts << QStringLiteral("…");
                return parts.join(QStringLiteral(", "));
            }
        },
        attribute);
}

} // namespace planloom
