#include "widgets/exchange/data_export.h"

#include "engine/base/csv.h"
#include "engine/table/table_text.h"

#include <algorithm>

namespace planloom {

std::string rowsCsv(const TableDocument &table, const PlanUpdate *update)
{
    std::string csv = "line,on,row,selects,binds,error\r\n";
    for (std::int32_t line = 0; line < table.lineCount(); ++line) {
        const TableLine &said = *table.lines()[static_cast<std::size_t>(line)];
        if (said.isRemark())
            continue;
        csv += std::to_string(line + 1) + ',' + (said.row ? (said.row->enabled ? "1" : "0") : "") + ','
            + csvCell(said.row ? print(*said.row) : said.text);
        const RowLine *report = nullptr;
        if (update) {
            const auto found = std::find_if(update->rows.begin(), update->rows.end(),
                [line](const RowLine &row) { return row.line == line; });
            report = found == update->rows.end() ? nullptr : &*found;
        }
        csv += ',' + (report ? std::to_string(report->report.selected) : std::string()) + ','
            + (report && report->report.bound >= 0 ? std::to_string(report->report.bound) : std::string())
            + ',';
        if (said.error)
            csv += csvCell(said.error->message);
        else if (report && report->report.error)
            csv += csvCell(report->report.error->message);
        csv += "\r\n";
    }
    return csv;
}

std::string spansCsv(const TimelineScene &scene)
{
    std::string csv = "device,queue,segment,micro_batch,operator,instruction,start_ns,duration_ns\r\n";
    const SpanColumns &spans = scene.timeline->spans;
    for (std::size_t row = 0; row < spans.size(); ++row) {
        const Instruction *instruction = scene.findInstruction(row);
        const Segment *segment = scene.findSegment(row);
        const OperatorId op = scene.operatorOf(row);
        csv += std::to_string(spans.device[row]) + ',' + nameOf(spans.queue[row]) + ','
            + (segment ? nameOf(segment->kind) : "") + ',' + std::to_string(spans.microBatch[row]) + ','
            + (op.valid() ? csvCell(scene.graph().at(op).name) : "") + ','
            + (instruction ? nameOf(instruction->kind) : "") + ',' + std::to_string(spans.start[row]) + ','
            + std::to_string(spans.duration[row]) + "\r\n";
    }
    return csv;
}

std::string memoryCsv(const Timeline &timeline)
{
    std::string csv = "device,time_ns";
    for (int kind = 0; kind < kMemoryKindCount; ++kind)
        csv += ',' + csvCell(std::string(nameOf(static_cast<MemoryKind>(kind))) + "_bytes");
    csv += "\r\n";
    for (std::size_t device = 0; device < timeline.memory.size(); ++device) {
        const MemoryCurve &curve = timeline.memory[device];
        for (std::size_t i = 0; i < curve.time.size(); ++i) {
            csv += std::to_string(device) + ',' + std::to_string(curve.time[i]);
            for (const std::int64_t bytes : curve.bytes[i])
                csv += ',' + std::to_string(bytes);
            csv += "\r\n";
        }
    }
    return csv;
}

std::string trafficCsv(const Timeline &timeline)
{
    std::string csv = "from,to,kind,bytes,count\r\n";
    for (const Traffic &traffic : timeline.traffic) {
        csv += std::to_string(traffic.from.index) + ','
            + (traffic.to.valid() ? std::to_string(traffic.to.index) : std::string()) + ','
            + nameOf(traffic.kind) + ',' + std::to_string(traffic.bytes.count) + ','
            + std::to_string(traffic.count) + "\r\n";
    }
    return csv;
}

} // namespace planloom
