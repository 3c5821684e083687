#pragma once

#include "engine/runtime/processes/supervisor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace planloom {

/// Keeps all events of a run, and reacts to them.
struct RunListener {
    using Json = nlohmann::json;

    std::vector<Json> events{};
    std::function<void(const Json &)> react{};

    EventSink sink()
    {
        return [this](const std::string &line) {
            events.push_back(Json::parse(line));
            EXPECT_EQ(events.back().at("v"), 1);
            if (react)
                react(events.back());
            return true;
        };
    }

    std::vector<std::string> types() const
    {
        std::vector<std::string> all;
        for (const Json &event : events)
            if (event.at("t") != "progress" && event.at("t") != "alive")
                all.push_back(event.at("t"));
        return all;
    }

    Json last(const std::string &type) const
    {
        for (std::size_t i = events.size(); i-- > 0;)
            if (events[i].at("t") == type)
                return events[i];
        ADD_FAILURE() << "no event " << type;
        return Json::object();
    }

    std::vector<pid_t> ranks() const { return events.at(0).at("rank_pids").get<std::vector<pid_t>>(); }
    pid_t rank() const { return ranks().at(0); }
    bool ranksAreGone() const
    {
        const std::vector<pid_t> all = ranks();
        return std::all_of(
            all.begin(), all.end(), [](pid_t rank) { return ::kill(rank, 0) != 0 && errno == ESRCH; });
    }
};

} // namespace planloom
