#pragma once

#include <QtCore/QFile>
#include <QtCore/QString>
#include <QtCore/QTemporaryDir>

namespace planloom::testing_support {

/// What a Python that runs plans on CPUs says of itself.
constexpr const char *kProbedTorch =
    R"(echo 'PLANLOOM {"python": "3.11.2", "torch": "2.15.0", "distributed": true, "gloo": true, "gpus": 0, "no_gpus": "PyTorch sees no GPU"}')";

/// A script in place of an interpreter: it answers the probe by `probe`, and torchrun by `torchrun`.
inline QString fakePython(
    const QTemporaryDir &folder, const QByteArray &probe, const QByteArray &torchrun = {})
{
    const QString path = folder.filePath(QStringLiteral("python"));
    QFile script(path);
    if (!script.open(QIODevice::WriteOnly))
        return {};
    script.write(
        "#!/bin/bash\nif [ \"$1\" = -c ]; then\n" + probe + "\nelse\nshift 6\n" + torchrun + "\ntrue\nfi\n");
    script.close();
    script.setPermissions(QFile::ReadOwner | QFile::WriteOwner | QFile::ExeOwner);
    return path;
}

} // namespace planloom::testing_support
