// The writer with a store that fails on demand: what is written when, in which order, and what is said about
// it.

#include <QtCore/QTemporaryDir>
#include <QtTest/QSignalSpy>
#include <QtTest/QTest>

#include "tests/qt_test.h"
#include "widgets/design/session_writer.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

using namespace planloom;

/// What reached the disk, and what the disk has to say. Any thread.
class FakeDisk
{
public:
    /// A write that leaves `name`, unless the disk or its own fault prevents it.
    SessionWriter::Write write(const std::string &name, std::optional<ErrorCode> fault = {})
    {
        return [this, name, fault](SessionStore &) -> Result<void> {
            ++m_tries;
            if (m_full)
                return Error{ErrorCode::Io, "the disk is full"};
            if (fault)
                return Error{*fault, name + " is wrong"};
            const std::lock_guard lock(m_mutex);
            m_written.push_back(name);
            return {};
        };
    }
    std::vector<std::string> written() const
    {
        const std::lock_guard lock(m_mutex);
        return m_written;
    }
    void setFull(bool full) { m_full = full; }
    int tries() const { return m_tries; }

private:
    mutable std::mutex m_mutex;
    std::vector<std::string> m_written;
    std::atomic<bool> m_full = false;
    std::atomic<int> m_tries = 0;
};

namespace {

using Names = std::vector<std::string>;

} // namespace

