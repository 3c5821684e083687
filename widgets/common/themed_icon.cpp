#include "widgets/common/themed_icon.h"

#include <QtCore/QDir>
#include <QtCore/QFile>
#include <QtGui/QGuiApplication>
#include <QtGui/QIconEngine>
#include <QtGui/QPainter>
#include <QtGui/QPalette>
#include <QtSvg/QSvgRenderer>

namespace planloom {

namespace {

QString fileOf(const QString &name)
{
    return QStringLiteral(":/planloom/icons/%1.svg").arg(name);
}

/// Draws the file with its "currentColor" replaced by the palette's.
class SvgEngine : public QIconEngine
{
public:
    explicit SvgEngine(const QString &name)
        : m_name(name)
    {
        QFile file(fileOf(name));
        if (file.open(QIODevice::ReadOnly))
            m_source = file.readAll();
    }

    QIconEngine *clone() const override { return new SvgEngine(*this); }
    bool isNull() override { return m_source.isEmpty(); }

    void paint(QPainter *painter, const QRect &rect, QIcon::Mode mode, QIcon::State) override
    {
        const QPalette palette = QGuiApplication::palette();
        const QColor colour = mode == QIcon::Disabled
            ? palette.color(QPalette::Disabled, QPalette::ButtonText)
            : mode == QIcon::Selected ? palette.color(QPalette::HighlightedText)
                                      : palette.color(QPalette::ButtonText);
        QByteArray svg = m_source;
        svg.replace("currentColor", colour.name().toLatin1());
        QSvgRenderer renderer(svg);
        renderer.setAspectRatioMode(Qt::KeepAspectRatio);
        painter->setRenderHint(QPainter::Antialiasing);
        renderer.render(painter, rect);
    }

    QPixmap pixmap(const QSize &size, QIcon::Mode mode, QIcon::State state) override
    {
        QPixmap picture(size);
        picture.fill(Qt::transparent);
        QPainter painter(&picture);
        paint(&painter, QRect({}, size), mode, state);
        return picture;
    }

private:
    QString m_name;
    QByteArray m_source;
};

} // namespace

QIcon themedIcon(const QString &name)
{
    return QIcon(new SvgEngine(name));
}

QStringList iconNames()
{
    QStringList names;
    for (const QString &file : QDir(QStringLiteral(":/planloom/icons"))
                                   .entryList({QStringLiteral("*.svg")}, QDir::Files, QDir::Name))
        names.append(file.section(QLatin1Char('.'), 0, 0));
    return names;
}

} // namespace planloom
