#include "widgets/exchange/drop_reader.h"

#include <QtCore/QCoreApplication>
#include <QtCore/QFile>
#include <QtCore/QFileInfo>
#include <QtCore/QMimeData>
#include <QtCore/QUrl>

#include "engine/design/models/table_file.h"
#include "engine/frontend/file_kind.h"
#include "engine/interop/autodist_yaml.h"
#include "engine/interop/machines/machine_cluster.h"
#include "engine/table/table_document.h"
#include "engine/traces/reading/open_trace.h"
#include "sessions/session_file.h"

namespace planloom {

namespace {

/// Translates what belongs to no object.
struct DropTexts {
    Q_DECLARE_TR_FUNCTIONS(Drop)
};

constexpr qint64 kMostText = 4 << 20; ///< Bytes of a file of rows.

Dropped unsupported(const QString &reason)
{
    Dropped dropped;
    dropped.reason = reason;
    return dropped;
}

/// Partition constraints are a list; configs of frameworks, which are YAML, too, are not.
bool isYamlList(const QByteArray &content)
{
    for (const QByteArray &line : content.split('\n')) {
        const QByteArray words = line.trimmed();
        if (!words.isEmpty() && !words.startsWith('#') && words != "---")
            return words.startsWith("- ");
    }
    return false;
}

/// By the file's ending, or by what settings are written with.
bool mayBeConfig(const QString &text, const QString &name)
{
    for (const char *suffix :
        {".sh\"", ".sbatch\"", ".slurm\"", ".args\"", ".yaml\"", ".yml\"", ".json\"", ".toml\"", ".py\""})
        if (name.endsWith(QLatin1String(suffix), Qt::CaseInsensitive))
            return true;
    return text.contains(QLatin1String("--")) || text.contains(QLatin1Char('='))
        || text.contains(QLatin1String(": "));
}

/// Text that is rows, or a config, at least one line of it.
Dropped rowsFrom(const QString &text, const QString &name)
{
    const TableDocument document(text.toStdString());
    if (document.rowLines().empty() && mayBeConfig(text, name)) {
        Dropped config;
        config.kind = DropKind::Config;
        config.text = text;
        return config;
    }
    if (document.rowLines().empty())
        return unsupported(
            DropTexts::tr("%1 holds no row of a constraint table, such as \"split all : batch over dp\".")
                .arg(name));
    Dropped dropped;
    dropped.kind = DropKind::Rows;
    dropped.text = text;
    return dropped;
}

} // namespace

Dropped readDroppedFile(const QString &path)
{
    const QFileInfo info(path);
    const QString name = QLatin1Char('"') + info.fileName() + QLatin1Char('"');
    if (!info.exists())
        return unsupported(DropTexts::tr("%1 is not there any more.").arg(name));
    if (info.isDir() && traceFilesOf({path.toStdString()})) {
        Dropped dropped;
        dropped.kind = DropKind::Trace;
        dropped.path = path;
        return dropped;
    }
    if (info.isDir())
        return unsupported(DropTexts::tr(
            "%1 is a folder; drop one model (.onnx, .pt2), one session, or a text file with rows.")
                               .arg(name));
    Dropped dropped;
    dropped.path = path;
    if (looksLikeSession(path.toStdString())) {
        dropped.kind = DropKind::Session;
        return dropped;
    }
    for (const char *suffix : {"onnx", "pt2"}) {
        if (info.suffix().compare(QLatin1String(suffix), Qt::CaseInsensitive) == 0) {
            dropped.kind = DropKind::Model;
            return dropped;
        }
    }
    if (isTraceFile(path.toStdString())) {
        dropped.kind = DropKind::Trace;
        return dropped;
    }
    QFile file(path);
    if (!file.open(QIODevice::ReadOnly))
        return unsupported(DropTexts::tr("%1 can't be read: %2.").arg(name, file.errorString()));
    const QByteArray head = file.read(4096);
    if (head.contains('\0'))
        return unsupported(
            DropTexts::tr("%1 is neither a model (.onnx, .pt2), nor a session, nor a text with rows.")
                .arg(name));
    if (head.trimmed().startsWith('{') && head.contains("\"planloom-cluster\"")) {
        dropped.kind = DropKind::Cluster;
        return dropped;
    }
    if (file.size() > kMostText)
        return unsupported(DropTexts::tr("%1 is too long to be a table of rows.").arg(name));
    const QByteArray content = head + file.readAll();
    const std::string_view bytes(content.constData(), static_cast<std::size_t>(content.size()));
    if (machineFileOf(bytes)) {
        dropped.kind = DropKind::Topology;
        return dropped;
    }
    if (isAutodistFile(path.toStdString()) && isYamlList(content)) {
        // read against the model, where it is imported
        dropped.kind = DropKind::Rows;
        dropped.text = QString::fromUtf8(content);
        return dropped;
    }
    const auto kind = findFileKind(bytes);
    if (kind == FileKind::ExecutionPlan || kind == FileKind::Trace)
        return unsupported(DropTexts::tr("%1: this is %2 (%3).")
                               .arg(name, QLatin1String(nameOf(*kind)), QLatin1String(adviceFor(*kind))));
    if (kind == FileKind::Table) {
        const auto table = readTableFile(path.toStdString());
        if (!table)
            return unsupported(DropTexts::tr("%1 holds rows that can't be read: %2.")
                                   .arg(name, QString::fromStdString(describe(table.error()))));
        dropped = rowsFrom(QString::fromStdString(table->text()), name);
    } else {
        dropped = rowsFrom(QString::fromUtf8(content), name);
    }
    dropped.path = path;
    return dropped;
}

Dropped readDrop(const QMimeData &data)
{
    if (data.hasUrls()) {
        const auto urls = data.urls();
        if (urls.size() > 1)
            return unsupported(DropTexts::tr("Several files were dropped; drop one at a time."));
        if (urls.size() == 1 && urls.front().isLocalFile())
            return readDroppedFile(urls.front().toLocalFile());
        return unsupported(DropTexts::tr("Only files on this machine can be dropped here."));
    }
    if (data.hasText() && !data.text().trimmed().isEmpty())
        return rowsFrom(data.text(), DropTexts::tr("The dropped text"));
    return unsupported(DropTexts::tr("Drop a model (.onnx, .pt2), a session, or rows as text."));
}

} // namespace planloom
