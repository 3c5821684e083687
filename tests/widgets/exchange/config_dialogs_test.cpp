// Configs of training frameworks in the window: pasted, looked at, taken; written, searched, saved.

#include "widgets/exchange/config_export_dialog.h"
#include "widgets/exchange/config_import_dialog.h"

#include <QtGui/QClipboard>
#include <QtTest/QSignalSpy>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QPushButton>
#include <QtWidgets/QTreeWidget>

#include "tests/qt_test.h"

using namespace planloom;

namespace {

const char *const kScript = R"(#!/bin/bash
ARGS=(
    --num-layers 8 --hidden-size 64 --num-attention-heads 8 --seq-length 64
    --max-position-embeddings 64 --vocab-size 256
    --tensor-model-parallel-size 2
    --pipeline-model-parallel-size 2
    --sequence-parallel
    --micro-batch-size 2 --global-batch-size 16
    --bf16 --new-kind-of-parallel-degree 3
)
torchrun --nproc_per_node 8 --nnodes 1 pretrain_gpt.py "${ARGS[@]}"
)";

template<typename Widget> Widget *child(const QWidget &dialog, const char *name)
{
    return dialog.findChild<Widget *>(QLatin1String(name));
}

QStringList wordsOf(const QTreeWidget &tree)
{
    QStringList words;
    for (QTreeWidgetItemIterator item(const_cast<QTreeWidget *>(&tree)); *item; ++item)
        words << (*item)->text(0) + QLatin1Char('|') + (*item)->text(1);
    return words;
}

bool has(const QStringList &list, const QString &part)
{
    return std::any_of(
        list.begin(), list.end(), [&part](const QString &each) { return each.contains(part); });
}

PlanRequest requestOf(const char *gallery, const char *rows = "")
{
    PlanRequest request;
    request.model = *openModel(
        {"zoo:llama?layers=8&hidden=64&heads=8&kv_heads=8&ffn=128&seq=64&batch=32&vocab=256", {}, {}}, {},
        KeepContent::No);
    request.gallery = gallery;
    request.table = TableDocument(std::string("precision all : bf16\n") + rows);
    request.target = {"dgx-h100:8", {}, 8};
    request.upTo = PlanGrade::Checked;
    request.table = (*planOf(request))->table;
    request.gallery.clear();
    return request;
}

} // namespace

class ConfigDialogsTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void aPastedScriptIsADesign()
    {
        ConfigImportDialog dialog(QString::fromUtf8(kScript), {});
        dialog.setCanTakeRows(true);
        dialog.show();
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isReading(), kLong);
        const QStringList found = wordsOf(*child<QTreeWidget>(dialog, "found"));
        QVERIFY2(has(found, "micro-batches 4|--micro-batch-size, line 8"), qPrintable(found.join('\n')));
        QVERIFY2(has(found, "new-kind-of-parallel-degree"), qPrintable(found.join('\n')));
        const QString words = child<QLabel>(dialog, "words")->text();
        QVERIFY2(words.contains("A step takes") && words.contains("1 unknown"), qPrintable(words));
        // A row shows the line that it follows from.
        auto *tree = child<QTreeWidget>(dialog, "found");
        for (QTreeWidgetItemIterator item(tree); *item; ++item)
            if ((*item)->text(0) == QLatin1String("micro-batches 4"))
                tree->setCurrentItem(*item);
        QVERIFY(child<QPlainTextEdit>(dialog, "config")
                    ->textCursor()
                    .selectedText()
                    .contains("--micro-batch-size 2"));
        QSignalSpy opened(&dialog, &ConfigImportDialog::openAsked);
        QTest::mouseClick(child<QPushButton>(dialog, "open"), Qt::LeftButton);
        QCOMPARE(opened.count(), 1);
        QVERIFY(opened.front()[0].value<std::string>().starts_with("zoo:gpt?layers=8"));
        QVERIFY(opened.front()[1].value<std::string>().starts_with("dgx-h100:8"));
        QCOMPARE(opened.front()[2].toInt(), 8);
        QVERIFY(opened.front()[3].value<std::string>().find("micro-batches 4") != std::string::npos);
    }

    void whatIsWrongIsSaidAndTakesNothing()
    {
        ConfigImportDialog dialog({}, {});
        dialog.setCanTakeRows(true);
        dialog.show();
        auto *text = child<QPlainTextEdit>(dialog, "config");
        QVERIFY(!child<QPushButton>(dialog, "open")->isEnabled());
        text->setPlainText(QStringLiteral("once upon a time\n"));
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isReading(), kLong);
        QVERIFY(child<QLabel>(dialog, "words")->text().contains(QChar(0x2716)));
        QVERIFY(!child<QPushButton>(dialog, "open")->isEnabled());
        QVERIFY(!child<QPushButton>(dialog, "take")->isEnabled());
        // World size that is not divisible: said with its line, and nothing to take.
        text->setPlainText(QString::fromUtf8(kScript).replace("--nproc_per_node 8", "--nproc_per_node 7"));
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isReading(), kLong);
        const QStringList found = wordsOf(*child<QTreeWidget>(dialog, "found"));
        QVERIFY2(has(found, "world_size (7) is not divisible by 4"), qPrintable(found.join('\n')));
        QVERIFY(!child<QPushButton>(dialog, "open")->isEnabled());
        text->setPlainText(QString::fromUtf8(kScript));
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isReading(), kLong);
        QVERIFY(child<QPushButton>(dialog, "take")->isEnabled());
    }

    void aPlanIsWrittenWithWhatItLeavesOut()
    {
        ConfigExportDialog dialog;
        dialog.show();
        QVERIFY(!child<QPushButton>(dialog, "copy")->isEnabled());
        dialog.setPlan(requestOf(
            "3d:dp=2,tp=2,pp=2,zero=1,micro-batches=4,layout=Et*4|t*4L", "split-backward layer:0\n"));
        dialog.setFormat("megatron");
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
        auto *text = child<QPlainTextEdit>(dialog, "config");
        QVERIFY(text->toPlainText().contains("--tensor-model-parallel-size 2"));
        const QStringList unsaid = wordsOf(*child<QTreeWidget>(dialog, "unsaid"));
        QVERIFY2(has(unsaid, "split-backward layer:0|"), qPrintable(unsaid.join('\n')));
        QVERIFY2(!unsaid.front().endsWith('|'), qPrintable(unsaid.front())); // a step without it
        QVERIFY(child<QLabel>(dialog, "words")->text().contains("in place of"));
        QTest::mouseClick(child<QPushButton>(dialog, "copy"), Qt::LeftButton);
        QCOMPARE(QGuiApplication::clipboard()->text(), text->toPlainText());
        QVERIFY(!child<QPushButton>(dialog, "saveRanks")->isVisible());
        dialog.setFormat("torchtitan");
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
        QVERIFY(text->toPlainText().contains("config.parallelism.tensor_parallel_degree = 2"));
        QVERIFY(
            child<QPushButton>(dialog, "saveRanks")->isVisible()); // its ranks have the pipeline outermost
        QSignalSpy saved(&dialog, &ConfigExportDialog::saveAsked);
        QTest::mouseClick(child<QPushButton>(dialog, "saveRanks"), Qt::LeftButton);
        QTest::mouseClick(child<QPushButton>(dialog, "save"), Qt::LeftButton);
        QCOMPARE(saved.count(), 2);
        QVERIFY(saved[0][1].value<std::string>().starts_with("rank 0=+n0 slot=0\n"));
        QCOMPARE(saved[1][0].toString(), QStringLiteral("torchtitan.py"));
        dialog.setPlan({});
        QVERIFY(!child<QPushButton>(dialog, "save")->isEnabled());
        QVERIFY(text->toPlainText().isEmpty());
    }

    void theBestPlanOfAFormatIsFoundAndTaken()
    {
        ConfigExportDialog dialog;
        dialog.show();
        const PlanRequest request = requestOf("3d:dp=8");
        PlanRequest open = request;
        open.table = TableDocument();
        dialog.setPlan(open);
        dialog.setFormat("deepspeed");
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
        dialog.findPlan();
        QVERIFY(dialog.isBusy());
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
        const QString words = child<QLabel>(dialog, "searched")->text();
        QVERIFY2(words.contains("that deepspeed says whole"), qPrintable(words));
        QSignalSpy asked(&dialog, &ConfigExportDialog::rowsAsked);
        QTest::mouseClick(child<QPushButton>(dialog, "use"), Qt::LeftButton);
        QCOMPARE(asked.count(), 1);
        open.table = TableDocument(asked.front()[1].value<std::string>());
        dialog.setPlan(open);
        QTRY_VERIFY_WITH_TIMEOUT(!dialog.isBusy(), kLong);
        QVERIFY(child<QLabel>(dialog, "words")->text().contains("says the plan whole"));
        dialog.findPlan(); // again, and stopped
        QTest::mouseClick(child<QPushButton>(dialog, "find"), Qt::LeftButton);
        QVERIFY(!dialog.isBusy());
        QVERIFY(child<QLabel>(dialog, "searched")->text().contains("stopped"));
    }
};

PLANLOOM_QTEST(ConfigDialogsTest)
#include "config_dialogs_test.moc"