class SessionWriterTest : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void editsAreWrittenInOrderAndDerivedThingsBehindThem()
    {
        FakeDisk disk;
        std::promise<void> begin;
        SessionWriter writer([this, ready = begin.get_future().share()] {
            ready.wait();
            return make();
        });
        QSignalSpy settled(&writer, &SessionWriter::settled);
        writer.post(disk.write("1")); // first: whatever comes first is begun at once
        writer.postDerived("view", disk.write("old view"));
        writer.postDerived("figures", disk.write("figures"));
        writer.post(disk.write("2"));
        writer.postDerived("view", disk.write("view"));
        writer.postDerived("dropped", disk.write("dropped"));
        writer.dropDerived("dropped");
        writer.post(disk.write("3"));
        QVERIFY(!writer.isAcknowledged());
        begin.set_value();
        QTRY_COMPARE_WITH_TIMEOUT(settled.count(), 1, kLong);
        QCOMPARE(disk.written(), (Names{"1", "2", "3", "figures", "view"}));
        QVERIFY(writer.isAcknowledged());
    }

    void aFullDiskKeepsTheOrderAndNothingIsAcknowledgedBeforeItsTurn()
    {
        FakeDisk disk;
        SessionWriter writer([this] { return make(); });
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        disk.setFull(true);
        writer.post(disk.write("1"));
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kLong);
        writer.post(disk.write("2"));
        writer.postDerived("view", disk.write("view"));
        QTRY_VERIFY_WITH_TIMEOUT(disk.tries() >= 2, kLong); // a new edit is a reason to try again
        QVERIFY(writer.hasFailed());
        QVERIFY(!writer.waitForEdits(std::chrono::milliseconds(1)));
        QCOMPARE(acknowledged.count(), 0);
        QCOMPARE(disk.written(), Names{});
        disk.setFull(false);
        writer.post(disk.write("3"));
        QTRY_COMPARE_WITH_TIMEOUT(acknowledged.count(), 1, kLong);
        QTRY_COMPARE_WITH_TIMEOUT(disk.written(), (Names{"1", "2", "3", "view"}), kLong);
        QVERIFY(writer.isAcknowledged());
        QCOMPARE(failed.count(), 1);
    }

    void whatTheStoreRefusesIsSetAsideAndThenAllIsWrittenAnew()
    {
        FakeDisk disk;
        int wholes = 0;
        SessionWriter writer(
            [this] { return make(); }, [&] { return disk.write("whole " + std::to_string(++wholes)); });
        QSignalSpy refused(&writer, &SessionWriter::refused);
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        writer.post(disk.write("1"));
        writer.post(disk.write("2", ErrorCode::InvalidInput));
        writer.post(disk.write("3", ErrorCode::NotFound)); // hangs on 2
        writer.post(disk.write("4"));
        QTRY_COMPARE_WITH_TIMEOUT(acknowledged.count(), 1, kLong);
        QCOMPARE(disk.written(), (Names{"1", "4", "whole 1"})); // one makes up for both
        QCOMPARE(refused.count(), 2);
        QCOMPARE(writer.refusals(), std::uint64_t{2});
        QCOMPARE(refused.front().front().value<Error>().message, std::string("2 is wrong"));
        QCOMPARE(failed.count(), 0);
        QVERIFY(writer.isAcknowledged());
        writer.post(disk.write("5", ErrorCode::Internal));
        QTRY_COMPARE_WITH_TIMEOUT(acknowledged.count(), 2, kLong);
        QCOMPARE(disk.written(), (Names{"1", "4", "whole 1", "whole 2"}));
    }

    void whereNothingHelpsItIsNeverCalledSavedAndWorkGoesOn()
    {
        FakeDisk disk;
        SessionWriter writer(
            [this] { return make(); }, [&] { return disk.write("whole", ErrorCode::ResourceLimit); });
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        writer.post(disk.write("1", ErrorCode::InvalidInput));
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kLong);
        QCOMPARE(failed.front().front().value<Error>().code, ErrorCode::ResourceLimit);
        writer.post(disk.write("2"));
        QTRY_COMPARE_WITH_TIMEOUT(
            failed.count(), 2, kLong); // with the next edit all of it is tried again, and only then
        QCOMPARE(disk.written(), Names{"2"});
        QCOMPARE(disk.tries(), 4);
        QVERIFY(!writer.isAcknowledged());
        QVERIFY(writer.hasFailed());
        QCOMPARE(acknowledged.count(), 0);
    }

    void whatCouldNotBeWrittenAnewIsWithTheNextEdit()
    {
        FakeDisk disk;
        std::optional<ErrorCode> fault = ErrorCode::ResourceLimit;
        SessionWriter writer([this] { return make(); }, [&] { return disk.write("whole", fault); });
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        writer.post(disk.write("1", ErrorCode::InvalidInput));
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kLong);
        fault.reset();
        writer.post(disk.write("2"));
        QTRY_COMPARE_WITH_TIMEOUT(acknowledged.count(), 1, kLong);
        QCOMPARE(disk.written(), (Names{"2", "whole"}));
    }

    void anEditDuringAVainTryToWriteAllAnewIsAReasonToTryAgain()
    {
        FakeDisk disk;
        std::promise<void> edited;
        const auto isEdited = edited.get_future().share();
        int wholes = 0;
        SessionWriter writer([this] { return make(); },
            [&]() -> SessionWriter::Write {
                if (++wholes > 1)
                    return disk.write("whole");
                return [&](SessionStore &) -> Result<void> {
                    isEdited.wait();
                    return Error{ErrorCode::ResourceLimit, "not now"};
                };
            });
        QSignalSpy refused(&writer, &SessionWriter::refused);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        writer.post(disk.write("1", ErrorCode::InvalidInput));
        QTRY_COMPARE_WITH_TIMEOUT(refused.count(), 1, kLong);
        writer.post(disk.write("2")); // no other try: one is under way
        QCOMPARE(wholes, 1);
        edited.set_value();
        QTRY_COMPARE_WITH_TIMEOUT(acknowledged.count(), 1, kLong);
        QCOMPARE(disk.written(), (Names{"2", "whole"}));
        QCOMPARE(wholes, 2);
    }

    void derivedThingsHoldNothingBackAndAreNoFailure()
    {
        FakeDisk disk;
        SessionWriter writer([this] { return make(); });
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy lost(&writer, &SessionWriter::derivedFailed);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        writer.postDerived("figures", disk.write("figures", ErrorCode::InvalidInput));
        QTRY_COMPARE_WITH_TIMEOUT(lost.count(), 1, kLong);
        disk.setFull(true);
        writer.postDerived("view", disk.write("view"));
        QTRY_VERIFY_WITH_TIMEOUT(disk.tries() >= 2, kLong);
        QVERIFY(writer.isAcknowledged()); // of nobody's work anything is missing
        disk.setFull(false);
        writer.post(disk.write("1"));
        QTRY_COMPARE_WITH_TIMEOUT(acknowledged.count(), 1, kLong);
        QTRY_COMPARE_WITH_TIMEOUT(disk.written(), (Names{"1", "view"}), kLong); // a while later
        QCOMPARE(failed.count(), 0);
        QCOMPARE(lost.count(), 1);
    }

    void aDerivedThingThatAnEditMadeWrongIsNotTriedAgain()
    {
        FakeDisk disk;
        SessionWriter writer([this] { return make(); });
        disk.setFull(true);
        writer.postDerived("figures", disk.write("figures"));
        QTRY_VERIFY_WITH_TIMEOUT(disk.tries() >= 1, kLong);
        writer.dropDerived("figures");
        disk.setFull(false);
        QSignalSpy acknowledged(&writer, &SessionWriter::acknowledged);
        writer.post(disk.write("1"));
        writer.postDerived("view", disk.write("view"));
        QTRY_COMPARE_WITH_TIMEOUT(disk.written(), (Names{"1", "view"}), kLong);
    }

    void aWriterThatIsRetiredGoesOnUntilTheDiskIsBetter()
    {
        FakeDisk disk;
        SessionWriter writer([this] { return make(); });
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy finished(&writer, &SessionWriter::finished);
        disk.setFull(true);
        writer.post(disk.write("1"));
        writer.post(disk.write("2"));
        writer.finish();
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kLong);
        QTRY_VERIFY_WITH_TIMEOUT(disk.tries() >= 2, kLong);
        QCOMPARE(finished.count(), 0);
        disk.setFull(false);
        QTRY_COMPARE_WITH_TIMEOUT(finished.count(), 1, kLong);
        QCOMPARE(disk.written(), (Names{"1", "2"}));
    }

    void theEndWritesAllThatCanBe()
    {
        FakeDisk disk;
        {
            SessionWriter writer([this] { return make(); });
            writer.post(disk.write("1"));
            writer.post(disk.write("2", ErrorCode::InvalidInput));
            writer.postDerived("view", disk.write("view"));
            writer.post(disk.write("3"));
        }
        QCOMPARE(disk.written(), (Names{"1", "3", "view"}));
        disk.setFull(true);
        const auto before = std::chrono::steady_clock::now();
        {
            SessionWriter writer([this] { return make(); });
            writer.post(disk.write("4"));
            writer.postDerived("view", disk.write("view"));
        }
        QVERIFY(std::chrono::steady_clock::now() - before
            < std::chrono::seconds(20)); // it does not wait for a better disk
        QCOMPARE(disk.written(), (Names{"1", "3", "view"}));
    }

    void aStoreThatCannotBeMadeIsTriedAgain()
    {
        FakeDisk disk;
        std::atomic<bool> isThere = false;
        SessionWriter writer([&]() -> Result<SessionStore> {
            if (!isThere)
                return Error{ErrorCode::InvalidInput, "no place"};
            return make();
        });
        QSignalSpy failed(&writer, &SessionWriter::failed);
        QSignalSpy opened(&writer, &SessionWriter::opened);
        writer.post(disk.write("1"));
        QTRY_COMPARE_WITH_TIMEOUT(failed.count(), 1, kLong);
        isThere = true;
        writer.post(disk.write("2"));
        QTRY_COMPARE_WITH_TIMEOUT(disk.written(), (Names{"1", "2"}), kLong);
        QTRY_VERIFY_WITH_TIMEOUT(writer.isAcknowledged(), kLong);
        QCOMPARE(opened.count(), 1);
        QVERIFY(QFile::exists(opened.front().front().toString()));
    }

private:
    Result<SessionStore> make()
    {
        const int number = ++m_stores;
        return SessionStore::create(
            m_folder.filePath(QStringLiteral("%1.planloom").arg(number)).toStdString(), {});
    }

    QTemporaryDir m_folder;
    std::atomic<int> m_stores = 0;
};

PLANLOOM_QTEST(SessionWriterTest)
#include "session_writer_test.moc"
