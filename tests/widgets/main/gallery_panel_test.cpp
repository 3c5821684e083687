#include <QtTest/QSignalSpy>
#include <QtTest/QTest>
#include <QtWidgets/QAbstractButton>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QListWidget>

#include "engine/design/explain/gallery_effect.h"
#include "tests/qt_test.h"
#include "widgets/main/gallery_form.h"
#include "widgets/main/gallery_panel.h"
#include "widgets/main/gallery_preview.h"

namespace planloom {

class GalleryPanelTest : public QObject
{
    Q_OBJECT
private Q_SLOTS:
    void aFormForEveryEntry()
    {
        GalleryPanel panel;
        panel.setDeviceCount(4);
        panel.setUsable(true);
        QCOMPARE(panel.list()->count(), static_cast<int>(builtInGallery().entries.size()));
        for (int row = 0; row < panel.list()->count(); ++row) {
            panel.list()->setCurrentRow(row);
            const GalleryEntry &entry = builtInGallery().entries[static_cast<std::size_t>(row)];
            QVERIFY(panel.spec().startsWith(QString::fromStdString(entry.name)));
            for (const GalleryParameter &parameter : entry.parameters)
                QVERIFY2(panel.form()->field(parameter.name), parameter.name.c_str());
        }
    }

    void whatIsChosenInTheFormIsSaidInTheLineAndBack()
    {
        GalleryPanel panel;
        panel.setSpec(QStringLiteral("tensor-parallel"));
        auto *ways = qobject_cast<QLineEdit *>(panel.form()->field("tp"));
        auto *sequence = qobject_cast<QComboBox *>(panel.form()->field("sequence"));
        QVERIFY(ways && sequence);
        QCOMPARE(ways->placeholderText(), QStringLiteral("rest"));
        QTest::keyClicks(ways, QStringLiteral("4"));
        QCOMPARE(panel.spec(), QStringLiteral("tensor-parallel:tp=4"));
        sequence->setCurrentIndex(sequence->findData(QStringLiteral("1")));
        QCOMPARE(panel.spec(), QStringLiteral("tensor-parallel:tp=4,sequence=1"));
        panel.line()->setText(QStringLiteral("tensor-parallel:tp=2"));
        QCOMPARE(ways->text(), QStringLiteral("2"));
        QCOMPARE(sequence->currentIndex(), 0);
        panel.line()->setText(QStringLiteral("tensor-par"));
        QVERIFY(!panel.form()->field("tp"));
    }

    void theEffectIsShownBeforeItIsApplied()
    {
        GalleryPanel panel;
        panel.setDeviceCount(4);
        panel.setUsable(true);
        GalleryPreview preview;
        const auto model =
            openModel({"zoo:gpt?layers=2&hidden=32&heads=4&seq=8&vocab=33&batch=8", {}, {}}, {});
        QVERIFY(model);
        TimelineSummary now;
        now.stepSeconds = 1;
        QObject::connect(&panel, &GalleryPanel::asked, &panel, [&](const QString &spec) {
            PlanRequest request;
            request.model = *model;
            request.gallery = spec.toStdString();
            request.target = {"dgx-h100:4", {}, 4};
            preview.ask(std::move(request));
        });
        QObject::connect(&preview, &GalleryPreview::found, &panel,
            [&](const GalleryEffectSnapshot &effect) { panel.setEffect(*effect, &now); });
        panel.setSpec(QStringLiteral("tensor-parallel"));
        QVERIFY(panel.effect().isEmpty());
        QTRY_VERIFY_WITH_TIMEOUT(!panel.effect().isEmpty(), 20000);
        QVERIFY2(panel.effect().contains(QStringLiteral("saves")), qPrintable(panel.effect()));
        QVERIFY2(panel.effect().contains(QStringLiteral("Memory")), qPrintable(panel.effect()));
        QVERIFY2(panel.effect().contains(QStringLiteral("Not cut: "))
                && panel.effect().contains(QStringLiteral(" over tp (")),
            qPrintable(panel.effect()));
        QCOMPARE(
            qobject_cast<QLineEdit *>(panel.form()->field("tp"))->placeholderText(), QStringLiteral("4"));
        if (const QByteArray folder = qgetenv("PLANLOOM_PICTURES"); !folder.isEmpty()) {
            panel.resize(420, 760);
            panel.grab().save(QString::fromLocal8Bit(folder) + QStringLiteral("/gallery.png"));
        }
        panel.setSpec(QStringLiteral("spatial"));
        QTRY_VERIFY_WITH_TIMEOUT(panel.effect().contains(QStringLiteral("Does not fit this model")), 20000);
    }

    void aPlanOfCopiesIsAppliedOnlyWhenThatIsWanted()
    {
        GalleryPanel panel;
        panel.setDeviceCount(4);
        panel.setUsable(true);
        QSignalSpy chosen(&panel, &GalleryPanel::chosen);
        panel.setSpec(QStringLiteral("data-parallel"));
        GalleryEffect effect;
        effect.fits = true;
        effect.copied =
            "80% of the computing is the same on several devices, because operator 'sort' needs it";
        effect.isCopied = true;
        panel.setEffect(effect, nullptr);
        QVERIFY2(panel.effect().contains(QStringLiteral("Copied: 80%")), qPrintable(panel.effect()));
        const auto press = [&](QMessageBox::ButtonRole role) {
            panel.findChild<QAction *>(QStringLiteral("gallery.apply"))->trigger();
            QVERIFY(panel.question());
            QVERIFY2(panel.question()->text().contains(QStringLiteral("'sort'")),
                qPrintable(panel.question()->text()));
            for (QAbstractButton *button : panel.question()->buttons())
                if (panel.question()->buttonRole(button) == role)
                    button->click();
            QTRY_VERIFY(!panel.question());
        };
        press(QMessageBox::RejectRole);
        QCOMPARE(chosen.count(), 0);
        press(QMessageBox::AcceptRole);
        QCOMPARE(chosen.count(), 1);
        effect.isCopied = false;
        panel.setEffect(effect, nullptr);
        panel.findChild<QAction *>(QStringLiteral("gallery.apply"))->trigger();
        QVERIFY(!panel.question());
        QCOMPARE(chosen.count(), 2);
    }
};

} // namespace planloom

using planloom::GalleryPanelTest;
PLANLOOM_QTEST(GalleryPanelTest)
#include "gallery_panel_test.moc"
