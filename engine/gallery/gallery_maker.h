#pragma once

#include "engine/gallery/gallery.h"
#include "engine/gallery/gallery_find.h"
#include "engine/table/row_setting.h"

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace planloom {

/// Makes the rows of one entry.
class GalleryMaker
{
public:
    GalleryMaker(const GalleryEntry &entry, const Model &model, std::int32_t deviceCount)
        : m_entry(entry)
        , m_model(model)
        , m_deviceCount(deviceCount)
    {
    }

    /// Reads what is behind the entry's name, and decides what it leaves open but for micro-batches.
    Result<void> readValues(std::string_view text);
    Result<GalleryPlan> make(const OperatorCosts &costs);
    std::vector<GalleryValue> values() const;

private:
    /// A line that is carried out, with its text.
    struct Kept {
        const GalleryLine *line = nullptr;
        std::string text{};
    };
    bool isSolved(const std::string &parameter) const { return m_values.at(parameter) == "solver"; }
    Result<void> decideSizes();
    Result<std::optional<LayoutRule>> layoutRow() const;
    Result<void> decideLayout();
    Result<void> checkMesh() const;
    bool holds(const GalleryCondition &condition) const;
    /// The lines whose conditions hold, and that use nothing left to the solver.
    std::vector<const GalleryLine *> keptLines() const;
    Result<std::string> textOf(const GalleryLine &line) const;
    /// What the row of a line is for micro-batches of one each: where the batch is cut, and how it is run.
    Result<void> survey();
    Result<void> decideMicroBatches();
    Result<void> append(const GalleryLine &line, const FindSetting &setting, ConstraintTable &table) const;
    Result<void> appendDividing(const Row &row, ConstraintTable &table) const;
    /// The axes that a line's mesh row names, with their parameters.
    std::vector<std::pair<std::string, std::string>> meshParameters() const;
    /// Devices along an axis of the mesh, or so many as a number says; 1 for an axis that is not there.
    std::int32_t sizeOf(const std::string &axis) const;
    bool isAlone(const std::string &axis) const { return sizeOf(axis) == 1; }
    std::optional<Row> withoutLoneAxes(Row row) const;
    Error at(const GalleryLine &line, Error error) const;

    const GalleryEntry &m_entry;
    const Model &m_model;
    std::int32_t m_deviceCount = 1;
    std::map<std::string, std::string> m_values{};
    std::map<std::string, bool> m_given{};
    std::vector<MeshAxis> m_mesh{}; ///< That the entry makes, with axes of one device.
    bool m_meshIsSolved = false;
    // Of the pipeline that the lines make, and of the batch.
    std::int32_t m_ranks = 1;
    std::int32_t m_times = 1;
    std::int64_t m_batchParts = 1;
};

} // namespace planloom
